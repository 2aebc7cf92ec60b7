import json
import pickle

import pytest

from code_a1_recipe.mistake_book import (
    BookChange,
    BookEntry,
    BookStats,
    FailedCase,
    MistakeBook,
    MistakeBookError,
)


def failed(*calls):
    return [FailedCase(call=call, answer=f"answer of {call}") for call in calls]


def frequencies(book, question_id="q"):
    return {entry.call: entry.frequency for entry in book.entries(question_id)}


@pytest.fixture
def book():
    """Three cases, in order of age: f(0) once, f(1) three times, f(2) three times."""
    book = MistakeBook()
    book.update("q", failed=failed("f(0)"), passed_replays=[])
    book.update("q", failed=failed("f(1)"), passed_replays=[])
    book.update("q", failed=failed("f(2)", "f(2)", "f(2)", "f(1)", "f(1)"), passed_replays=[])
    return book


def test_the_most_frequent_cases_come_back_first_and_ties_go_to_the_older(book):
    assert [entry.call for entry in book.retrieve("q")] == ["f(1)", "f(2)", "f(0)"]
    assert [entry.call for entry in book.retrieve("q", limit=1)] == ["f(1)"]
    assert book.retrieve("q", limit=0) == ()


def test_an_entry_holds_the_references_answer_and_its_frequency(book):
    assert book.retrieve("q", limit=1) == (BookEntry(call="f(1)", answer="answer of f(1)", frequency=3),)


def test_an_unknown_question_has_no_cases(book):
    assert book.retrieve("other") == ()


def test_a_negative_limit_is_refused(book):
    with pytest.raises(ValueError, match=r"limit .* at least 0, got -1"):
        book.retrieve("q", limit=-1)


def test_eight_cases_are_replayed_unless_told_otherwise():
    book = MistakeBook()
    book.update("q", failed=failed(*(f"f({n})" for n in range(20))), passed_replays=[])
    assert len(book.retrieve("q")) == 8


def test_each_passed_replay_takes_one_away_and_zero_forgets(book):
    change = book.update("q", failed=[], passed_replays=["f(1)", "f(1)", "f(0)"])
    assert frequencies(book) == {"f(1)": 1, "f(2)": 3}
    assert change == BookChange(num_removed=1, num_lowered=1)


def test_more_passes_than_failures_forget_too(book):
    book.update("q", failed=[], passed_replays=["f(1)"] * 10)
    assert "f(1)" not in frequencies(book)


def test_only_the_net_of_failures_and_passes_of_one_step_counts(book):
    change = book.update("q", failed=failed("f(0)", "f(0)", "f(1)"), passed_replays=["f(0)", "f(1)"])
    assert frequencies(book) == {"f(0)": 2, "f(1)": 3, "f(2)": 3}
    assert change == BookChange(num_raised=1)


def test_a_new_case_failed_and_passed_equally_often_stays_out(book):
    change = book.update("q", failed=failed("f(9)"), passed_replays=["f(9)"])
    assert "f(9)" not in frequencies(book)
    assert change == BookChange()


def test_a_pass_of_a_case_that_is_not_in_the_book_does_nothing(book):
    assert book.update("q", failed=[], passed_replays=["f(9)"]) == BookChange()
    assert book.num_cases == 3


def test_a_question_whose_last_case_goes_is_gone():
    book = MistakeBook()
    book.update("q", failed=failed("f(0)"), passed_replays=[])
    book.update("q", failed=[], passed_replays=["f(0)"])
    assert (book.num_questions, book.num_cases) == (0, 0)
    assert book == MistakeBook()


def test_a_case_that_comes_back_counts_as_new_and_is_the_youngest(book):
    book.update("q", failed=[], passed_replays=["f(1)"] * 3)
    book.update("q", failed=failed("f(1)", "f(1)", "f(1)"), passed_replays=[])
    assert [entry.call for entry in book.retrieve("q")] == ["f(2)", "f(1)", "f(0)"]


def test_two_answers_to_one_call_are_reported_and_resolved_the_same_way_in_any_order(caplog):
    answers = [FailedCase(call="f(0)", answer="2"), FailedCase(call="f(0)", answer="1")]
    books = [MistakeBook(), MistakeBook()]
    for book, order in zip(books, (answers, answers[::-1]), strict=True):
        book.update("q", failed=order, passed_replays=[])
    assert [book.entries("q")[0].answer for book in books] == ["1", "1"]
    assert "the reference answered" in caplog.text


def test_spellings_with_one_key_are_one_case_under_the_shortest_text(tmp_path):
    book = MistakeBook()
    spellings = [FailedCase(call=call, answer="6", key="k3") for call in ("f(3, k=1)", "f(3)", "abs(f(3))")]
    assert book.update("q", failed=spellings, passed_replays=[]) == BookChange(num_added=1)
    assert book.entries("q") == (BookEntry(call="f(3)", answer="6", frequency=3, key="k3"),)
    book.save(tmp_path / "book.json")
    assert MistakeBook.load(tmp_path / "book.json") == book
    assert book.update("q", failed=[], passed_replays=["k3"]) == BookChange(num_lowered=1)


def test_a_case_keeps_the_text_that_failed_first():
    book = MistakeBook()
    book.update("q", failed=[FailedCase(call="f(3.0)", answer="6.0", key="k3")], passed_replays=[])
    book.update("q", failed=[FailedCase(call="f(3)", answer="6", key="k3")], passed_replays=[])
    assert book.entries("q") == (BookEntry(call="f(3.0)", answer="6.0", frequency=2, key="k3"),)


def test_questions_do_not_share_cases(book):
    book.update("p", failed=failed("f(0)"), passed_replays=[])
    book.update("p", failed=[], passed_replays=["f(1)"])
    assert frequencies(book)["f(1)"] == 3
    assert book.question_ids() == ("p", "q")


def test_stats_give_the_size(book):
    assert book.stats() == BookStats(num_questions=1, num_cases=3, total_frequency=7, max_frequency=3)
    assert MistakeBook().stats() == BookStats(num_questions=0, num_cases=0, total_frequency=0, max_frequency=0)


def test_changes_add_up():
    total = BookChange(num_added=1, num_removed=2) + BookChange(num_added=3, num_lowered=1)
    assert total == BookChange(num_added=4, num_removed=2, num_lowered=1)


def test_the_digest_depends_on_content_and_age_only(book):
    same = pickle.loads(pickle.dumps(book))
    assert same.digest() == book.digest()
    same.update("q", failed=failed("f(0)"), passed_replays=[])
    assert same.digest() != book.digest()
    assert MistakeBook().digest() == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


AWKWARD = ["f('it\\'s \"both\"')", 'f("""a\nb""")', "f('\ud800')", "f('\\x00é漢')", ""]


def test_awkward_texts_survive_a_save(tmp_path):
    book = MistakeBook()
    for question_id in ("q", "with\nnewline", "\udfff"):
        book.update(question_id, failed=failed(*AWKWARD), passed_replays=[])
    path = tmp_path / "book.json"
    book.save(path)
    loaded = MistakeBook.load(path)
    assert loaded == book
    assert loaded.digest() == book.digest()
    assert loaded.update("q", failed=[], passed_replays=AWKWARD) == BookChange(num_removed=5)


def test_the_order_of_age_survives_a_save(tmp_path, book):
    book.save(tmp_path / "book.json")
    assert MistakeBook.load(tmp_path / "book.json").retrieve("q") == book.retrieve("q")


def test_a_save_replaces_the_file_and_leaves_nothing_beside_it(tmp_path, book):
    path = tmp_path / "book.json"
    MistakeBook().save(path)
    book.save(path)
    assert MistakeBook.load(path) == book
    assert [entry.name for entry in tmp_path.iterdir()] == ["book.json"]


def test_a_failed_save_keeps_the_old_file(tmp_path, book, monkeypatch):
    path = tmp_path / "book.json"
    book.save(path)

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full_disk)
    with pytest.raises(OSError, match="no space left"):
        MistakeBook().save(path)
    assert MistakeBook.load(path) == book
    assert [entry.name for entry in tmp_path.iterdir()] == ["book.json"]


def test_a_missing_file_is_no_empty_book(tmp_path):
    with pytest.raises(FileNotFoundError):
        MistakeBook.load(tmp_path / "none.json")


def edited(path, **changes):
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "diary"}, "is not a Mistake Book"),
        ({"version": 1}, "format version 1, this code reads 2"),
        ({"questions": []}, "is damaged"),
        ({"questions": {"q": [["f(0)", "1", 0]]}}, "frequency >= 1"),
        ({"questions": {"q": [["f(0)", "1", 2, ""]]}}, "does not match its digest"),
        ({"digest": ""}, "does not match its digest"),
    ],
)
def test_a_wrong_file_is_refused_with_its_fault(tmp_path, book, changes, words):
    path = tmp_path / "book.json"
    book.save(path)
    edited(path, **changes)
    with pytest.raises(MistakeBookError, match=words):
        MistakeBook.load(path)


@pytest.mark.parametrize("keep", [0, 1, 100])
def test_half_a_file_is_refused(tmp_path, book, keep):
    path = tmp_path / "book.json"
    book.save(path)
    path.write_text(path.read_text()[:keep])
    with pytest.raises(MistakeBookError, match="not readable JSON"):
        MistakeBook.load(path)


def test_a_json_list_is_no_book(tmp_path):
    (tmp_path / "book.json").write_text("[]")
    with pytest.raises(MistakeBookError, match="is not a Mistake Book"):
        MistakeBook.load(tmp_path / "book.json")
