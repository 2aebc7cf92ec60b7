"""What the judge said of each reference, on disk: a command that broke off goes on where it stopped.

JSON lines that are only ever appended: first the settings that decide what is found, then one line a question, keyed by
a digest of what was judged. Questions that a later command asks for again, in whatever file, are not judged again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from .reference_facts import ReferenceFacts

FORMAT = 1


class JudgedFileError(ValueError):
    """The file cannot be written or taken up again. Says which rule, where, and what to do instead."""


class JudgedFile:
    """One file of facts, open for appending by this process alone.

    Args:
        path: made where missing.
        settings: plain JSON values that decide what the judge finds.

    Raises:
        JudgedFileError: it holds something else, facts of other settings, or another process writes it.
    """

    def __init__(self, path: Path, *, settings: Mapping[str, Any]) -> None:
        self.path = path
        self._settings = json.loads(json.dumps({"format": FORMAT, **settings}))
        self._facts: dict[str, ReferenceFacts] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = path.open("ab", buffering=0)
        except OSError as error:
            raise JudgedFileError(f"{path}: cannot be written: {error}; choose another --output") from error
        try:
            self._lock()
            self._take_up()
        except BaseException:
            self._handle.close()
            raise

    def __len__(self) -> int:
        return len(self._facts)

    def get(self, key: str) -> ReferenceFacts | None:
        """What is known of a question; None where it was not judged yet."""
        return self._facts.get(key)

    def append(self, key: str, facts: ReferenceFacts) -> None:
        """Keep the facts of one question; a kill leaves a whole line or a cut-off last one."""
        self._write({"key": key, **facts.record()})
        self._facts[key] = facts

    def close(self) -> None:
        """Let others write the file. Idempotent."""
        self._handle.close()

    def __enter__(self) -> JudgedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JudgedFileError(
                f"{self.path}: is being written by another process; wait for it, or choose another --output"
            ) from error

    def _take_up(self) -> None:
        """Read the facts that are there; cut off a torn last line."""
        with self.path.open("rb") as lines:
            end = 0
            for number, line in enumerate(lines):
                if not line.endswith(b"\n"):
                    self._handle.truncate(end)
                    break
                self._take_line(line, number)
                end += len(line)
        if not end:
            self._write(self._settings)

    def _take_line(self, line: bytes, number: int) -> None:
        try:
            row = json.loads(line)
            if number == 0:
                self._check_settings(dict(row))
            else:
                self._facts[str(row["key"])] = ReferenceFacts.from_record(row)
        except JudgedFileError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise JudgedFileError(
                f"{self.path}: line {number + 1} is no fact of a judged reference; something else wrote there. Remove "
                "the file, or choose another --output"
            ) from error

    def _check_settings(self, earlier: Mapping[str, Any]) -> None:
        differences = [
            f"{name} was {json.dumps(earlier.get(name))}, now is {json.dumps(self._settings.get(name))}"
            for name in sorted({*earlier, *self._settings})
            if earlier.get(name) != self._settings.get(name)
        ]
        if differences:
            raise JudgedFileError(
                f"{self.path}: references were judged with other settings: {'; '.join(differences)}. Repeat the first "
                "settings, choose another --output, or remove the file to judge all of them again"
            )

    def _write(self, row: Mapping[str, Any]) -> None:
        data = json.dumps(row).encode() + b"\n"
        if self._handle.write(data) != len(data):
            raise OSError(28, os.strerror(28), str(self.path))
