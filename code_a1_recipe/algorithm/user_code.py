"""Users' own code: an error in it becomes an error of the recipe that names its line."""

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CodeA1Error


@contextmanager
def user_code(where: str, of: Any) -> Iterator[None]:
    """Turn what a user's code raises inside the block into one error.

    Args:
        where: key, name and question, for the message.
        of: the user's function, class or object. The message names the last line of its module in the traceback.

    Raises:
        CodeA1Error: the code raised an exception, or called ``sys.exit``.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        # By module, since inspect finds no source file of an object with `__call__`.
        file = getattr(inspect.getmodule(of), "__file__", None)
        # The last frame of all is often in a library, or in the check of what the function returned.
        own_lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        place = f" ({file}, line {own_lines[-1]})" if own_lines else ""
        raise CodeA1Error(f"{where}: {type(error).__name__}: {error}{place}") from error
