"""What verl and vLLM look up minutes after the start, looked up before it: losses, optimizers, corrections, options."""

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
"""verl names them inside the method that starts a server, so they cannot be asked for."""
_OWN_ENGINE_OPTIONS = {"distributed_executor_backend", "worker_extension_cls"}
"""Options of vLLM that the presets set: where there are no others, vLLM need not be imported."""

_PACKAGED_TRACKERS = frozenset({"wandb", "mlflow", "swanlab", "tensorboard", "clearml", "trackio"})
"""Loggers of verl's that are named as their package."""
_PROFILERS = ("nsys", "npu", "torch", "torch_memory", "precision_debugger")
"""Of ``verl.utils.profiler.profile``, which does nothing for another name."""


def check_verl_config(config: RunConfig, name: str) -> None:
    """Put a policy's configuration through verl's own functions, on tensors of one element.

    Raises:
        SettingsError: names everything that verl or vLLM refuses.
    """
    view = config.for_policy(name)
    refusals = (AssertionError, AttributeError, HydraException, ImportError, NotImplementedError, TypeError, ValueError)
    found = []
    for check in (_check_sizes, _check_actor, _check_correction, _check_engine):
        try:
            check(view)
        except refusals as error:
            found.append(f"policies.{name}: verl refuses this configuration: {_reason(error)}")
    if found:
        raise SettingsError(*dict.fromkeys(found))


def _reason(error: Exception) -> str:
    """What an error of verl's says, or of an assertion without words the line that failed."""
    cause = error
    if isinstance(error, HydraException) and isinstance(error.__cause__, Exception):
        cause = error.__cause__  # hydra's own words only name the class that it could not make
    text = str(cause).partition("\n")[0] or traceback.extract_tb(cause.__traceback__)[-1].line or type(cause).__name__
    return text[:500]


def _check_sizes(view: DictConfig) -> None:
    from verl.utils.config import validate_config

    validate_config(config=view, use_reference_policy=view.actor_rollout_ref.actor.use_kl_loss, use_critic=False)


def _check_actor(view: DictConfig) -> None:
    """The actor's block as verl reads it, its optimizer, loss and penalty."""
    import torch
    from verl.trainer.ppo.core_algos import get_policy_loss_fn, kl_penalty
    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.config.optimizer import build_optimizer

    actor = omega_conf_to_dataclass(view.actor_rollout_ref.actor)
    build_optimizer([torch.nn.Parameter(torch.zeros(1))], actor.optim)
    get_policy_loss_fn(actor.policy_loss.loss_mode)  # type: ignore[no-untyped-call]
    if actor.use_kl_loss:
        one: Any = torch.zeros(1, 1)  # verl writes torch.FloatTensor, which no tensor is to mypy
        kind = actor.kl_loss_type
        try:
            kl_penalty(one, one, kind)
        except NotImplementedError as error:  # without a word
            raise ValueError(f"actor.kl_loss_type={kind!r} is none that it knows") from error


def _check_correction(view: DictConfig) -> None:
    """The correction for probabilities that differ between servers and training."""
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
