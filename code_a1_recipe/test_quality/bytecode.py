"""A key that programs share which compile to the same instructions and constants."""

import types
import warnings
from typing import Any

from ..files import fingerprint

_FILE = "<compared>"
# The compiler's remarks on style (`x is 1`) are not for our log, and must not become errors under -W error.
warnings.filterwarnings("ignore", module=_FILE)


def bytecode_key(source: str) -> str:
    """The key of a program; line numbers do not count.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: the source does not compile.
    """
    code = compile(source, _FILE, "exec", dont_inherit=True, optimize=0)
    return fingerprint(repr(_essence(code)))


def _essence(value: Any) -> Any:
    """What of a constant or code object decides how a program behaves, in a form whose text tells all apart."""
    if isinstance(value, types.CodeType):
        numbers = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount, value.co_flags)
        names = (value.co_name, value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
        handlers = getattr(value, "co_exceptiontable", b"")
        return "code", numbers, names, value.co_code, handlers, tuple(map(_essence, value.co_consts))
    if isinstance(value, tuple):
        return "tuple", tuple(map(_essence, value))
    if isinstance(value, frozenset):
        return "frozenset", tuple(sorted(repr(_essence(item)) for item in value))
    return type(value).__name__, repr(value)
