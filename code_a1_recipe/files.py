"""Files that are written completely or not at all, and fingerprints of texts, files and folders."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import InputError

_FINGERPRINT_DIGITS = 16


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file by ``content`` completely, or not at all.

    Raises:
        OSError: it cannot be written. Nothing has changed.
    """
    with replacing(path) as partial:
        partial.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def json_lines(rows: Iterable[object]) -> str:
    """JSON lines, one for each row."""
    return "".join(json.dumps(row) + "\n" for row in rows)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside ``path`` to write to. It is flushed and renamed to ``path`` if the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    try:
        yield partial
        flush(partial)
        partial.replace(path)
        flush(path.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def fingerprint(*parts: str | bytes) -> str:
    """16 hexadecimal digits of the SHA-256 of the parts. ("ab", "c") and ("a", "bc") have different fingerprints."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:_FINGERPRINT_DIGITS]


def file_fingerprint(path: Path) -> str:
    """``NAME FINGERPRINT`` of a file, or of all files below a folder.

    Raises:
        InputError: it does not exist, or cannot be read.
    """
    try:
        if path.is_dir():
            return f"{path.name} {files_fingerprint(path, path.rglob('*'))}"
        return f"{path.name} {fingerprint(file_digest(path))}"
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; name a file that is there") from error


def files_fingerprint(folder: Path, paths: Iterable[Path]) -> str:
    """16 hexadecimal digits of the names and contents of files below a folder. Paths of folders are ignored."""
    files = sorted(path for path in paths if path.is_file())
    return fingerprint(*(part for file in files for part in (str(file.relative_to(folder)), file_digest(file))))


def file_digest(path: Path) -> bytes:
    """SHA-256 of a file's content. OSError: the file cannot be read."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").digest()


def flush(path: Path) -> None:
    """Write a file's content, or a folder's entries, to the disk, so that a crash of the machine cannot lose them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def portable(text: str) -> str:
    """Shorten paths in a text: no working folder, and ``~`` for the home folder. Results are passed on to others."""
    for folder, short in ((Path.cwd(), ""), (Path.home(), "~/")):
        if folder != Path(folder.anchor):
            text = text.replace(f"{folder}/", short)
    return text
