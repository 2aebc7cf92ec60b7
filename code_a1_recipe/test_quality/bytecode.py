"""A key that is equal for programs that compile to the same instructions and constants."""

import types
import warnings
from typing import Any

from ..files import fingerprint

_FILE = "<compared>"
# The compiler's remarks on style (`x is 1`) are not for our log, and must not become errors under -W error.
warnings.filterwarnings("ignore", module=_FILE)


_DECIDING = (
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_flags",
    "co_name",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_code",
    "co_exceptiontable",
)
"""Attributes of a code object that decide how it behaves, beside its constants."""


def bytecode_key(source: str) -> str:
    """The key of a program; line numbers do not count.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the source does not compile.
    """
    code = compile(source, _FILE, "exec", dont_inherit=True, optimize=0)
    return fingerprint(repr(_essence(code)))


def _essence(value: Any) -> Any:
    """The parts of a constant or code object that decide how a program behaves; their text tells all apart."""
    if isinstance(value, types.CodeType):
        constants = tuple(map(_essence, value.co_consts))
        return ("code", *(getattr(value, name) for name in _DECIDING), constants)
    if isinstance(value, tuple):
        return "tuple", tuple(map(_essence, value))
    if isinstance(value, frozenset):
        items = [repr(_essence(item)) for item in value]
        return "frozenset", tuple(sorted(items))
    return type(value).__name__, repr(value)
