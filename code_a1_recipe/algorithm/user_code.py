"""A user's own code: whatever it raises becomes an error of the recipe that names its line."""

import inspect
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CodeA1Error


@contextmanager
def user_code(where: str, of: Any) -> Iterator[None]:
    """Run code of a user's.

    Args:
        where: key, name and question, for the message.
        of: the user's function or class, whose file is looked for in the traceback.

    Raises:
        CodeA1Error: the code raised something, or ended the process.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        file = inspect.getsourcefile(of)
        # The last frame is often in a library, or in the check of what the function returned.
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        place = f" ({file}, line {own[-1].lineno})" if own else ""
        raise CodeA1Error(f"{where}: {type(error).__name__}: {error}{place}") from error
