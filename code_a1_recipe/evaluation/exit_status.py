"""What the commands that sample and judge tell of an error, and the exit status that goes with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from sandbox import SandboxConfigError, SandboxUnavailableError

from ..prompts import PromptError
from ..questions import QuestionError
from ..score_file import ScoreFileError
from .endpoint import ModelDownError, ModelError
from .response_store import MissingResponseError

DONE, OUTAGES_LEFT, REFUSED, INTERRUPTED = 0, 1, 2, 130

_REFUSALS: tuple[type[Exception], ...] = (
    QuestionError,
    PromptError,
    ScoreFileError,
    SandboxConfigError,
    NotADirectoryError,
    FileExistsError,
)


def status_of(run: Callable[[], int], *, output: Path, refusals: tuple[type[Exception], ...]) -> int:
    """The status that ``run`` returns; or of its error, which is told on stderr: 1 broke off, 2 refused, 130 Ctrl-C.

    Args:
        output: the folder that keeps what is done.
        refusals: the command's own errors about its input, beside the usual ones.
    """
    refused = _REFUSALS + refusals
    try:
        return run()
    except ModelError as error:
        sys.stderr.write(f"error: {error}\n")
        return OUTAGES_LEFT if isinstance(error, ModelDownError) else REFUSED
    except refused as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    except MissingResponseError as error:
        sys.stderr.write(f"error: {error}\n")
        return OUTAGES_LEFT
    except (SandboxUnavailableError, OSError) as error:
        sys.stderr.write(f"error: {error}. What is done is in {output}; repeat the command to go on\n")
        return OUTAGES_LEFT
    except KeyboardInterrupt:
        sys.stderr.write(f"\ninterrupted; repeat the command to go on, what is done is in {output}\n")
        return INTERRUPTED
