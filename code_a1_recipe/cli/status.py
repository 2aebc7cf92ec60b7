"""How a command ends: its last message and its exit status. No other module decides the message or the status.

0: done. 1: work that had started broke off, or a check found failures. 2: the input was refused before any work.
130: Ctrl-C. 128 + n: another signal n.
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
    "some commands need the packages of an extra: run `bash run_codea1.sh setup`, or "
    "`pip install 'code-a1-recipe[cpu,eval]'` ([gpu,eval] for GPUs)"
)


def run(work: Callable[[], object]) -> int:
    """Call ``work`` and return the exit status. Errors become messages on stderr, but bugs keep their traceback."""
    try:
        work()
    except SystemExit as done:  # Typer raises SystemExit after help, usage errors and Ctrl-C
        if isinstance(done.code, int):
            return done.code
        return BROKE_OFF if done.code else DONE
    except CodeA1Error as error:
        return _report(error, error.exit_status)
    except SandboxConfigError as error:
        return _report(error, REFUSED)
    except SandboxUnavailableError as error:
        error.add_note("the sandbox is down; try `python -m sandbox check`")
        return _report(error, BROKE_OFF)
    except ModuleNotFoundError as error:
        if type(error) is not ModuleNotFoundError:  # Ray raises a worker's error as a subclass of the error's own class
            raise
        error.add_note(_EXTRAS)
        return _report(error, REFUSED)
    except BrokenPipeError:  # the reader of the output has ended, as in `... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKE_OFF
    except (FileExistsError, NotADirectoryError) as error:
        return _report(InputError(f"{error.filename} is a file where a folder is needed; name another"), REFUSED)
    except OSError as error:
        return _report(error, BROKE_OFF)
    return DONE


@contextmanager
def resumable(output: Path) -> Iterator[None]:
    """Run a block of work that a repeated command can resume.

    If the work breaks off, the message says where the finished work is.
    """
    hint = f"finished work is in {output}; repeat the command to resume"
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
    """Run a command that can resume from ``output``, and print its report."""
    with resumable(output):
        report = run(options)
    finish(report)


def finish(report: Report) -> None:
    """Print a report.

    Raises:
        CodeA1Error: the report has a failure.
    """
    if report.text:
        typer.echo(report.text)
    if report.failure:
        raise CodeA1Error(report.failure)


def _report(error: Exception, exit_status: int) -> int:
    lines = [str(error), *getattr(error, "__notes__", ())]
    if exit_status <= SIGNAL_BASE:
        lines[0] = f"error: {lines[0]}"
    sys.stderr.write("\n".join(lines) + "\n")
    return exit_status
