"""The resumable store that all long commands use: a file of JSON lines to which rows are appended.

``OUT`` holds one row for each item. A column, often ``item``, holds the item's key. ``OUT.settings.json`` holds the
inputs and settings from which the rows were made. A repeated command continues ``OUT`` only if its inputs and settings
are unchanged.
"""

import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from sandbox import Closing

from ..errors import OutputError
from ..files import write_whole

Row = dict[str, Any]
Key = int | str


class JsonlStore(Closing):
    """One output file. While the store is open, no other process can append to the file.

    Args:
        path: file of JSON lines; it is created if it is missing.
        settings: plain JSON values that decide the content of the rows.
        key: name of the column that identifies a row. A column called ``item`` holds integers; any other key column
            holds texts.

    Raises:
        OutputError: the file is no store or has rows of other settings, or another process writes it.
    """

    def __init__(self, path: Path, *, settings: Mapping[str, Any], key: str = "key") -> None:
        self.path = path
        self._key = key
        self.settings_path = files_of(path)[1]
        self._settings = json.loads(json.dumps(settings))  # JSON turns tuples into lists
        self._check_settings()
        try:
            self._handle = _open_locked(path)
        except OSError as error:
            raise OutputError(f"--output {path} cannot be written: {error}; choose another") from error
        self._offsets: dict[Any, int] = {}
        try:
            self._read_rows()
            write_whole(self.settings_path, json.dumps(self._settings, indent=2, sort_keys=True) + "\n")
        except BaseException:
            self._handle.close()
            raise

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, item: Key) -> bool:
        return item in self._offsets

    def append(self, row: Row) -> bool:
        """Append a row, unless the store has a row of the same item. Return whether the row was appended.

        A single system call writes the row. So a killed process can damage only the last line.
        """
        item = row[self._key]
        if item in self:
            return False
        offset = self._handle.seek(0, os.SEEK_END)
        _write_line(self._handle, json.dumps(row).encode() + b"\n")
        self._offsets[item] = offset
        return True

    def row(self, item: Key) -> Row:
        """Return the row of a stored item."""
        (line,) = self._lines([item])
        return dict(json.loads(line))

    def rows(self) -> Iterator[Row]:
        """Yield all rows in the order of their items."""
        return map(json.loads, self._lines(sorted(self._offsets)))

    def _lines(self, items: Iterable[Key]) -> Iterator[bytes]:
        with self.path.open("rb") as handle:
            for item in items:
                handle.seek(self._offsets[item])
                yield handle.readline()

    def sort(self) -> None:
        """Sort the rows of the file by item."""
        self._rewrite(sorted(self._offsets))

    def close(self) -> None:
        """Release the file for other processes. Further calls do nothing."""
        self._handle.close()

    def _check_settings(self) -> None:
        if not self.path.exists() or not self.path.stat().st_size:
            return
        try:
            earlier = json.loads(self.settings_path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise OutputError(
                f"--output {self.path} exists, but not as an output that can be taken up "
                f"({self.settings_path.name}: {error}); choose another, or remove it"
            ) from error
        differences = []
        for name in sorted({*earlier, *self._settings}):
            before, now = earlier.get(name), self._settings.get(name)
            if before != now:
                differences.append(f"{name} was {_shown(before)}, now is {_shown(now)}")
        if differences:
            raise OutputError(
                f"--output {self.path} holds rows of other settings: {'; '.join(differences)}. Rows of two settings "
                "do not belong in one file: choose another output, repeat the first settings, or remove it"
            )

    def _read_rows(self) -> None:
        """Index the stored rows.

        Remove an incomplete last line, and rows with an outage, so that their items are judged again.
        """
        is_lost = {}
        with self.path.open("rb") as handle:
            offset = 0
            for number, line in enumerate(handle):
                if not line.endswith(b"\n"):
                    self._handle.truncate(offset)
                    break
                row = self._parsed(line, number)
                item = row[self._key]
                self._offsets[item] = offset
                is_lost[item] = bool(row.get("outage"))
                offset += len(line)
        if any(is_lost.values()):
            self._rewrite([item for item in self._offsets if not is_lost[item]])

    def _parsed(self, line: bytes, number: int) -> Row:
        try:
            row = json.loads(line)
            if type(row[self._key]) is (int if self._key == "item" else str):
                return dict(row)
        except (ValueError, TypeError, KeyError):
            pass
        raise OutputError(
            f"--output {self.path}: line {number + 1} is no row of this command, so another program wrote it. Remove "
            "the line, or choose another output"
        )

    def _rewrite(self, items: list[Key]) -> None:
        """Replace the whole file by the rows of ``items``, in this order."""
        partial = self.path.with_name(self.path.name + ".partial")
        # Lock the new file before it gets its name, so that no other process can lock the file first.
        replacement = _open_locked(partial)
        replacement.truncate(0)
        offsets = {}
        end = 0
        for item, line in zip(items, self._lines(items), strict=True):
            _write_line(replacement, line)
            offsets[item] = end
            end += len(line)
        partial.replace(self.path)
        self._handle.close()
        self._handle, self._offsets = replacement, offsets


def files_of(path: Path) -> tuple[Path, Path]:
    """Return the paths of a store's two files: the rows and the settings."""
    return path, path.with_name(path.name + ".settings.json")


def _open_locked(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = path.open("ab", buffering=0)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        handle.close()
        raise OutputError(
            f"--output {path} is being written by another process; wait for it, or choose another"
        ) from error
    return handle


def _write_line(handle: IO[bytes], line: bytes) -> None:
    if handle.write(line) != len(line):
        raise OSError(errno.ENOSPC, "no space for a whole row", handle.name)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
