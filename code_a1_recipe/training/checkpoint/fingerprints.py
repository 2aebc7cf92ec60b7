"""Digests with which a resumed run checks that models and data have not changed since the save."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from safetensors import safe_open

from ...algorithm.question import Question

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
_WHOLE_MODELS = ("model.safetensors", "pytorch_model.bin")
"""Names of a file that holds all weights of a model. transformers looks for these files in this order."""
_READ_WHOLE = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
)
_SAMPLE_BYTES = 1 << 20
_DIGITS = 16


def data_fingerprint(questions: Iterable[Question]) -> str:
    """Return a digest of all questions with all their fields, in their order."""
    digest = hashlib.sha256()
    for question in questions:
        digest.update(json.dumps(asdict(question), sort_keys=True, default=str).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:_DIGITS]


def model_fingerprint(path: str) -> str:
    """Return a digest of a model folder: configuration, tokenizer, and samples of the weights.

    The digest covers the size of each file of weights, and three samples of 1 MiB from the file. The folder's name does
    not change the digest, so that a run can move to another host. If ``path`` is a model id and not a folder, the id is
    returned, and the model's revision is not checked.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        return path
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.name in _READ_WHOLE:
            digest.update(file.name.encode() + file.read_bytes())
        elif file.suffix in _WEIGHTS:
            # Weights may have many GB, so only samples are read. Samples suffice, since training changes every weight.
            size = file.stat().st_size
            digest.update(f"{file.name} {size}".encode())
            with file.open("rb") as handle:
                for start in sorted({0, size // 2, max(0, size - _SAMPLE_BYTES)}):
                    handle.seek(start)
                    digest.update(handle.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:_DIGITS]


def check_weights(path: str) -> None:
    """Check that a model folder has all its weights, without reading the weights. A model id always passes.

    Raises:
        OSError: the folder has no weights that transformers loads, or lacks a file that its index names.
        SafetensorError: a file ends too early.
        Exception: the index is damaged.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        return
    names = _weight_files(folder)
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise OSError(f"its weights ({', '.join(missing)}) are missing")
    for name in names:
        if name.endswith(".safetensors"):
            with safe_open(folder / name, "pt"):  # checks that the header fits the size of the file
                pass


def _weight_files(folder: Path) -> list[str]:
    """List the files whose weights transformers loads from a model folder.

    If the folder has no such files, the list holds one text with the names that transformers looks for.
    """
    for name in _WHOLE_MODELS:
        index = folder / f"{name}.index.json"
        if index.is_file():
            return sorted(set(json.loads(index.read_text())["weight_map"].values()))
        if (folder / name).is_file():
            return [name]
    return [" or ".join(_WHOLE_MODELS)]
