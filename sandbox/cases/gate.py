"""The static gate with a memory: each text of a question is read once, however many candidates it is written for.

Suites repeat one another: S suites of C candidates of one question share many asserts, and reading an
assert costs about as much as judging it.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache, partial

from .case import Case, Kind, Rejection, Suite
from .parser import gather_suite, parse_assert, parse_call
from .reference_interface import Interface

MAX_TEXTS_PER_QUESTION = 1024
_MAX_KEPT = 256
"""Characters; of longer texts only the last ``_MAX_LONG_TEXTS`` of all questions are kept, for the sake of memory."""
_MAX_LONG_TEXTS = 512


class Gate:
    """The gate of one question. Thread-safe.

    Args:
        reference: source of the reference solution.
        entry_points: names that tests must call; empty means all at top level.
        assert_chars: longest text that is read.
        kind: what tests do with a program.
    """

    def __init__(
        self, reference: str, entry_points: tuple[str, ...], *, assert_chars: int, kind: Kind = Kind.FUNCTIONS
    ) -> None:
        self.interface = Interface.of(reference, entry_points, kind=kind)
        self._parse_assert = partial(
            parse_assert,
            interface=self.interface,
            assert_chars=assert_chars,
        )
        self._parse_call = partial(parse_call, interface=self.interface, assert_chars=assert_chars)
        # A cache a question: one question's many texts cannot push out another one's.
        self._kept_asserts = lru_cache(MAX_TEXTS_PER_QUESTION)(self._parse_assert)
        self._kept_calls = lru_cache(MAX_TEXTS_PER_QUESTION)(self._parse_call)

    def suite(self, texts: Iterable[str]) -> Suite:
        """Gate every assert of one suite; the second assert making a call is a duplicate."""
        return gather_suite(
            self._kept_asserts(text) if len(text) <= _MAX_KEPT else _read_long(self._parse_assert, text)
            for text in texts
        )

    def call(self, text: str) -> Case | Rejection:
        """Gate one replayed call, the left side of an assert alone."""
        return self._kept_calls(text) if len(text) <= _MAX_KEPT else _read_long(self._parse_call, text)


@lru_cache(_MAX_LONG_TEXTS)
def _read_long(parse: Callable[[str], Case | Rejection], text: str) -> Case | Rejection:
    return parse(text)
