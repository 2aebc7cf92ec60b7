"""The command of an interpreter that loads only the modules of this package that it needs.

Every program runs in a fork of such an interpreter and inherits its modules. So the interpreter does not execute
``sandbox/__init__.py``, which loads the whole package.
"""

import os
import sys

PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Folder of the package ``sandbox``."""
_BOOTSTRAP = """\
import sys, types
package = sys.modules["sandbox"] = types.ModuleType("sandbox")
package.__path__ = [{folder!r}]
{statement}
"""
# -P and -s keep the working directory and the user's packages off the search path. -B writes no byte code.
_FLAGS = ("-P", "-s", "-B", "-X", "utf8")
CLEAN_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    # For each further arena, glibc reserves 64 MiB of the address space that programs may have. Without this limit, a
    # dozen threads would need all of it.
    "MALLOC_ARENA_MAX": "2",
}


def clean_interpreter(statement: str) -> list[str]:
    """Return the command that runs a statement in a new interpreter.

    In the new interpreter, ``sandbox`` is an empty package, whose modules can be imported one by one. The caller may
    append arguments to the command. The statement finds these arguments in ``sys.argv``.
    """
    return [sys.executable, *_FLAGS, "-c", _BOOTSTRAP.format(folder=PACKAGE_FOLDER, statement=statement)]
