"""What verl's keys ask for beside the run's folder: loggers, a table of validation, and profiles."""

import importlib.util
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig, ListConfig, OmegaConf

from ..algorithm.question import Question
from ..config.run_config import RunConfig
from ..errors import SettingsError
from ..runs.reader import read_rollouts
from ..runs.rollout_record import RolloutRecord

Sample = tuple[str, str, float | None]
"""Input, output and score: the columns of verl's ``ValidationGenerationsLogger``."""
_SEED = 42
"""verl's, so that each validation shows the same questions."""
_PACKAGED_TRACKERS = frozenset({"wandb", "mlflow", "swanlab", "tensorboard", "clearml", "trackio"})
"""Loggers of verl's that are named as their package."""
_PROFILERS = ("nsys", "npu", "torch", "torch_memory", "precision_debugger")
"""Of ``verl.utils.profiler.profile``, which does nothing for another name."""


def log_generations(trainer: Any, file: Path, questions: Sequence[Question]) -> None:
    """Give the loggers of a trainer of verl's a table of its newest validation (``trainer.log_val_generations``).

    Args:
        file: rollouts of the validation.
        questions: of the validation.
    """
    settings = trainer.config.trainer
    if settings.log_val_generations:
        prompts = {question.id: question.prompt for question in questions}
        samples = sample_generations(file, prompts, count=settings.log_val_generations)
        trainer.validation_generations_logger.log(settings.logger, samples, trainer.global_steps)


def sample_generations(file: Path, prompts: Mapping[str, str], *, count: int) -> list[Sample]:
    """Programs of a validation for ``trainer.log_val_generations``, each with a suite and what became of both.

    Args:
        file: rollouts of the validation.
        prompts: a question's text by its id.
        count: most samples; the same questions and programs whatever order their episodes ended in.
    """
    records = [record for record in read_rollouts(file) if record.kind == "sampled"]
    # Episodes end in any order, and the table must show the same questions at every validation.
    records.sort(key=lambda record: (prompts[record.question], record.candidate))
    chosen = np.random.RandomState(_SEED).permutation(len(records))[:count]
    return [_sample(records[place], prompts) for place in chosen]


def _sample(record: RolloutRecord, prompts: Mapping[str, str]) -> Sample:
    parts = [f"## Program: {_verdict(record)}", record.response]
    for suite in record.suites[:1]:
        failed = "not judged" if suite.verdict is None else f"{suite.verdict.num_failed} cases broke the program"
        parts += [f"## Suite: {suite.extraction_failure or failed}", suite.response]
    return prompts[record.question], "\n\n".join(parts), record.reward.total if record.reward else None


def _verdict(record: RolloutRecord) -> str:
    hidden = record.hidden_tests
    if hidden is None or record.outage:
        return record.outage or record.extraction_failure or "no hidden tests"
    return f"failed {hidden.num_failed} of {hidden.num_valid} hidden tests"


def check_reporting(config: RunConfig) -> None:
    """Check ``trainer.logger`` and ``global_profiler``, which verl looks at when everything has started.

    Raises:
        SettingsError: verl knows no such logger or profiler, a package or key is missing, or steps are none.
    """
    from verl.utils.tracking import Tracking

    names, profiler = config.trainer.logger, config.for_verl().global_profiler
    for name in names:
        if name not in Tracking.supported_backend:
            raise SettingsError(f"trainer.logger must be of {', '.join(Tracking.supported_backend)}, got {name!r}")
        if name in _PACKAGED_TRACKERS and importlib.util.find_spec(name) is None:
            raise SettingsError(f"trainer.logger={name} needs its package: pip install {name}")
    # wandb would ask for a key at the terminal, minutes later and in a process that has none.
    netrc = Path(os.environ.get("NETRC", "~/.netrc")).expanduser()
    if "wandb" in names and not netrc.exists() and not any(name.startswith("WANDB_") for name in os.environ):
        raise SettingsError("trainer.logger=wandb finds no key: `wandb login`, or WANDB_API_KEY, or WANDB_MODE=offline")
    if (steps := profiler.steps) is None:
        return
    if not isinstance(steps, ListConfig) or not all(type(step) is int and step > 0 for step in steps):
        raise SettingsError(f"global_profiler.steps must be a list of steps from 1 on, or null, got {steps!r}")
    # verl profiles nothing for a name that it does not know, and says so nowhere.
    if profiler.tool not in _PROFILERS:
        raise SettingsError(f"global_profiler.tool must be one of {', '.join(_PROFILERS)}, got {profiler.tool!r}")


def profiler_arguments(config: DictConfig) -> dict[str, Any]:
    """Arguments of a policy's worker group that ``global_profiler`` asks for, as verl's own trainer gives them."""
    profiler = config.global_profiler
    if profiler.steps is None:
        return {}
    arguments = {"profile_steps": profiler.steps}
    if profiler.tool == "nsys":
        options = profiler.global_tool_config.nsys.worker_nsight_options
        arguments["worker_nsight_options"] = OmegaConf.to_container(options)
    return arguments


class AllWorkers:
    """The worker groups of all policies as the one group that verl's trainer starts and stops its profiler in."""

    def __init__(self, groups: Iterable[Any]) -> None:
        self._groups = list(groups)

    def start_profile(self, **arguments: Any) -> None:
        for group in self._groups:
            group.start_profile(**arguments)

    def stop_profile(self, **arguments: Any) -> None:
        for group in self._groups:
            group.stop_profile(**arguments)
