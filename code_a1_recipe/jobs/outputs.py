"""Rules for output files. No command replaces its inputs. ``--overwrite`` is needed to replace any other file.

A repeated command may replace the files of its own unfinished work without ``--overwrite``. The command recognises its
own files by their digests in ``OUTPUT.unfinished.json``. At the end of the work, the command removes
``OUTPUT.unfinished.json``.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import OutputError
from ..files import file_digest, write_whole


@dataclass(frozen=True, kw_only=True)
class Report:
    """The text that a command prints at its end."""

    text: str
    failure: str = ""
    """Reason why the result is incomplete or bad; empty for a good result. With a reason the exit status is 1."""


def check_outputs(
    outputs: Sequence[Path],
    *,
    inputs: Iterable[Path],
    overwrite: bool,
    work_files: Sequence[Path],
) -> None:
    """Refuse outputs that would destroy a file. Call this function before any work.

    Args:
        outputs: files that the command writes. The first is the file that ``--output`` names.
        inputs: files that the command reads.
        overwrite: whether existing outputs may be replaced. Inputs are never replaced.
        work_files: files beside the outputs, from which a repeated command resumes.

    Raises:
        OutputError: an output is also an input, or exists and does not come from unfinished work of this command.
    """
    written = {path.resolve(): path for path in (*outputs, *work_files, _note(outputs[0]))}
    for path in inputs:
        if (output := written.get(path.resolve())) is not None:
            raise OutputError(
                f"--output {outputs[0]}: would overwrite the input {path} (by {output}); choose another output"
            )
    own = {}
    with suppress(OSError, ValueError, TypeError):
        own = dict(json.loads(_note(outputs[0]).read_text(encoding="utf-8")))
    for output in outputs:
        if overwrite or not output.exists():
            continue
        if own.get(output.name) != _digest(output):
            raise OutputError(
                f"--output {outputs[0]}: {output} exists; --overwrite replaces it, or choose another output"
            )


def note_work(outputs: Sequence[Path], *, is_finished: bool) -> None:
    """Note the outputs of unfinished work, so that the repeated command may replace them without ``--overwrite``.

    Raises:
        OSError: the note cannot be written.
    """
    if is_finished:
        _note(outputs[0]).unlink(missing_ok=True)
        return
    digests = {path.name: _digest(path) for path in outputs if path.exists()}
    write_whole(_note(outputs[0]), json.dumps(digests, indent=2) + "\n")


def _note(output: Path) -> Path:
    return output.with_name(f"{output.name}.unfinished.json")


def _digest(path: Path) -> str:
    return file_digest(path).hex() if path.is_file() else ""
