"""The static gate: text of an assert -> ``Case``, or a ``Rejection`` that says why not.

A case has the form ``assert CALL == LITERAL``, an optional message ignored (it is never evaluated):

- one comparison, ``==``, or a form that says the same: the sides exchanged, ``CALL is LITERAL``, ``CALL`` and
  ``not CALL`` (true and false), ``isclose(CALL, LITERAL)`` and others of ``condition.py``. What the reference returns
  must still equal the value: ``assert f(1)`` is incorrect where that is ``[3]``;
- CALL calls an entry point of the question with literal arguments: ``f(1)``, ``Stack([1]).pop()``,
  ``Solution().f("a")``, ``await f(1)``, ``asyncio.run(f(1))``. The result may be read with
  literal subscripts or one of a few builtins (``sorted(f(1))``), an object of a class under test with
  that class's own members. Reads that say little about the value are refused, or a test could be right
  about any program: slices (``f(1)[:0]``), members of other types (``f(1).imag``, ``f(1).clear()``), ``str``,
  ``max(f(1), 10**30)``, ``round(f(1), -30)``, a method that returns nothing where the object has more to
  show (``Stack([1]).push(2) == None``). So is ``int``: it cuts 2.9999999999 to 2, past any tolerance;
- no lambda, comprehension, conditional, assignment or name beginning with an underscore.

Two asserts are duplicates when they make the same call: argument spelling (``1``, ``+1``, ``0x1``,
``n=1``, a default left out), the type of equal numbers, and how the result is read do not count.
Otherwise one wrong answer would be found ``f(1)``, ``f(0x1)``, ``f(1)[0]``, ``list(f(1))`` times.

The call that is made has one text for all spellings of the same values: literals as ``literals.spell`` writes
them, arguments by position as far as the reference's signature says where they belong. Types of numbers,
the order of dicts, defaults left out and the read stay as written, since programs can tell them apart.
"""

import ast
from collections.abc import Iterable

from ..errors import UnencodableError, ValueFormatError
from ..values.encoding import encode
from ..values.literals import LiteralReader
from .call_reader import CallReader, RejectedError
from .case import Case, Kind, Rejection, RejectionReason, Suite
from .condition import compared
from .reference_interface import Interface, parse_untrusted

DEFAULT_ASSERT_CHARS = 65_536
_PARSE_ERRORS = (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError)


def parse_suite(texts: Iterable[str], interface: Interface, *, assert_chars: int = DEFAULT_ASSERT_CHARS) -> Suite:
    """Gate every assert of one suite; the second assert making a call is a duplicate."""
    return gather_suite(parse_assert(text, interface, assert_chars=assert_chars) for text in texts)


def gather_suite(asserts: Iterable[Case | Rejection]) -> Suite:
    """One suite of asserts that were gated one by one."""
    cases: list[Case] = []
    rejections: list[Rejection] = []
    seen: set[bytes] = set()
    for parsed in asserts:
        # By key and not by text: one wrong answer must not count once for each spelling of its call.
        if isinstance(parsed, Case) and parsed.key in seen:
            parsed = Rejection(text=parsed.text, reason=RejectionReason.DUPLICATE, detail=parsed.call.text)
        if isinstance(parsed, Rejection):
            rejections.append(parsed)
        else:
            seen.add(parsed.key)
            cases.append(parsed)
    return Suite(cases=tuple(cases), rejections=tuple(rejections))


def parse_assert(text: str, interface: Interface, *, assert_chars: int = DEFAULT_ASSERT_CHARS) -> Case | Rejection:
    """Gate one assert. Never raises on any text."""
    return _gated(text, interface, assert_chars, is_assert=True)


def parse_call(text: str, interface: Interface, *, assert_chars: int = DEFAULT_ASSERT_CHARS) -> Case | Rejection:
    """Gate one replayed call, the left side of an assert alone. Never raises on any text."""
    return _gated(text, interface, assert_chars, is_assert=False)


def _gated(text: str, interface: Interface, assert_chars: int, *, is_assert: bool) -> Case | Rejection:
    try:
        statement = _single_statement(text, assert_chars)
        if not isinstance(statement, ast.Assert if is_assert else ast.Expr):
            wanted = "an assert" if is_assert else "an expression"
            raise RejectedError(RejectionReason.UNPARSABLE, f"a {type(statement).__name__}, not {wanted}")
        reader = CallReader(interface, assert_chars)
        if not isinstance(statement, ast.Assert):
            read = reader.read(statement.value)
            return Case(
                text=text,
                call=read.call,
                key=read.key,
                family=read.family,
                expected="",
                expected_value=b"",
            )
        left, right, _ = compared(statement.test)
        read = reader.read(left)
        return Case(
            text=text,
            call=read.call,
            key=read.key,
            family=read.family,
            expected=_segment(text.strip(), right),
            expected_value=_expected_value(right, interface),
        )
    except RejectedError as rejected:
        return Rejection(text=text, reason=rejected.reason, detail=rejected.detail)
    except ValueFormatError as error:
        return Rejection(text=text, reason=RejectionReason.NOT_AN_EQUALITY, detail=str(error))
    # Hostile text makes the parser raise any of these; that is a rejection and no error of the judge.
    except _PARSE_ERRORS as error:
        detail = f"{type(error).__name__}: {error}"[:200]
        return Rejection(text=text, reason=RejectionReason.UNPARSABLE, detail=detail)


def _expected_value(node: ast.expr, interface: Interface) -> bytes:
    try:
        value = LiteralReader(arithmetic=False).read(node)
        if interface.kind is Kind.STDIN and not isinstance(value, str):
            raise ValueFormatError(f"a program prints text, not {type(value).__name__}")
        return encode(value)
    except (UnencodableError, ValueFormatError) as error:
        raise RejectedError(RejectionReason.EXPECTED_NOT_LITERAL, str(error)) from error


def _single_statement(text: str, assert_chars: int) -> ast.stmt:
    # Before it is parsed: nesting and length are what costs the parser time.
    if len(text) > assert_chars:
        raise RejectedError(
            RejectionReason.UNPARSABLE, f"{len(text)} characters, more than limits.assert_chars = {assert_chars}"
        )
    body = parse_untrusted(text.strip()).body
    if len(body) != 1:
        raise RejectedError(RejectionReason.UNPARSABLE, f"{len(body)} statements, not one")
    return body[0]


def _segment(text: str, node: ast.expr) -> str:
    """The source of one expression of ``text``; of a value that is not written there, its own."""
    if not hasattr(node, "lineno"):
        return ast.unparse(node)
    if text.isascii() and text.isprintable():  # one line, and offsets in bytes are offsets in characters
        return text[node.col_offset : node.end_col_offset]
    return ast.get_source_segment(text, node) or ast.unparse(node)
