"""What a command line leaves open about sampling: as the run sampled in validation, or the usual values."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..run_folder import RunFolder
from .endpoint import ModelError

USUAL_SAMPLING: dict[str, Any] = {
    "temperature": 0.7,
    "top_p": 0.95,
    "max_tokens": 4096,
    "max_prompt_tokens": 8192,
}
"""Temperature and top-p of the paper's validation."""
USUAL_PROMPT = "chat_v1"
_LEVELS = 3
"""From a step's folder up to its run: run/checkpoints/global_step_n."""


def fill_defaults(
    options: argparse.Namespace,
    *,
    policies: Mapping[str, str],
    prompt: str = "prompt",
    cases: tuple[str, int] | None = None,
) -> None:
    """Give every sampling option that is None a value: the run's own where the model is one, else the usual.

    A model answers well only what it was trained on: the same template, lengths and temperature.

    Args:
        policies: prefix of the options -> policy; the test model of a run named without one is the run's.
        prompt: name of the option that names the pair of templates.
        cases: name and usual value of the option for asserts a suite.

    Raises:
        ModelError: a run's configuration cannot be read.
    """
    configs = {prefix: _config_of(options, prefix) for prefix in policies}
    for prefix, policy in policies.items():
        config = configs[prefix] or (configs.get("") if not _is_named(options, prefix) else None)
        known = _sampling_of_run(config, policy) if config else USUAL_SAMPLING
        for name, value in known.items():
            key = f"{prefix.replace('-', '_')}{name}"
            if getattr(options, key) is None:
                setattr(options, key, value)
    found = next((config for config in configs.values() if config), None)
    if getattr(options, prompt) is None:
        setattr(options, prompt, found["prompts"]["name"] if found else USUAL_PROMPT)
    if cases is not None and getattr(options, cases[0]) is None:
        setattr(options, cases[0], found["episode"]["cases_per_suite"] if found else cases[1])


def _is_named(options: argparse.Namespace, prefix: str) -> bool:
    stem = prefix.replace("-", "_")
    return bool(getattr(options, f"{stem}model") or getattr(options, f"{stem}endpoint"))


def _config_of(options: argparse.Namespace, prefix: str) -> dict[str, Any] | None:
    """The configuration of the run that ``--model`` names, or None where it names none."""
    model = getattr(options, f"{prefix.replace('-', '_')}model")
    if not model:
        return None
    start = Path(model).absolute()
    paths = [RunFolder(folder).resolved_config for folder in (start, *start.parents[:_LEVELS])]
    path = next((one for one in paths if one.is_file()), None)
    if (start / "config.json").is_file() or path is None:
        return None
    return _read(path)


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        config["prompts"]["name"], config["episode"]["cases_per_suite"], config["actor_rollout_ref"]["rollout"]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is no configuration of a run: {type(error).__name__}: {error}") from error
    return dict(config)


def _sampling_of_run(config: dict[str, Any], policy: str) -> dict[str, Any]:
    from omegaconf import OmegaConf

    from ..compose import policy_view
    from ..sampling_parameters import SamplingParameters

    rollout = policy_view(OmegaConf.create(config), policy).actor_rollout_ref.rollout
    found = SamplingParameters.of_rollout(rollout, validation=True)
    return {
        "temperature": found.temperature,
        "top_p": found.top_p,
        "max_tokens": found.max_response_tokens,
        "max_prompt_tokens": found.max_prompt_tokens,
    }
