"""The API's MistakeBook: bounded by quality, sampled in proportion to it, saved with its random state."""

import doctest
import math
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe import MistakeBook
from code_a1_recipe.algorithm.mistake_book import BookUpdate, FailedCase, MistakeBook as BookOfRun
from code_a1_recipe.api import mistake_book
from code_a1_recipe.errors import InputError
from code_a1_recipe.runs.folder import RunFolder

additions = st.lists(
    st.tuples(st.sampled_from([f"assert f({n}) == 0" for n in range(8)]), st.floats(0, 1)), max_size=60
)


def test_the_docstring_is_true():
    assert doctest.testmod(mistake_book).failed == 0


@given(additions, st.integers(1, 6), st.floats(0, 1))
def test_it_keeps_the_best_of_what_it_was_given_last(given_tests, max_size, threshold):
    book, last = MistakeBook(max_size, threshold), {}
    for test, quality in given_tests:
        before = dict.fromkeys(book)
        is_kept = book.add_test(test, quality)
        last[test] = quality
        assert is_kept == (test in book)
        assert len(book) <= max_size
        assert set(book) <= {*before, test}
        assert all(book.quality(one) == last[one] >= threshold for one in book)  # no score outlives its test
        gone = {*before, test} - set(book)
        worst = min(map(book.quality, book), default=math.inf)
        assert all(last[one] < threshold or last[one] <= worst for one in gone)
        for one in gone:
            with pytest.raises(KeyError):
                book.quality(one)
    assert book.get_top_k(9) == sorted(book, key=book.quality, reverse=True)
    assert set(book.sample_batch(9)) == set(book)


def test_samples_follow_quality():
    book = MistakeBook(quality_threshold=0.0, seed=4)
    for test, quality in (("rare", 0.1), ("often", 0.9), ("never", 0.0)):
        book.add_test(test, quality)
    counts = Counter(book.sample_batch(1)[0] for _ in range(2000))
    assert counts["often"] / 2000 == pytest.approx(0.9, abs=0.03)
    assert counts["never"] == 0
    assert sorted(book.sample_batch(3)) == ["never", "often", "rare"]


def draws(book):
    return [book.sample_batch(5) for _ in range(3)]


def test_the_same_seed_gives_the_same_samples_also_over_a_save(tmp_path):
    one, other = MistakeBook(seed=7), MistakeBook(seed=7)
    for n in range(20):
        for book in (one, other):
            book.add_test(f"assert f({n}) == {n}", 0.3 + n / 40)
    assert draws(one) == draws(other)
    one.save(tmp_path / "book.json")
    loaded = MistakeBook.load(tmp_path / "book.json")
    assert draws(loaded) == draws(one)
    assert (list(loaded), loaded.max_size, loaded.quality_threshold) == (list(one), 1000, 0.3)


def test_a_run_gives_its_cases(tmp_path):
    saved = BookOfRun()
    once, twice = (FailedCase(id=call, call=call, answer="2") for call in ("f(0)", "f(1)"))
    saved.update("q", BookUpdate(failed=[once, twice, twice]))
    folder = RunFolder(tmp_path)
    saved.save(folder.mistake_book)
    folder.resolved_config.write_text("{}")
    folder.metrics.write_text("")
    book = MistakeBook.of_run(tmp_path, quality_threshold=0.9)
    assert (list(book), book.quality("assert f(1) == 2")) == (["assert f(1) == 2"], 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda book: MistakeBook(max_size=0), "max_size must be an integer of at least 1, got 0"),
        (lambda book: MistakeBook(quality_threshold=2), r"quality_threshold must be a number in \[0, 1\], got 2"),
        (lambda book: book.add_test(" ", 0.5), "a test must be a text that is not empty, got ' '"),
        (lambda book: book.add_test("a", math.nan), r"quality_score must be a number in \[0, 1\], got nan"),
        (lambda book: book.sample_batch(-1), r"n \(tests\) must be an integer of at least 0, got -1"),
        (lambda book: book.get_top_k(True), r"k \(tests\) must be an integer of at least 0, got True"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call(MistakeBook())


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 9}', '{"format": 1, "max_size": 2}'])
def test_another_file_is_refused(tmp_path, content):
    path = tmp_path / "book.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"book\.json cannot be read as a MistakeBook"):
        MistakeBook.load(path)
