"""The MistakeBook for scripts. The book holds asserts, each with a quality.

The asserts come from a run's book or from the caller.

The book that a run writes is in ``algorithm.mistake_book``. That book counts how many programs each case broke.
"""

import heapq
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import write_whole
from ..runs.reader import RunRecords

_FORMAT = 1


class MistakeBook:
    """The tests of the highest quality, at most ``max_size``. Threads must not share a book.

    >>> book = MistakeBook(max_size=2, quality_threshold=0.3, seed=1)
    >>> [book.add_test(f"assert f({n}) == {n}", quality) for n, quality in enumerate([0.5, 0.2, 0.9, 0.6])]
    [True, False, True, True]
    >>> list(book), len(book)
    (['assert f(2) == 2', 'assert f(3) == 3'], 2)
    >>> book.get_top_k(1)
    ['assert f(2) == 2']
    >>> sorted(book.sample_batch(5)) == list(book)
    True

    Args:
        max_size: maximum number of tests, at least 1.
        quality_threshold: lowest quality of a test in the book, in [0, 1].
        seed: seed of ``sample_batch``.

    Raises:
        InputError: an argument is out of its range.
    """

    def __init__(self, max_size: int = 1000, quality_threshold: float = 0.3, *, seed: int = 0) -> None:
        self.max_size = check_count("max_size", max_size)
        self.quality_threshold = _quality("quality_threshold", quality_threshold)
        self._chance = random.Random(seed)
        self._qualities: dict[str, float] = {}
        """Quality by test, in the order in which the tests were added."""

    @classmethod
    def of_run(cls, run: str | Path, **bounds: Any) -> "MistakeBook":
        """Copy the cases of a run's saved book as asserts.

        The quality of a case is its frequency divided by the highest frequency in the book.

        Args:
            run: folder of the run.
            bounds: arguments of the new book.

        Raises:
            InputError: the folder holds no run, or its book is damaged.
        """
        view = cls(**bounds)
        saved = RunRecords.open(Path(run)).mistake_book()
        entries = [entry for question_id in saved.question_ids() for entry in saved.entries(question_id)]
        highest = max((entry.frequency for entry in entries), default=1)
        for entry in entries:
            quality = entry.frequency / highest
            view.add_test(f"assert {entry.call} == {entry.answer}", quality)
        return view

    def __len__(self) -> int:
        return len(self._qualities)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the tests, the oldest first."""
        return iter(self._qualities)

    def __contains__(self, test: object) -> bool:
        return test in self._qualities

    def quality(self, test: str) -> float:
        """Return the quality of a test. KeyError: the test is not in the book."""
        return self._qualities[test]

    def add_test(self, test: str, quality_score: float) -> bool:
        """Add a test, or change its quality.

        If the book then has more than ``max_size`` tests, the worst test is removed. Of several worst tests the oldest
        is removed.

        Args:
            test: any text that is not empty, such as ``assert f(3) == 6``.
            quality_score: quality in [0, 1]. A test of lower quality than ``quality_threshold`` is not added. If the
                book has this test, it is removed.

        Returns:
            Whether the test is in the book now.

        Raises:
            InputError: ``test`` is no text or is empty, or the score is out of its range.
        """
        if not isinstance(test, str) or not test.strip():
            raise InputError(f"a test must be a text that is not empty, got {test!r}")
        quality = _quality("quality_score", quality_score)
        self._qualities.pop(test, None)
        if quality >= self.quality_threshold:
            self._qualities[test] = quality
        if len(self._qualities) > self.max_size:
            worst = min(self._qualities, key=self.quality)
            del self._qualities[worst]
        return test in self._qualities

    def sample_batch(self, n: int) -> list[str]:
        """Draw at most ``n`` different tests in proportion to quality. Tests of quality 0 are drawn last.

        Each test gets an exponential waiting time whose rate is its quality, and the ``n`` shortest times win
        (Efraimidis and Spirakis 2006).
        """
        number = check_count("n (tests)", n, least=0)
        times = {}
        for test, rate in self._qualities.items():
            times[test] = self._chance.expovariate(rate) if rate else math.inf
        return heapq.nsmallest(number, times, key=times.__getitem__)

    def get_top_k(self, k: int) -> list[str]:
        """Return the ``k`` tests of the highest quality, the best first. Of equal tests the oldest is first."""
        number = check_count("k (tests)", k, least=0)
        return heapq.nlargest(number, self._qualities, key=self.quality)

    def save(self, path: str | Path) -> None:
        """Write the whole book to a JSON file, or change nothing. OSError: the file cannot be written."""
        content = {
            "format": _FORMAT,
            "max_size": self.max_size,
            "quality_threshold": self.quality_threshold,
            "random_state": self._chance.getstate(),
            "tests": list(self._qualities.items()),
        }
        write_whole(Path(path), json.dumps(content))

    @classmethod
    def load(cls, path: str | Path) -> "MistakeBook":
        """Read a book that ``save`` wrote. The loaded book draws the samples that the saved book would have drawn next.

        Raises:
            InputError: the file is missing, or ``save`` did not write it.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content["format"] != _FORMAT:
                raise ValueError(f"its format is {content['format']!r}, but this release reads {_FORMAT}")
            book = cls(content["max_size"], content["quality_threshold"])
            version, numbers, gauss = content["random_state"]
            book._chance.setstate((version, tuple(numbers), gauss))
            for test, quality in content["tests"]:
                book.add_test(test, quality)
        except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
            raise InputError(
                f"{path} cannot be read as a MistakeBook: {error}; name a file that save() wrote"
            ) from error
        return book


def check_count(name: str, value: object, *, least: int = 1) -> int:
    """Check an argument that is a count. InputError: the value is no integer, or is below ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} must be an integer of at least {least}, got {value!r}")
    return value


def _quality(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InputError(f"{name} must be a number in [0, 1], got {value!r}; for a Breakdown, pass max(0, total)")
    return float(value)
