"""What a command may replace: no input of its own, and no existing file that it did not write, unless told so.

A command that is taken up again meets the files of its own unfinished work. It knows them by their digests, which stand
in ``OUTPUT.unfinished.json`` until the work is finished.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import OutputError
from ..files import file_digest, write_whole


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a command prints when its outputs are written."""

    text: str
    failure: str = ""
    """Why the result is incomplete, or what was found to be wrong; the command ends with status 1."""


def check_outputs(
    outputs: Sequence[Path], *, inputs: Iterable[Path], overwrite: bool, work_files: Sequence[Path]
) -> None:
    """Refuse what would destroy a file; called before any work.

    Args:
        outputs: files that the command writes, the one that ``--output`` names first.
        inputs: files that it reads.
        overwrite: existing outputs may be replaced; inputs never.
        work_files: what it keeps beside, for going on.

    Raises:
        OutputError: an output is an input, or exists and is not of this command's unfinished work.
    """
    written = {path.resolve(): path for path in (*outputs, *work_files, _note(outputs[0]))}
    for path in inputs:
        if (output := written.get(path.resolve())) is not None:
            raise OutputError(
                f"--output {outputs[0]}: would overwrite the input {path} (by {output}); choose another output"
            )
    own = _noted(outputs[0])
    for output in outputs:
        if output.exists() and not overwrite and own.get(output.name) != _digest(output):
            raise OutputError(
                f"--output {outputs[0]}: {output} exists; --overwrite replaces it, or choose another output"
            )


def check_folder(output: Path, *, own: Sequence[str]) -> None:
    """Refuse a folder with files of somebody else's; called before any work.

    Args:
        output: the folder of a command's results; it may be missing or empty.
        own: names of which one is in every folder that the command has written.

    Raises:
        OutputError: it is a file, or has files and none of ``own``.
    """
    if not output.exists():
        return
    if not output.is_dir():
        raise OutputError(f"--output {output} is a file; name a folder")
    there = {path.name for path in output.iterdir()}
    if there and there.isdisjoint(own):
        raise OutputError(
            f"--output {output} holds {min(there)!r}, which this command did not write; name a new folder, or that of "
            "an earlier call"
        )


def note_work(outputs: Sequence[Path], *, is_finished: bool) -> None:
    """Remember the files of unfinished work: the repeated command may replace them, other files need ``--overwrite``.

    Raises:
        OSError: that cannot be written.
    """
    if is_finished:
        _note(outputs[0]).unlink(missing_ok=True)
        return
    digests = {path.name: _digest(path) for path in outputs if path.exists()}
    write_whole(_note(outputs[0]), json.dumps(digests, indent=2) + "\n")


def _note(output: Path) -> Path:
    return output.with_name(f"{output.name}.unfinished.json")


def _noted(output: Path) -> dict[str, str]:
    try:
        return dict(json.loads(_note(output).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _digest(path: Path) -> str:
    return file_digest(path).hex() if path.is_file() else ""
