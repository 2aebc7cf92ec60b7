"""Where rows come from: a file, a folder, or a data set of the Hugging Face hub, streamed."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from ...data.reader import iter_rows
from ...errors import InputError
from ...files import file_digest

Row = Mapping[str, Any]

FILE_ENDINGS = (".parquet", ".jsonl", ".json", ".jsonl.gz", ".json.gz")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_SHARD = re.compile(r"(.+)-\d+-of-\d+")
_SPLIT_WORDS = ("train", "test", "validation", "valid", "val", "dev", "eval")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One readable set of rows."""

    name: str
    """As the user wrote it."""
    columns: frozenset[str]
    num_rows: int
    files: tuple[Path, ...]
    """What the rows are read from; the hub's cache for a set of the hub, empty where it has no files."""
    rows: Callable[[], Iterator[Row]]
    """All rows, in order; InputError where a file turns out to be damaged."""

    @property
    def stem(self) -> str:
        """A short name: ``kodcode`` of ``data/kodcode.jsonl.gz``."""
        name = self.name.replace(":", "-").rstrip("/").rpartition("/")[2]
        ending = max((ending for ending in FILE_ENDINGS if name.endswith(ending)), key=len, default="")
        return name.removesuffix(ending) or "data"

    def fingerprint(self) -> str:
        """sha256 of the one file, or of the digests of all of them, in hexadecimal."""
        digests = [file_digest(path).hex() for path in self.files]
        if len(digests) == 1:
            return digests[0]
        return hashlib.sha256("\n".join(digests).encode()).hexdigest() if digests else "not read from files"


def open_source(text: str) -> Source:
    """The rows that ``text`` names.

    Args:
        text: a parquet, JSON or JSON-lines file (``.gz`` allowed for these two); a folder that
            ``datasets.save_to_disk`` wrote or that holds such files, ``FOLDER:split`` where it has several splits; or,
            where no such path exists, ``org/name`` or ``org/name:split`` of the hub.

    Raises:
        InputError: nothing is there, it cannot be read, or it has no rows.
        InputError: a file cannot be read.
    """
    base, _, split = text.rpartition(":")
    if Path(text).is_dir():
        source = _folder_source(text, Path(text), split="")
    elif Path(text).is_file():
        source = _files_source(text, [Path(text)])
    elif base and Path(base).is_dir():
        source = _folder_source(text, Path(base), split=split)
    elif _HUB_ID.fullmatch(base or text) and not text.endswith(FILE_ENDINGS):
        source = _hub_source(text, base or text, split=split if base else "")
    else:
        raise InputError(
            f"{text}: no such file or folder (relative paths start at {Path.cwd()}), and no id of a data set on the "
            "hub either; those have the form org/name or org/name:split"
        )
    if not source.num_rows:
        raise InputError(f"{text}: no rows; a data set needs at least one")
    return source


# ------------------------------ files ------------------------------


def _files_source(name: str, paths: Sequence[Path]) -> Source:
    sizes = [_columns_and_rows(path) for path in paths]
    return Source(
        name=name,
        columns=frozenset().union(*(columns for columns, _ in sizes)),
        num_rows=sum(num_rows for _, num_rows in sizes),
        files=tuple(paths),
        rows=lambda: chain.from_iterable(map(iter_rows, paths)),
    )


def _columns_and_rows(path: Path) -> tuple[set[str], int]:
    """The columns of a file and its number of rows; of parquet without reading them."""
    if path.name.endswith(".parquet"):
        import pyarrow.parquet  # here: only this format needs it

        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                return set(file.schema_arrow.names), file.metadata.num_rows
        except (OSError, ValueError) as error:  # pyarrow's errors are OSErrors and ValueErrors
            raise InputError(f"{path}: cannot be read: {error}") from error
    columns: set[str] = set()
    num_rows = 0
    for row in iter_rows(path):
        columns.update(row)
        num_rows += 1
    return columns, num_rows


# ------------------------------ folders ------------------------------


def _folder_source(name: str, folder: Path, *, split: str) -> Source:
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(path.parent.name for path in folder.glob("*/state.json"))
        return _saved_source(name, folder / _chosen(split, splits, name, folder))
    if (folder / "state.json").is_file():
        return _saved_source(name, folder)
    paths = sorted(path for path in folder.rglob("*") if path.name.endswith(FILE_ENDINGS) and path.is_file())
    if not paths:
        raise InputError(
            f"{name}: the folder holds no data set: neither one that datasets.save_to_disk wrote, nor a file that ends "
            f"in one of {', '.join(FILE_ENDINGS)}"
        )
    by_split = {key: list(group) for key, group in groupby(sorted(paths, key=_split_of), key=_split_of)}
    return _files_source(name, by_split[_chosen(split, sorted(by_split), name, folder)])


def _split_of(path: Path) -> str:
    """``train`` of ``train-00000-of-00002.parquet`` and ``train.jsonl``; "" of a name that says nothing."""
    stem = path.name.partition(".")[0]
    shard = _SHARD.fullmatch(stem)
    name = shard[1] if shard else stem
    return name if shard or name in _SPLIT_WORDS else ""


def _chosen(split: str, splits: Sequence[str], name: str, base: str | Path) -> str:
    if split in splits:
        return split
    if len(splits) == 1 and not split:
        return splits[0]
    shown = ", ".join(f"{base}:{one}" if one else f"{base} (files without a split's name)" for one in splits)
    what = f"has no split {split!r}" if split else f"has {len(splits)} splits, which do not belong in one training set"
    raise InputError(f"{name}: {what}; name one of {shown}")


def _saved_source(name: str, folder: Path) -> Source:
    datasets = _datasets_library(name)
    try:
        dataset = datasets.load_from_disk(str(folder))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{name}: cannot be read as what datasets.save_to_disk wrote: {error}") from error
    return _dataset_source(name, dataset, files=sorted(folder.glob("*.arrow")))


# ------------------------------ the hub ------------------------------


def _hub_source(name: str, hub_id: str, *, split: str) -> Source:
    datasets = _datasets_library(name)
    try:
        loaded = datasets.load_dataset(hub_id, split=split or None)
    except (OSError, ValueError, RuntimeError, KeyError) as error:  # the library's own errors are among these
        raise InputError(
            f"{name}: no such path (relative paths start at {Path.cwd()}), and the hub's data set {hub_id!r} cannot be "
            f"loaded: {type(error).__name__}: {str(error)[:300]}. Check the id, the split and the connection (HF_TOKEN "
            "for sets that ask for a login), or download its files elsewhere and give their folder"
        ) from error
    if isinstance(loaded, Mapping):  # splits, since none was named
        loaded = loaded[_chosen("", sorted(map(str, loaded)), name, hub_id)]
    return _dataset_source(name, loaded, files=[Path(file["filename"]) for file in loaded.cache_files])


def _dataset_source(name: str, dataset: Any, *, files: Sequence[Path]) -> Source:
    return Source(
        name=name,
        columns=frozenset(dataset.column_names),
        num_rows=len(dataset),
        files=tuple(files),
        rows=lambda: iter(dataset),
    )


def _datasets_library(name: str) -> Any:
    try:
        import datasets  # type: ignore[import-untyped]  # here: takes a second, and files do without
    except ImportError as error:
        raise InputError(
            f"{name}: needs the package 'datasets' ({error}); pip install datasets, or give parquet or JSON-lines files"
        ) from error
    return datasets
