"""Early checks of losses, optimizers, corrections and options that verl and vLLM read minutes after the start."""

import dataclasses
import importlib.util
import os
import traceback
from pathlib import Path
from typing import Any

from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig

from ..config.run_config import RunConfig
from ..errors import SettingsError

_QUANTIZATIONS = ("fp8", "torchao")
"""Values of ``rollout.quantization`` that verl knows when it starts a server. verl has no list of these values."""
_OWN_ENGINE_OPTIONS = {"distributed_executor_backend", "worker_extension_cls"}
"""Options of vLLM that the presets set. vLLM is imported only if the user sets further options."""

_PACKAGED_TRACKERS = frozenset({"wandb", "mlflow", "swanlab", "tensorboard", "clearml", "trackio"})
"""verl's loggers that have the same name as the package that they need."""
_PROFILERS = ("nsys", "npu", "torch", "torch_memory", "precision_debugger")
"""Profilers that ``verl.utils.profiler.profile`` knows."""


def check_verl_config(config: RunConfig, name: str) -> None:
    """Check a policy's configuration by running verl's functions that read it, on tensors with a single element.

    Raises:
        SettingsError: the message names everything that verl or vLLM refuses.
    """
    view = config.for_policy(name)
    refusals = (AssertionError, AttributeError, HydraException, ImportError, NotImplementedError, TypeError, ValueError)
    problems = []
    for check in (_check_sizes, _check_actor, _check_correction, _check_engine):
        try:
            check(view)
        except refusals as error:
            problems.append(f"policies.{name}: verl refuses this configuration: {_reason(error)}")
    if problems:
        raise SettingsError(*dict.fromkeys(problems))


def _reason(error: Exception) -> str:
    """Return the first line of verl's error, or the failed line of code for an assertion without a message."""
    cause = error
    if isinstance(error, HydraException) and isinstance(error.__cause__, Exception):
        cause = error.__cause__  # hydra's own message only names the class that failed
    first_line = str(cause).partition("\n")[0]
    failed_code = traceback.extract_tb(cause.__traceback__)[-1].line
    reason = first_line or failed_code or type(cause).__name__
    return reason[:500]


def _check_sizes(view: DictConfig) -> None:
    from verl.utils.config import validate_config

    validate_config(
        config=view,
        use_reference_policy=view.actor_rollout_ref.actor.use_kl_loss,
        use_critic=False,
    )


def _check_actor(view: DictConfig) -> None:
    """Read the actor's block as verl does, and make its optimizer, loss and penalty."""
    import torch
    from verl.trainer.ppo.core_algos import get_policy_loss_fn, kl_penalty
    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.config.optimizer import build_optimizer

    actor = omega_conf_to_dataclass(view.actor_rollout_ref.actor)
    build_optimizer([torch.nn.Parameter(torch.zeros(1))], actor.optim)
    get_policy_loss_fn(actor.policy_loss.loss_mode)  # type: ignore[no-untyped-call]
    if actor.use_kl_loss:
        log_prob: Any = torch.zeros(1, 1)  # mypy accepts no tensor for verl's annotation FloatTensor
        kind = actor.kl_loss_type
        try:
            kl_penalty(log_prob, log_prob, kind)
        except NotImplementedError as error:  # verl gives no message
            raise ValueError(f"verl has no actor.kl_loss_type={kind!r}") from error


def _check_correction(view: DictConfig) -> None:
    """Compute verl's correction for probabilities that differ between servers and training."""
    import torch
    from verl.trainer.ppo import rollout_corr_helper as helper

    correction = view.algorithm.rollout_correction
    ratio, mask = torch.zeros(1, 1), torch.ones(1, 1)
    if correction.rollout_is:
        helper.compute_rollout_correction_weights(ratio, mask, correction.rollout_is, correction.rollout_is_threshold)
    if correction.rollout_rs:
        helper.compute_rollout_rejection_mask(ratio, mask, correction.rollout_rs, correction.rollout_rs_threshold)


def _check_engine(view: DictConfig) -> None:
    rollout = view.actor_rollout_ref.rollout
    if rollout.quantization not in (None, *_QUANTIZATIONS):
        raise ValueError(f"rollout.quantization must be one of {', '.join(_QUANTIZATIONS)}, got {rollout.quantization}")
    given = {name.replace("-", "_") for name in rollout.engine_kwargs.get("vllm") or {}}
    further = given - _OWN_ENGINE_OPTIONS
    if not further:
        return
    from vllm.engine.arg_utils import AsyncEngineArgs

    known = {field.name for field in dataclasses.fields(AsyncEngineArgs)}
    if unknown := sorted(further - known):
        raise ValueError(f"rollout.engine_kwargs.vllm.{unknown[0]} is no option of the installed vLLM")


def check_reporting(config: RunConfig) -> None:
    """Check ``trainer.logger`` and ``global_profiler``, which verl reads only when all processes have started.

    Raises:
        SettingsError: verl knows no such logger or profiler, a package or key is missing, or the profiler's steps are
            not a list of steps.
    """
    from verl.utils.tracking import Tracking

    names = config.trainer.logger
    profiler = config.for_verl().global_profiler
    for name in names:
        if name not in Tracking.supported_backend:
            raise SettingsError(f"trainer.logger must be of {', '.join(Tracking.supported_backend)}, got {name!r}")
        if name in _PACKAGED_TRACKERS and importlib.util.find_spec(name) is None:
            raise SettingsError(f"trainer.logger={name} needs its package: pip install {name}")
    # wandb would ask for its key minutes later, in a process without a terminal.
    netrc = Path(os.environ.get("NETRC", "~/.netrc")).expanduser()
    has_variable = any(name.startswith("WANDB_") for name in os.environ)
    if "wandb" in names and not netrc.exists() and not has_variable:
        raise SettingsError(
            "trainer.logger=wandb finds no key: run `wandb login`, or set WANDB_API_KEY or WANDB_MODE=offline"
        )
    if (steps := profiler.steps) is None:
        return
    if not isinstance(steps, ListConfig) or not all(type(step) is int and step > 0 for step in steps):
        raise SettingsError(f"global_profiler.steps must be a list of steps from 1 on, or null, got {steps!r}")
    # With an unknown name verl would silently profile nothing.
    if profiler.tool not in _PROFILERS:
        raise SettingsError(f"global_profiler.tool must be one of {', '.join(_PROFILERS)}, got {profiler.tool!r}")
