"""Early checks of losses, optimizers, corrections and options, which verl and vLLM look up minutes after the start."""

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
"""Names in verl's method that starts a server. verl has no list of them."""
_OWN_ENGINE_OPTIONS = {"distributed_executor_backend", "worker_extension_cls"}
"""Options of vLLM that the presets set. If there are no others, vLLM need not be imported."""

_PACKAGED_TRACKERS = frozenset({"wandb", "mlflow", "swanlab", "tensorboard", "clearml", "trackio"})
"""verl's loggers that have the name of their package."""
_PROFILERS = ("nsys", "npu", "torch", "torch_memory", "precision_debugger")
"""Names that ``verl.utils.profiler.profile`` knows. It does nothing for another name."""


def check_verl_config(config: RunConfig, name: str) -> None:
    """Run verl's own functions on a policy's configuration, with tensors of one element.

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
    """The first line of verl's error, or the failed line of code for an assertion without a message."""
    cause = error
    if isinstance(error, HydraException) and isinstance(error.__cause__, Exception):
        cause = error.__cause__  # hydra's own message only names the class that it could not make
    text = str(cause).partition("\n")[0] or traceback.extract_tb(cause.__traceback__)[-1].line or type(cause).__name__
    return text[:500]


def _check_sizes(view: DictConfig) -> None:
    from verl.utils.config import validate_config

    validate_config(config=view, use_reference_policy=view.actor_rollout_ref.actor.use_kl_loss, use_critic=False)


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
        log_prob: Any = torch.zeros(1, 1)  # verl's annotation, torch.FloatTensor, fits no tensor for mypy
        kind = actor.kl_loss_type
        try:
            kl_penalty(log_prob, log_prob, kind)
        except NotImplementedError as error:  # verl gives no message
            raise ValueError(f"actor.kl_loss_type={kind!r} is none that it knows") from error


def _check_correction(view: DictConfig) -> None:
    """Compute the correction for probabilities that differ between servers and training."""
    import torch
    from verl.trainer.ppo import rollout_corr_helper as helper

    correction, (ratio, mask) = view.algorithm.rollout_correction, (torch.zeros(1, 1), torch.ones(1, 1))
    if correction.rollout_is:
        helper.compute_rollout_correction_weights(ratio, mask, correction.rollout_is, correction.rollout_is_threshold)
    if correction.rollout_rs:
        helper.compute_rollout_rejection_mask(ratio, mask, correction.rollout_rs, correction.rollout_rs_threshold)


def _check_engine(view: DictConfig) -> None:
    rollout = view.actor_rollout_ref.rollout
    if rollout.quantization not in (None, *_QUANTIZATIONS):
        raise ValueError(f"rollout.quantization must be one of {', '.join(_QUANTIZATIONS)}, got {rollout.quantization}")
    given = {name.replace("-", "_") for name in rollout.engine_kwargs.get("vllm") or {}} - _OWN_ENGINE_OPTIONS
    if not given:
        return
    from vllm.engine.arg_utils import AsyncEngineArgs

    known = {field.name for field in dataclasses.fields(AsyncEngineArgs)}
    if unknown := sorted(given - known):
        raise ValueError(f"rollout.engine_kwargs.vllm.{unknown[0]} is no option of the installed vLLM")


def check_reporting(config: RunConfig) -> None:
    """Check ``trainer.logger`` and ``global_profiler``, which verl reads after everything has started.

    Raises:
        SettingsError: verl knows no such logger or profiler, a package or key is missing, or the profiler's steps are
            no list of steps.
    """
    from verl.utils.tracking import Tracking

    names, profiler = config.trainer.logger, config.for_verl().global_profiler
    for name in names:
        if name not in Tracking.supported_backend:
            raise SettingsError(f"trainer.logger must be of {', '.join(Tracking.supported_backend)}, got {name!r}")
        if name in _PACKAGED_TRACKERS and importlib.util.find_spec(name) is None:
            raise SettingsError(f"trainer.logger={name} needs its package: pip install {name}")
    # wandb would ask for its key minutes later, in a process without a terminal.
    netrc = Path(os.environ.get("NETRC", "~/.netrc")).expanduser()
    if "wandb" in names and not netrc.exists() and not any(name.startswith("WANDB_") for name in os.environ):
        raise SettingsError("trainer.logger=wandb finds no key: `wandb login`, or WANDB_API_KEY, or WANDB_MODE=offline")
    if (steps := profiler.steps) is None:
        return
    if not isinstance(steps, ListConfig) or not all(type(step) is int and step > 0 for step in steps):
        raise SettingsError(f"global_profiler.steps must be a list of steps from 1 on, or null, got {steps!r}")
    # For an unknown name verl profiles nothing and does not say so.
    if profiler.tool not in _PROFILERS:
        raise SettingsError(f"global_profiler.tool must be one of {', '.join(_PROFILERS)}, got {profiler.tool!r}")
