"""Starts new interpreters that load only a few files of this package.

Every process that such an interpreter forks inherits its modules. Therefore ``sandbox/__init__.py``, which loads the
whole package, is not executed there.
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
# -P and -s keep the working directory and the user's packages off the path. -B writes no byte code.
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
}


def clean_interpreter(statement: str) -> list[str]:
    """Return the command that runs a statement in a new interpreter.

    There ``sandbox`` is an empty package, whose modules can be imported one by one. Arguments may be appended to the
    command, and the statement finds them in ``sys.argv``.
    """
    return [sys.executable, *_FLAGS, "-c", _BOOTSTRAP.format(folder=PACKAGE_FOLDER, statement=statement)]
