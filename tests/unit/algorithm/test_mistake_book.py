import json
import pickle

import pytest

from code_a1_recipe.algorithm.mistake_book import BookChange, BookEntry, BookUpdate, FailedCase, MistakeBook
from code_a1_recipe.errors import InputError


def failed(*calls):
    return [FailedCase(id=call, call=call, answer=f"answer of {call}") for call in calls]


def entry(call, **fields):
    return BookEntry(**{"id": call, "call": call} | fields)


def frequencies(book, question_id="q"):
    return {entry.call: entry.frequency for entry in book.entries(question_id)}


@pytest.fixture
def book():
    """Three cases, in order of age: f(0) once, f(1) three times, f(2) three times."""
    book = MistakeBook()
    book.update("q", BookUpdate(failed=failed("f(0)")))
    book.update("q", BookUpdate(failed=failed("f(1)")))
    book.update("q", BookUpdate(failed=failed("f(2)", "f(2)", "f(2)", "f(1)", "f(1)")))
    return book


def test_the_most_frequent_cases_come_back_first_and_ties_go_to_the_older(book):
    assert [entry.call for entry in book.retrieve("q")] == ["f(1)", "f(2)", "f(0)"]
    assert book.retrieve("q", limit=0) == book.retrieve("other") == ()


def test_an_entry_holds_the_references_answer_and_its_frequency(book):
    assert book.retrieve("q", limit=1) == (entry("f(1)", answer="answer of f(1)", frequency=3),)


def test_eight_cases_are_replayed_unless_told_otherwise():
    book = MistakeBook()
    book.update("q", BookUpdate(failed=failed(*(f"f({n})" for n in range(20)))))
    assert len(book.retrieve("q")) == 8


def test_each_passed_replay_takes_one_away_and_zero_forgets(book):
    change = book.update("q", BookUpdate(passed_replays=["f(1)", "f(1)", "f(0)"]))
    assert frequencies(book) == {"f(1)": 1, "f(2)": 3}
    assert change == BookChange(num_removed=1)


def test_passes_of_a_step_are_subtracted_before_its_failures_are_added(book):
    """The release's order: a case passed as often as it was in the book leaves it, and may come back as new."""
    passed = BookUpdate(failed=failed("f(0)", "f(0)", "f(1)"), passed_replays=["f(0)"] * 6 + ["f(1)"])
    assert book.update("q", passed) == BookChange(num_added=1, num_removed=1)
    assert frequencies(book) == {"f(0)": 2, "f(1)": 3, "f(2)": 3}
    assert [entry.call for entry in book.entries("q")] == ["f(1)", "f(2)", "f(0)"]


def test_a_new_case_that_was_failed_stays_however_often_it_was_passed(book):
    book.update("q", BookUpdate(failed=failed("f(9)"), passed_replays=["f(9)"] * 3))
    assert frequencies(book)["f(9)"] == 1


def test_a_case_without_an_answer_loses_its_place(book):
    """Neither passed nor failed, it would keep its place among those that are replayed for ever."""
    book.update("q", BookUpdate(failed=[FailedCase(call="f(x=7)", answer="1", id="k7")] * 3))
    book.update("q", BookUpdate(dropped_replays=["f(x=7)", "f(x=7)", "f(9)"]))
    assert frequencies(book)["f(x=7)"] == 1
    assert book.update("q", BookUpdate(dropped_replays=["f(x=7)"])) == BookChange(num_removed=1)


def test_a_pass_of_a_case_that_is_not_in_the_book_does_nothing(book):
    assert book.update("q", BookUpdate(passed_replays=["f(9)"])) == BookChange()
    assert book.num_cases == 3


def test_a_question_whose_last_case_goes_is_gone():
    book = MistakeBook()
    book.update("q", BookUpdate(failed=failed("f(0)")))
    book.update("q", BookUpdate(passed_replays=["f(0)"]))
    assert (book.num_questions, book.num_cases) == (0, 0)
    assert book == MistakeBook()


@pytest.mark.parametrize("answers", [("2", "1"), ("1", "2")])
def test_of_two_answers_to_one_call_the_smaller_is_kept(answers):
    book = MistakeBook()
    book.update("q7", BookUpdate(failed=[FailedCase(id="f(0)", call="f(0)", answer=answer) for answer in answers]))
    assert book.entries("q7")[0].answer == "1"


def test_spellings_with_one_key_are_one_case_under_the_shortest_text(tmp_path):
    book = MistakeBook()
    spellings = [FailedCase(call=call, answer="6", id="k3") for call in ("f(3, k=1)", "f(3)", "abs(f(3))")]
    assert book.update("q", BookUpdate(failed=spellings)) == BookChange(num_added=1)
    assert book.entries("q") == (entry("f(3)", answer="6", frequency=3, id="k3"),)
    book.save(tmp_path / "book.json")
    assert MistakeBook.load(tmp_path / "book.json") == book
    assert book.update("q", BookUpdate(passed_replays=["k3"])) == BookChange()


def test_a_case_keeps_the_text_that_failed_first():
    book = MistakeBook()
    book.update("q", BookUpdate(failed=[FailedCase(call="f(3.0)", answer="6.0", id="k3")]))
    book.update("q", BookUpdate(failed=[FailedCase(call="f(3)", answer="6", id="k3")]))
    assert book.entries("q") == (entry("f(3.0)", answer="6.0", frequency=2, id="k3"),)


def test_questions_do_not_share_cases(book):
    book.update("p", BookUpdate(failed=failed("f(0)")))
    book.update("p", BookUpdate(passed_replays=["f(1)"]))
    assert frequencies(book)["f(1)"] == 3
    assert (book.question_ids(), book.num_questions, book.num_cases) == (("p", "q"), 2, 4)


def test_changes_add_up():
    one, other = BookChange(num_added=1, num_removed=2), BookChange(num_added=3, num_removed=6)
    assert one + other == BookChange(num_added=4, num_removed=8)


def test_books_are_equal_when_their_cases_are(book):
    same = pickle.loads(pickle.dumps(book))
    assert book == same
    same.update("q", BookUpdate(failed=failed("f(0)")))
    assert book != same
    assert book != "book"


def test_the_order_of_questions_in_the_file_does_not_matter(tmp_path, book):
    path = tmp_path / "book.json"
    book.update("a", BookUpdate(failed=failed("f(1)")))
    book.save(path)
    document = json.loads(path.read_text())
    document["questions"] = dict(reversed(document["questions"].items()))
    path.write_text(json.dumps(document))
    assert MistakeBook.load(path) == book


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


WRONG_ROWS = r"'questions' must map ids to lists of \[id, call, answer, frequency >= 1\]"
OTHER_ROWS = [
    {},
    ["f(0)"],
    [{"call": "f(0)"}],
    [["f(0)", "f(0)", "1"]],
    [["f(0)", "f(0)", "1", 1, 1]],
    [[0, "f(0)", "1", 1]],
    [["f(0)", None, "1", 1]],
    [["f(0)", "f(0)", 1, 1]],
    [["f(0)", "f(0)", "1", 0]],
    [["f(0)", "f(0)", "1", 1.0]],
    [["f(0)", "f(0)", "1", True]],
    [["f(0)", "f(0)", "1", 1], ["f(1)", "f(1)", "1", 0]],
]


@pytest.fixture
def saved(tmp_path, book):
    """The file of a saved book."""
    book.save(tmp_path / "book.json")
    return tmp_path / "book.json"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "diary"}, "is not a Mistake Book"),
        ({"format": "a diary"}, "is not a Mistake Book"),
        ({"version": 6}, "format version 6, this code reads 7; load it with the release that wrote it"),
        ({"version": 8}, "format version 8, this code reads 7"),
        ({"questions": []}, "is damaged"),
        ({"questions": {"q": [["f(0)", "f(0)", "1", 2]]}}, "does not match its digest"),
        ({"digest": ""}, "does not match its digest"),
        ({"digest": "f" * 64}, "does not match its digest"),
        *(({"questions": {"fine": [["f(0)", "f(0)", "1", 1]], "q": rows}}, WRONG_ROWS) for rows in OTHER_ROWS),
    ],
)
def test_a_wrong_file_is_refused_with_its_fault(saved, changes, words):
    saved.write_text(json.dumps(json.loads(saved.read_text()) | changes))
    with pytest.raises(InputError, match=words):
        MistakeBook.load(saved)


@pytest.mark.parametrize("keep", [0, 1, 100])
def test_half_a_file_is_refused(saved, keep):
    saved.write_text(saved.read_text()[:keep])
    with pytest.raises(InputError, match="not readable JSON"):
        MistakeBook.load(saved)
    saved.write_text("[]")
    with pytest.raises(InputError, match="is not a Mistake Book"):
        MistakeBook.load(saved)
