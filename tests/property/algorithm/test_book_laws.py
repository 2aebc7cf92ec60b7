"""Laws of the Mistake Book, for any history of updates."""

import tempfile
from pathlib import Path

from hypothesis import given, strategies as st

from code_a1_recipe.algorithm.mistake_book import BookChange, BookUpdate, FailedCase, MistakeBook

calls = st.one_of(
    st.sampled_from(["f(0)", "f('it\\'s')", 'f("\\"")', "f('\\n')", 'f("\'\\"")']),
    st.text(alphabet=st.characters(codec=None, categories=None), max_size=6),
)
questions = st.sampled_from(["q", "with\nnewline", "\ud800", ""])


def failed(texts):
    return [FailedCase(id=text, call=text, answer=f"<{text}>") for text in texts]


@st.composite
def updates(draw):
    return (draw(questions), draw(st.lists(calls, max_size=8)), draw(st.lists(calls, max_size=8)))


def book_of(history):
    book = MistakeBook()
    for question_id, failures, passes in history:
        book.update(question_id, BookUpdate(failed=failed(failures), passed_replays=passes))
    return book


@given(history=st.lists(updates(), max_size=4), update=updates(), data=st.data())
def test_the_order_within_an_update_does_not_matter(history, update, data):
    question_id, failures, passes = update
    one, two = book_of(history), book_of(history)
    one_change = one.update(question_id, BookUpdate(failed=failed(failures), passed_replays=passes))
    two_change = two.update(
        question_id,
        BookUpdate(
            failed=failed(data.draw(st.permutations(failures))), passed_replays=data.draw(st.permutations(passes))
        ),
    )
    assert one == two
    assert one_change == two_change


@given(history=st.lists(updates(), max_size=4), update=updates())
def test_each_frequency_moves_by_failures_less_passes(history, update):
    question_id, failures, passes = update
    book = book_of(history)
    before = {entry.call: entry.frequency for entry in book.entries(question_id)}
    book.update(question_id, BookUpdate(failed=failed(failures), passed_replays=passes))
    after = {entry.call: entry.frequency for entry in book.entries(question_id)}
    for call in {*before, *after, *failures, *passes}:
        left = max(0, before.get(call, 0) - passes.count(call))
        assert after.get(call, 0) == left + failures.count(call)


@given(history=st.lists(updates(), max_size=6), limit=st.integers(min_value=0, max_value=10))
def test_retrieval_is_the_head_of_a_stable_order(history, limit):
    book = book_of(history)
    for question_id in book.question_ids():
        whole = book.retrieve(question_id, limit=10_000)
        assert book.retrieve(question_id, limit) == whole[:limit]
        assert [e.frequency for e in whole] == sorted((e.frequency for e in whole), reverse=True)
        assert sorted(e.call for e in whole) == sorted(e.call for e in book.entries(question_id))


@given(history=st.lists(updates(), max_size=6))
def test_a_saved_book_comes_back_whole(history):
    book = book_of(history)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book.json"
        book.save(path)
        loaded = MistakeBook.load(path)
    assert loaded == book
    assert loaded.num_cases == book.num_cases


@given(history=st.lists(updates(), max_size=8))
def test_changes_add_up_to_what_is_in_the_book(history):
    book, total = MistakeBook(), BookChange()
    for question_id, failures, passes in history:
        total += book.update(question_id, BookUpdate(failed=failed(failures), passed_replays=passes))
    entries = [entry for name in book.question_ids() for entry in book.entries(name)]
    assert book.num_cases == len(entries) == total.num_added - total.num_removed
    assert all(entry.frequency >= 1 for entry in entries)
