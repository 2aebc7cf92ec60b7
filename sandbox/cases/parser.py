"""The static gate turns the text of an assert into a ``Case``, or into a ``Rejection`` with its reason.

A case has the form ``assert CALL == LITERAL``. A message after the condition is ignored and never evaluated.

- A case has one comparison with ``==``. These forms count as equivalent: ``LITERAL == CALL``, ``CALL is LITERAL``,
  ``CALL`` (equal to ``True``), ``not CALL`` (equal to ``False``), ``isclose(CALL, LITERAL)``, and the other forms of
  ``condition.py``. In all forms, the assert is correct only if the reference's result equals the value: ``assert f(1)``
  is incorrect if the reference returns ``[3]``.
- CALL calls an entry point of the question with literal arguments: ``f(1)``, ``Stack([1]).pop()``,
  ``Solution().f("a")``, ``await f(1)``, ``asyncio.run(f(1))``. The test may select a part of the result with literal
  subscripts, or wrap the result in one of a few builtins (``sorted(f(1))``). If the result is an object of a class
  under test, the test may use the members of that class.
- Some expressions around the call are refused, because they give the same value for almost any program: slices
  (``f(1)[:0]``), members of builtin types (``f(1).imag``, ``f(1).clear()``), ``str``, ``max(f(1), 10**30)``,
  ``round(f(1), -30)``. For the same reason, ``Stack([1]).push(2) == None`` is refused if ``push`` returns nothing and
  the object has other members. ``int`` is refused as well, because it cuts 2.9999999999 to 2, where no tolerance helps.
- Lambdas, comprehensions, conditionals, assignments and names that begin with an underscore are refused.

All spellings of the same values (``1``, ``+1``, ``0x1``, ``n=1``) get one canonical text of the call.
``literals.spell`` writes the literals. Keyword arguments become positional arguments if the reference's signature tells
their positions. Types of numbers, the order of dicts, omitted defaults and the expressions around the call stay as
written, because programs can tell them apart. The judge decides which calls are one case, because the reference must be
asked.
"""

import ast
from collections.abc import Iterable

from ..errors import UnencodableError, ValueFormatError
from ..values.encoding import encode
from ..values.literals import LiteralReader
from .call_reader import CallReader, RejectedError
from .case import Case, Gated, Kind, Rejection, RejectionReason, Suite
from .condition import compared
from .reference_interface import PARSE_ERRORS, Interface, parse_untrusted

DEFAULT_ASSERT_CHARS = 65_536
_GATE_ERRORS = (TypeError, ArithmeticError, *PARSE_ERRORS)


def parse_suite(texts: Iterable[str], interface: Interface) -> Suite:
    """Turn the asserts of one suite into cases and rejections. Duplicates are left to the judge."""
    return gather_suite(parse_assert(text, interface) for text in texts)


def gather_suite(asserts: Iterable[Gated]) -> Suite:
    """Make a suite of cases and rejections."""
    cases: list[Case] = []
    rejections: list[Rejection] = []
    for parsed in asserts:
        if isinstance(parsed, Rejection):
            rejections.append(parsed)
        else:
            cases.append(parsed)
    return Suite(cases=tuple(cases), rejections=tuple(rejections))


def parse_assert(text: str, interface: Interface, *, assert_chars: int = DEFAULT_ASSERT_CHARS) -> Gated:
    """Turn the source of one assert into a case or a rejection. Never raises, whatever the text."""
    return _gated(text, interface, assert_chars, is_assert=True)


def parse_call(text: str, interface: Interface, *, assert_chars: int = DEFAULT_ASSERT_CHARS) -> Gated:
    """Turn the source of one replayed call into a case or a rejection. Never raises."""
    return _gated(text, interface, assert_chars, is_assert=False)


def _gated(text: str, interface: Interface, assert_chars: int, *, is_assert: bool) -> Gated:
    try:
        return _case(text, interface, assert_chars, is_assert=is_assert)
    except RejectedError as error:
        reason, detail = error.reason, error.detail
    except ValueFormatError as error:
        reason, detail = RejectionReason.NOT_AN_EQUALITY, str(error)
    except _GATE_ERRORS as error:
        # Hostile text can make the parser raise any of these errors. The judge itself works, so the text is rejected.
        reason = RejectionReason.UNPARSABLE
        detail = f"{type(error).__name__}: {error}"[:200]
    return Rejection(text=text, reason=reason, detail=detail)


def _case(text: str, interface: Interface, assert_chars: int, *, is_assert: bool) -> Case:
    right: ast.expr | None = None
    match _single_statement(text, assert_chars):
        case ast.Assert(test=condition) if is_assert:
            left, right, _ = compared(condition)
        case ast.Expr(expression) if not is_assert:
            left = expression
        case statement:
            wanted = "an assert" if is_assert else "an expression"
            raise _unparsable(f"a {type(statement).__name__}, not {wanted}")
    call, key = CallReader(interface, assert_chars).read(left)
    expected, expected_value = "", b""
    if right is not None:
        expected = _segment(text.strip(), right)
        expected_value = _expected_value(right, interface)
    return Case(
        text=text,
        call=call,
        key=key,
        expected=expected,
        expected_value=expected_value,
    )


def _expected_value(node: ast.expr, interface: Interface) -> bytes:
    try:
        value = LiteralReader(arithmetic=False).read(node)
        if interface.kind is Kind.STDIN and not isinstance(value, str):
            raise ValueFormatError(f"a program prints text, not {type(value).__name__}")
        return encode(value)
    except (UnencodableError, ValueFormatError) as error:
        raise RejectedError(RejectionReason.EXPECTED_NOT_LITERAL, str(error)) from error


def _single_statement(text: str, assert_chars: int) -> ast.stmt:
    # The length is checked before the text is parsed, because parsing a long or deeply nested text takes long.
    if len(text) > assert_chars:
        raise _unparsable(f"{len(text)} characters, more than limits.assert_chars = {assert_chars}")
    body = parse_untrusted(text.strip()).body
    if len(body) != 1:
        raise _unparsable(f"{len(body)} statements, not one")
    return body[0]


def _unparsable(detail: str) -> RejectedError:
    return RejectedError(RejectionReason.UNPARSABLE, detail)


def _segment(text: str, node: ast.expr) -> str:
    """Return the source of one expression of ``text``, or of a node that ``compared`` has added."""
    if not hasattr(node, "lineno"):
        return ast.unparse(node)
    # In one line of ASCII text, byte offsets are also character offsets.
    if text.isascii() and text.isprintable():
        return text[node.col_offset : node.end_col_offset]
    return ast.get_source_segment(text, node) or ast.unparse(node)
