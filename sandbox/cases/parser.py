"""The static gate turns the text of an assert into a ``Case``, or into a ``Rejection`` with its reason.

A case has the form ``assert CALL == LITERAL``. A message behind it is ignored and never evaluated.

- It has one comparison with ``==``, or a form that says the same: exchanged sides, ``CALL is LITERAL``, ``CALL`` and
  ``not CALL`` (true and false), ``isclose(CALL, LITERAL)`` and others of ``condition.py``. The reference's result
  must still equal the value: ``assert f(1)`` is incorrect if the reference returns ``[3]``.
- CALL calls an entry point of the question with literal arguments: ``f(1)``, ``Stack([1]).pop()``,
  ``Solution().f("a")``, ``await f(1)``, ``asyncio.run(f(1))``. A test may read the result with literal subscripts or
  with one of a few builtins (``sorted(f(1))``), and an object of a class under test with that class's own members.
- Reads that say little about the value are refused, because such a test could be right about any program: slices
  (``f(1)[:0]``), members of other types (``f(1).imag``, ``f(1).clear()``), ``str``, ``max(f(1), 10**30)``,
  ``round(f(1), -30)``, and a method that returns nothing if the object has more to show
  (``Stack([1]).push(2) == None``). ``int`` is refused as well, because it cuts 2.9999999999 to 2, past any tolerance.
- Lambdas, comprehensions, conditionals, assignments and names that begin with an underscore are refused.

Two asserts are duplicates if they make the same call. The spelling of arguments (``1``, ``+1``, ``0x1``, ``n=1``, an
omitted default), the type of equal numbers and the read of the result do not count. Otherwise one bug would be
detected four times, by ``f(1)``, ``f(0x1)``, ``f(1)[0]`` and ``list(f(1))``.

All spellings of the same values share one text of the call. ``literals.spell`` writes the literals, and arguments
stand by position as far as the reference's signature tells their places. Types of numbers, the order of dicts,
omitted defaults and the read stay as written, because programs can tell them apart.
"""

import ast
from collections.abc import Iterable

from ..errors import UnencodableError, ValueFormatError
from ..values.encoding import encode
from ..values.literals import LiteralReader
from .call_reader import CallReader, RejectedError
from .case import Case, Kind, Rejection, RejectionReason, Suite
from .condition import compared
from .reference_interface import PARSE_ERRORS, Interface, parse_untrusted

DEFAULT_ASSERT_CHARS = 65_536
_GATE_ERRORS = (TypeError, ArithmeticError, *PARSE_ERRORS)


def parse_suite(texts: Iterable[str], interface: Interface, *, assert_chars: int = DEFAULT_ASSERT_CHARS) -> Suite:
    """Gate every assert of one suite. A second assert that makes the same call is a duplicate."""
    return gather_suite(parse_assert(text, interface, assert_chars=assert_chars) for text in texts)


def gather_suite(asserts: Iterable[Case | Rejection]) -> Suite:
    """Join asserts that were gated one by one, and refuse the duplicates among them."""
    cases: list[Case] = []
    rejections: list[Rejection] = []
    seen: set[bytes] = set()
    for parsed in asserts:
        # Compared by key and not by text: one bug must not count once for each spelling of its call.
        if isinstance(parsed, Case) and parsed.key in seen:
            parsed = Rejection(text=parsed.text, reason=RejectionReason.DUPLICATE, detail=parsed.call.text)
        if isinstance(parsed, Rejection):
            rejections.append(parsed)
        else:
            seen.add(parsed.key)
            cases.append(parsed)
    return Suite(cases=tuple(cases), rejections=tuple(rejections))


def parse_assert(text: str, interface: Interface, *, assert_chars: int = DEFAULT_ASSERT_CHARS) -> Case | Rejection:
    """Gate one assert. No text makes it raise."""
    return _gated(text, interface, assert_chars, is_assert=True)


def parse_call(text: str, interface: Interface, *, assert_chars: int = DEFAULT_ASSERT_CHARS) -> Case | Rejection:
    """Gate one replayed call, which is the left side of an assert. No text makes it raise."""
    return _gated(text, interface, assert_chars, is_assert=False)


def _gated(text: str, interface: Interface, assert_chars: int, *, is_assert: bool) -> Case | Rejection:
    try:
        statement = _single_statement(text, assert_chars)
        if not isinstance(statement, ast.Assert if is_assert else ast.Expr):
            wanted = "an assert" if is_assert else "an expression"
            raise RejectedError(RejectionReason.UNPARSABLE, f"a {type(statement).__name__}, not {wanted}")
        right = None
        if isinstance(statement, ast.Assert):
            left, right, _ = compared(statement.test)
        else:
            left = statement.value
        call, key, family = CallReader(interface, assert_chars).read(left)
        return Case(
            text=text,
            call=call,
            key=key,
            family=family,
            expected=_segment(text.strip(), right) if right else "",
            expected_value=_expected_value(right, interface) if right else b"",
        )
    except RejectedError as rejected:
        return Rejection(text=text, reason=rejected.reason, detail=rejected.detail)
    except ValueFormatError as error:
        return Rejection(text=text, reason=RejectionReason.NOT_AN_EQUALITY, detail=str(error))
    # Hostile text can make the parser raise any of these. That is a rejection and no error of the judge.
    except _GATE_ERRORS as error:
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
    # Checked before the text is parsed, because the parser's time grows with length and nesting.
    if len(text) > assert_chars:
        raise RejectedError(
            RejectionReason.UNPARSABLE, f"{len(text)} characters, more than limits.assert_chars = {assert_chars}"
        )
    body = parse_untrusted(text.strip()).body
    if len(body) != 1:
        raise RejectedError(RejectionReason.UNPARSABLE, f"{len(body)} statements, not one")
    return body[0]


def _segment(text: str, node: ast.expr) -> str:
    """Return the source of one expression of ``text``. ``compared`` makes values that no text contains."""
    if not hasattr(node, "lineno"):
        return ast.unparse(node)
    if text.isascii() and text.isprintable():  # the text is one line, and byte offsets are character offsets
        return text[node.col_offset : node.end_col_offset]
    return ast.get_source_segment(text, node) or ast.unparse(node)
