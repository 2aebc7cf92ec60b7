"""Turns an error in a user's own code into an error of the recipe, which names the line."""

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CodeA1Error


@contextmanager
def user_code(where: str, of: Any) -> Iterator[None]:
    """Turn any exception of a user's code inside the ``with`` block into a ``CodeA1Error``.

    Args:
        where: place of the code for the message, such as its key, its name and the question.
        of: the user's function, class or object. The message names the last line of the traceback that is in the module
            of ``of``.

    Raises:
        CodeA1Error: the code raised an exception, or called ``sys.exit``.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        # The module gives the file, because `inspect` finds no source file for an object with `__call__`.
        file = getattr(inspect.getmodule(of), "__file__", None)
        # The last line of the traceback is often in a library, or in a check of the function's result.
        own_lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        place = f" ({file}, line {own_lines[-1]})" if own_lines else ""
        raise CodeA1Error(f"{where}: {type(error).__name__}: {error}{place}") from error
