"""Writing of whole files, and fingerprints of texts, files and folders."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import InputError

_FINGERPRINT_DIGITS = 16


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace the whole content of a file, or change nothing.

    Raises:
        OSError: the file cannot be written. It has not changed.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with replacing(path) as partial:
        partial.write_bytes(data)


def json_lines(rows: Iterable[object]) -> str:
    """Write each row as a line of JSON."""
    return "".join(json.dumps(row) + "\n" for row in rows)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to. The file is flushed and renamed to ``path`` if the block ends without an error."""
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
    """Return 16 hexadecimal digits of the parts' SHA-256. The results for ("ab", "c") and ("a", "bc") differ."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:_FINGERPRINT_DIGITS]


def file_fingerprint(path: Path) -> str:
    """Return ``NAME FINGERPRINT`` of a file, or of all files below a folder.

    Raises:
        InputError: the file or folder does not exist or cannot be read.
    """
    try:
        if path.is_dir():
            return f"{path.name} {files_fingerprint(path, path.rglob('*'))}"
        return f"{path.name} {fingerprint(file_digest(path))}"
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; name a file that exists") from error


def files_fingerprint(folder: Path, paths: Iterable[Path]) -> str:
    """Return 16 hexadecimal digits for the names and contents of files below a folder.

    Folders in ``paths`` are skipped.
    """
    parts: list[str | bytes] = []
    for file in sorted(path for path in paths if path.is_file()):
        parts += [str(file.relative_to(folder)), file_digest(file)]
    return fingerprint(*parts)


def file_digest(path: Path) -> bytes:
    """Compute the SHA-256 of a file's content. OSError: the file cannot be read."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").digest()


def flush(path: Path) -> None:
    """Write a file's content, or a folder's list of files, to the disk. A later crash cannot lose this data."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def portable(text: str) -> str:
    """Shorten the paths in a text that users share: omit the working folder, and write ``~`` for the home folder."""
    for folder, short in ((Path.cwd(), ""), (Path.home(), "~/")):
        if folder != Path(folder.anchor):
            text = text.replace(f"{folder}/", short)
    return text
