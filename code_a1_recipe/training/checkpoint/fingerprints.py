"""Digests of models and data: is what a checkpoint was made with what the run has now, wherever the files lie?"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from safetensors import safe_open

from ...algorithm.question import Question

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth")
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
    """Of all questions with everything in them, in order."""
    digest = hashlib.sha256()
    for question in questions:
        digest.update(json.dumps(asdict(question), sort_keys=True, default=str).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:_DIGITS]


def model_fingerprint(path: str) -> str:
    """Of a model folder: configuration, tokenizer, and of each weights file its size and three samples of 1 MiB.

    The folder's own name does not count, so that a run can move to another host. A model id that is no folder here
    stands for itself; its revision is the hub's business.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        return path
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.name in _READ_WHOLE:
            digest.update(file.name.encode() + file.read_bytes())
        elif file.suffix in _WEIGHTS:
            size = file.stat().st_size
            digest.update(f"{file.name} {size}".encode())
            with file.open("rb") as handle:
                for start in sorted({0, size // 2, max(0, size - _SAMPLE_BYTES)}):
                    handle.seek(start)
                    digest.update(handle.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:_DIGITS]


def check_weights(path: str) -> None:
    """Look whether the weights of a model folder are there and whole; no weight is read. A model id passes.

    Raises:
        OSError: there are none, or a file of a model in several is missing.
        SafetensorError: a file ends too early.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        return
    files = {file.name for file in folder.iterdir() if file.suffix in _WEIGHTS}
    index = folder / "model.safetensors.index.json"
    named = set(json.loads(index.read_text())["weight_map"].values()) if index.is_file() else set()
    if named - files or not files:
        raise OSError(f"its weights ({', '.join(sorted(named - files)) or '*.safetensors'}) are missing")
    for name in sorted(files):
        if name.endswith(".safetensors"):
            with safe_open(folder / name, "pt"):  # reads the header, which must cover the file
                pass
