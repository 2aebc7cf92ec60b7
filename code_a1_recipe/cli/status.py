"""The message and the exit status of a command's end. No other module decides them.

0: done. 1: work that had started broke off, or a check found failures. 2: the user's input was refused before any work.
130: Ctrl-C. 128 + n: any other signal n.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import typer

from sandbox import SandboxConfigError, SandboxUnavailableError

from ..errors import CodeA1Error, InputError
from ..jobs.outputs import Report

Options = TypeVar("Options")
DONE, BROKE_OFF, REFUSED = 0, 1, 2
SIGNAL_BASE = 128
_EXTRAS = (
    "what commands load beyond the package's own needs comes with its extras: `bash run_codea1.sh setup`, or "
    "`pip install 'code-a1-recipe[cpu,eval]'`, for cards [gpu,eval]"
)


def run(work: Callable[[], object]) -> int:
    """Call ``work`` and return the exit status. Errors become messages on stderr; bugs keep their traceback."""
    try:
        work()
    except SystemExit as done:  # Typer's own: help, usage errors, Ctrl-C
        return done.code if isinstance(done.code, int) else BROKE_OFF if done.code else DONE
    except CodeA1Error as error:
        return _report(error, error.exit_status)
    except SandboxConfigError as error:
        return _report(error, REFUSED)
    except SandboxUnavailableError as error:
        error.add_note("the sandbox is down; try `python -m sandbox check`")
        return _report(error, BROKE_OFF)
    except ModuleNotFoundError as error:
        if type(error) is not ModuleNotFoundError:  # Ray gives a worker's error this class, too, in a subclass
            raise
        error.add_note(_EXTRAS)
        return _report(error, REFUSED)
    except BrokenPipeError:  # `... | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKE_OFF
    except (FileExistsError, NotADirectoryError) as error:
        return _report(InputError(f"{error.filename} is a file where a folder is needed; name another"), REFUSED)
    except OSError as error:
        return _report(error, BROKE_OFF)
    return DONE


@contextmanager
def resumable(output: Path) -> Iterator[None]:
    """Surround work that a repeated command resumes. If it breaks off, the message names the finished part."""
    hint = f"what is done is in {output}; repeat the command to resume"
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"\ninterrupted; {hint}\n")
        raise
    except (CodeA1Error, SandboxUnavailableError, OSError) as error:
        if getattr(error, "exit_status", BROKE_OFF) == BROKE_OFF:
            error.add_note(hint)
        raise


def resume(output: Path, run: Callable[[Options], Report], options: Options) -> None:
    """Run a command that resumes from ``output``, and finish with its report."""
    with resumable(output):
        report = run(options)
    finish(report)


def finish(report: Report) -> None:
    """Print a report.

    Raises:
        CodeA1Error: the report says that something failed.
    """
    if report.text:
        typer.echo(report.text)
    if report.failure:
        raise CodeA1Error(report.failure)


def _report(error: Exception, exit_status: int) -> int:
    kind = "" if exit_status > SIGNAL_BASE else "error: "
    sys.stderr.write("\n".join([f"{kind}{error}", *getattr(error, "__notes__", ())]) + "\n")
    return exit_status
