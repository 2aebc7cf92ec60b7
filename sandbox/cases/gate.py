"""The static gate with a cache, so that each text of a question is usually parsed only once.

The suites of one question share many asserts, and parsing an assert takes about as long as judging it.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial

from .case import Gated, Kind, Suite
from .parser import gather_suite, parse_assert, parse_call
from .reference_interface import Interface

_Reader = Callable[[str], Gated]
MAX_TEXTS_PER_QUESTION = 1024
_MAX_KEPT = 256
"""A question's own cache keeps texts of at most this number of characters. To save memory, the longer texts of all
questions share one cache."""
_MAX_LONG_TEXTS = 512
LISTED_OUTPUTS = "# There is no reference solution: this program looks the listed outputs up.\n"
"""The first line of a reference that is a table. It answers only calls of its data set, which nobody else writes."""
_LISTED_CHARS = 3 << 20
"""Longest assert on a table: an input of 1 MiB and its output, with escapes."""


class Gate:
    """The gate of one question. Thread-safe.

    Args:
        reference: source of the reference solution.
        entry_points: names that tests may call; empty means all public names at top level.
        assert_chars: longest text that is parsed, in characters.
        kind: how tests use a program.
    """

    def __init__(
        self,
        reference: str,
        entry_points: tuple[str, ...],
        *,
        assert_chars: int,
        kind: Kind = Kind.FUNCTIONS,
    ) -> None:
        if reference.startswith(LISTED_OUTPUTS):
            assert_chars = max(assert_chars, _LISTED_CHARS)
        self.interface = Interface.of(reference, entry_points, kind=kind)
        self._assert = _cached(parse_assert, self.interface, assert_chars)
        self._call = _cached(parse_call, self.interface, assert_chars)

    def suite(self, texts: Iterable[str]) -> Suite:
        """Turn the asserts of one suite into cases and rejections. Duplicates are left to the judge."""
        return gather_suite(map(self._assert, texts))

    def call(self, text: str) -> Gated:
        """Turn one replayed call, that is, the left side of an earlier assert, into a case or a rejection."""
        return self._call(text)


def _cached(parse: Callable[..., Gated], interface: Interface, assert_chars: int) -> _Reader:
    parse = partial(parse, interface=interface, assert_chars=assert_chars)
    # Each question has its own cache, so that a question with many texts cannot push out the texts of another question.
    parse_short = lru_cache(MAX_TEXTS_PER_QUESTION)(parse)

    def read(text: str) -> Gated:
        if len(text) <= _MAX_KEPT:
            return parse_short(text)
        return _read_long(parse, text)

    return read


@lru_cache(_MAX_LONG_TEXTS)
def _read_long(parse: _Reader, text: str) -> Gated:
    return parse(text)
