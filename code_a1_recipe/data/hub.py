"""Data sets of the Hugging Face hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import json_lines, write_whole

MBPP = "google-research-datasets/mbpp"
_DETAIL_CHARACTERS = 300


def hub_splits(place: str, *subset: str) -> Mapping[str, Any]:
    """Load a data set by its id on the hub, or from a folder with the same files. Returns split -> rows.

    Raises:
        InputError: the data set cannot be loaded.
    """
    # imported here, because the import takes a second, and files do not need it
    import datasets  # type: ignore[import-untyped]

    try:
        splits: Mapping[str, Any] = datasets.load_dataset(place, *subset)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:  # bases of the hub library's errors
        raise InputError(
            f"{place}: no such path, and no data set of the hub that can be loaded: {type(error).__name__}: "
            f"{str(error)[:_DETAIL_CHARACTERS]}. Name files, or an id of the hub (set HF_TOKEN if the data set needs a "
            "login)"
        ) from error
    return splits


def mbpp_files(folder: Path) -> tuple[Path, Path]:
    """Write MBPP's questions for training and for validation into a folder, unless they are there. Returns both files.

    MBPP+ was made of the questions of the subset ``sanitized``, which come from all splits. So these questions are left
    out of training.

    Raises:
        InputError: MBPP cannot be loaded.
        OSError: the folder cannot be written.
    """
    files = {split: folder / f"mbpp-{split}.jsonl" for split in ("train", "validation")}
    if not all(path.is_file() for path in files.values()):
        splits = hub_splits(MBPP, "full")
        asked = {row["task_id"] for rows in hub_splits(MBPP, "sanitized").values() for row in rows}
        for split, path in files.items():
            rows = [row for row in splits[split] if split != "train" or row["task_id"] not in asked]
            write_whole(path, json_lines(rows))
    return files["train"], files["validation"]
