"""``code-a1 train``, ``plan`` and ``doctor``."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ..config.compose import preset_names, read_config
from ..config.run_config import RunConfig
from ..errors import CodeA1Error, InputError, SettingsError
from ..runs.folder import RunFolder
from ..stats.tables import table_of
from ..training.lifecycle import launch
from ..training.plan.machine import why_no_gpu
from .tables import print_table

configure_logging = launch.configure_logging
SETUP_STAMP = ".code-a1-run"
"""File in an environment that ``run_codea1.sh`` made. The file's text begins with "cpu" or "gpu"."""

REAL_MODELS = {
    "cpu": "smollm2-135m    # 135M parameters, 19 GiB of memory; downloads 270 MB from the hub",
    "tiny-1gpu": "qwen2.5-coder-0.5b    # one GPU of 24 GB; downloads the model (1 GB) and MBPP from the hub",
}
"""Preset of the tiny models -> the next preset, with what it needs."""

HELP = """Train both LLMs. WORDS are a preset or a YAML file, and then settings `key=value` as in hydra.

Presets: {presets}. The default is `cpu` on a machine without an NVIDIA GPU, else `tiny-1gpu`: two tiny models.

Arms (`arm=NAME`, with every preset): code_a1 (the paper, the default), pooled, golden, golden_full, static, self_play,
frozen, sft.

The most important keys (`code_a1_recipe/config/code_a1.yaml` explains all; any key of verl's configuration works too):

- `policies.code.model.path`, `policies.test.model.path`: Hugging Face folders or model ids
- `data.train_files`, `data.val_files`: files of questions: parquet, JSONL (.gz) or JSON
- `data.train_batch_size` (Q), `episode.num_candidates` (C), `episode.num_suites` (S), `episode.cases_per_suite` (K)
- `rewards.alpha`: weight of validity against difficulty in the Test LLM's reward
- `trainer.total_training_steps`, `run_dir` (default outputs/PRESET-TIME)
"""


def train(
    words: Annotated[list[str] | None, Argument(metavar="[PRESET | FILE.yaml] [KEY=VALUE]...")] = None,
    print_config: Annotated[bool, Option("--print-config", help="only print the composed configuration")] = False,
) -> None:
    given = list(words or [])
    preset = given.pop(0) if given and "=" not in given[0] else _default_preset()
    if print_config:
        typer.echo(read_config(preset, given).to_yaml())
        return
    from ..training.preflight import START_RULES

    config = read_config(preset, given, rules=START_RULES)
    command = shlex.join(["code-a1", *sys.argv[1:]])
    folder = _train(config, command=command)
    _print_result(preset, folder)
    if preset in REAL_MODELS and not config.policies.code.model.path:
        command = os.environ.get("CODE_A1_COMMAND", "code-a1")
        typer.echo(f"\nthese models are tiny; train a real one:\n  {command} {REAL_MODELS[preset]}")


train.__doc__ = HELP.format(presets=", ".join(preset_names()))


def plan(
    words: Annotated[list[str], Argument(metavar="PRESET | FILE.yaml [KEY=VALUE]...")],
    gpus: Annotated[int | None, Option(min=1, help="number of GPUs; also sets trainer.n_gpus_per_node")] = None,
    gpu_memory: Annotated[float | None, Option(min=1, help="memory of each GPU in GB, as its label says")] = None,
    cores: Annotated[int | None, Option(min=1, help="number of CPU cores")] = None,
    memory: Annotated[float | None, Option(min=1, help="main memory in GB; half of it is for /dev/shm")] = None,
) -> None:
    """Show the minimum that each process of a run needs, and what does not fit on the machine. No run is started.

    The plan is for this machine, unless options describe another machine. Every run makes the same checks before it
    starts.

    `code-a1 plan qwen2.5-coder-1.5b --gpus 2 --gpu-memory 80 --cores 64 --memory 512`
    """
    from ..training.plan.check import plan_of
    from ..training.plan.machine import Machine
    from ..training.plan.sizes import with_sizes

    preset, *overrides = words
    if gpus is not None and read_config(preset, overrides).trainer.device == "cuda":
        overrides.insert(0, f"trainer.n_gpus_per_node={gpus}")
    config = read_config(preset, overrides)
    machine = Machine.here(config.trainer.default_local_dir, device=config.trainer.device)
    machine = machine.with_given(gpus=gpus, gpu_memory=gpu_memory, cores=cores, memory=memory)
    if config.trainer.device == "cuda" and not (machine.num_gpus and machine.gpu_memory):
        raise InputError("torch finds no GPU here; describe the GPUs to plan for: --gpus 8 --gpu-memory 80")
    needs = plan_of(with_sizes(config), machine)
    print_table(table_of("", needs.process_table()))
    for row in needs.rows:
        typer.echo(row.text())
    if refused := list(needs.problems()):
        raise SettingsError(*refused)
    typer.echo("the machine has room for the least that a run needs")


def doctor(
    folder: Annotated[Path, Argument(help="folder in which runs will be written")] = Path(),
) -> None:
    """Check versions, sandbox, shared memory and disk. Exit status 1 means that no run would start."""
    from ..training.doctor import describe, problems

    if "=" in str(folder) and not folder.exists():
        raise InputError(f"doctor takes the folder in which runs will be written, and no settings, got {folder}")
    for line in describe(str(folder)):
        typer.echo(line)
    if lacking := list(problems(str(folder))):
        raise CodeA1Error("a run would fail here:\n  - " + "\n  - ".join(lacking))
    typer.echo("nothing that every run needs is lacking; `code-a1 plan PRESET` shows what a run needs")


def _default_preset() -> str:
    """Return the preset of the tiny models: `cpu` if torch sees no GPU, else `tiny-1gpu`.

    Raises:
        InputError: torch sees no GPU in an environment that was set up for GPUs.
    """
    import torch

    if torch.cuda.is_available():
        return "tiny-1gpu"
    stamp = Path(sys.prefix) / SETUP_STAMP
    if stamp.is_file() and stamp.read_text(encoding="utf-8").startswith("gpu"):
        raise InputError(
            f"this environment was set up for GPUs, but torch sees none: {why_no_gpu()}. Repair that (`nvidia-smi` "
            "shows the driver), or make an environment for CPUs: CODE_A1_VENV=.venv-cpu bash run_codea1.sh setup --cpu"
        )
    return "cpu"


def _train(config: RunConfig, *, command: str) -> RunFolder:
    """Train. If the run breaks off, the error says how to resume it.

    Raises:
        CodeA1Error: the run was refused, broke off, or was ended by a signal. After a signal the exit status is 128 +
            the signal's number.
    """
    from ..training.lifecycle.failures import explain
    from ..training.lifecycle.signals import InterruptedRunError

    resume = launch.resume_hint(config.run_dir)
    try:
        return launch.train(config, command=command)
    except InterruptedRunError as error:
        error.add_note(resume)
        raise
    except KeyboardInterrupt:
        sys.stderr.write(f"\ninterrupted; {resume}\n")
        raise
    except Exception as error:
        if isinstance(error, CodeA1Error) and error.exit_status != CodeA1Error.exit_status:
            raise
        message = explain(error, run_dir=config.run_dir)
        if message is None:
            raise
        RunFolder(Path(config.run_dir)).note_error(error)
        failure = CodeA1Error(message)
        failure.add_note(resume)
        raise failure from error


def _print_result(preset: str, folder: RunFolder) -> None:
    """Print where the results are. If the run has held-out questions, print how their figures have changed."""
    from ..runs.reader import RunRecords
    from ..tools.report.measures import change_table
    from ..tools.report.report import write_report

    typer.echo(f"\ntrained: {preset}\n  run folder   {folder.root}")
    try:
        typer.echo(f"  report       {write_report(folder.root)}")
        if table := change_table(RunRecords.open(folder.root)):
            typer.echo(f"\n{table}")
    except (ValueError, OSError) as error:
        typer.echo(f"no report: {error}", err=True)
