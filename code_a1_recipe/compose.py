"""From a preset or a YAML file and `key=value` overrides to one resolved hydra configuration.

verl's `ppo_trainer.yaml` is found without importing verl, so that a typing error is answered in a second.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .settings import SettingsError

CONFIG_DIR = Path(__file__).parent / "config"
BASE_CONFIG = "code_a1"
SHARED_CONFIGS = (BASE_CONFIG, "gpu")

# Subtrees whose keys belong to somebody else (a Hugging Face config, vLLM, Ray): any key may be added there.
_FREE_SUBTREES = (
    "model.override_config",
    "rollout.engine_kwargs",
    "fsdp_config.mixed_precision",
    "apply_chat_template_kwargs",
    "ray_kwargs.ray_init",
    "optim.override_optimizer_config",
    "sandbox.limits",
    "data.columns",
    "micro",
)

# Keys that verl's dataclasses know and its YAML files leave out.
_KNOWN_BEYOND_YAML = ("rollout.enable_sleep_mode", "fsdp_config.mixed_precision")


def preset_names() -> list[str]:
    """Presets that ship with the recipe, without the files of shared defaults."""
    return sorted(path.stem for path in CONFIG_DIR.glob("*.yaml") if path.stem not in SHARED_CONFIGS)


def _verl_config_dir() -> Path:
    spec = importlib.util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError(
            "verl is not installed in this environment; `bash run_codea1.sh setup` installs the version the recipe "
            "was checked on (REQUIRED_VERL.txt)"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "trainer" / "config"


def arm_names() -> list[str]:
    """Values of ``arm=``."""
    return sorted(path.stem for path in (CONFIG_DIR / "arm").glob("*.yaml"))


def _locate(preset_or_path: str) -> tuple[Path, str]:
    path = Path(preset_or_path)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise SettingsError(f"config file {path} does not exist (relative paths start at {Path.cwd()})")
        if (CONFIG_DIR / f"{path.stem}.yaml").is_file() and path.resolve().parent != CONFIG_DIR.resolve():
            raise SettingsError(f"{path} has the name of a shipped config, which it would hide from itself; rename it")
        return path.resolve().parent, path.stem
    if preset_or_path not in preset_names():
        raise SettingsError(
            f"unknown preset {preset_or_path!r}; known: {', '.join(preset_names())}, or the path of a .yaml file"
        )
    return CONFIG_DIR, preset_or_path


def _as_hydra_override(override: str) -> str:
    # A policy's tree holds only what differs from actor_rollout_ref, and a free subtree what a user puts there, so a
    # key named on the command line is usually not there yet. `++` sets or adds it; `check_keys` then checks the rest.
    key, separator, _ = override.partition("=")
    if key == "arm":  # a group of settings, put over all that the preset says
        return f"+{override}"
    addable = separator and not override.startswith(("+", "~")) and (key.startswith("policies.") or _is_free(key))
    return f"++{override}" if addable else override


def _compose(config_dir: Path, name: str, overrides: Sequence[str]) -> DictConfig:
    search_path = f"hydra.searchpath=[file://{_verl_config_dir()},file://{CONFIG_DIR}]"
    GlobalHydra.instance().clear()
    with initialize_config_dir(config_dir=str(config_dir), version_base=None):
        return compose(name, overrides=[search_path, *map(_as_hydra_override, overrides)])


def compose_config(preset_or_path: str, overrides: Sequence[str] = ()) -> DictConfig:
    """Compose a preset (`cpu`) or a YAML file with hydra overrides (`data.train_batch_size=4`).

    Raises:
        SettingsError: unknown preset, file, key or a value hydra cannot read; the message names near misses.
    """
    config_dir, name = _locate(preset_or_path)
    try:
        base = _compose(CONFIG_DIR, BASE_CONFIG, ())
        config = _compose(config_dir, name, overrides)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError) as error:
        raise SettingsError(_explain(error, overrides)) from error
    OmegaConf.set_struct(config, False)
    if "run_dir" not in config or "policies" not in config:
        raise SettingsError(f"{preset_or_path} must build on a preset: begin it with `defaults: [cpu, _self_]`")
    for policy in ("code", "test"):
        if not isinstance(config.policies.get(policy), DictConfig):
            raise SettingsError(f"policies.{policy} must be a block of keys, got {config.policies.get(policy)!r}")
    check_keys(config, base=base)
    return config


def _explain(error: Exception, overrides: Sequence[str]) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{mark.name}, line {mark.line + 1}: not valid YAML: {error.problem}"
    lines = str(error).splitlines() or [type(error).__name__]
    cause = str(error.__cause__).splitlines()[0] if error.__cause__ else ""
    message = lines[0] + (f" ({cause})" if cause and cause not in lines[0] else "")
    malformed = [override for override in overrides if "=" not in override and not override.startswith("~")]
    if malformed:
        return f"{malformed[0]!r} is not of the form key=value"
    keys = [override.lstrip("+~").partition("=")[0] for override in overrides]
    for override in overrides:
        key, _, value = override.partition("=")
        if key == "arm" and value not in arm_names():
            return f"unknown arm {value!r}; known: {', '.join(arm_names())}"
    for key in keys:
        if f"'{key}'" in message and "override" in message:
            near = _near_misses(key, list(_leaf_keys(compose_config(BASE_CONFIG_PRESET))))
            known = "config/code_a1.yaml and verl's configuration name the known ones"
            cure = f"did you mean {near}?" if near else known
            return f"unknown key {key!r}; {cure}"
    return message


# The preset whose keys are shown as near misses: it holds every block of the recipe.
BASE_CONFIG_PRESET = "cpu"


def _near_misses(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=3, cutoff=0.75)
    return " or ".join(near)


def _leaf_keys(config: DictConfig, prefix: str = "") -> Iterator[str]:
    for key in map(str, config):
        path = f"{prefix}{key}"
        yield path
        node = config._get_node(key)
        if isinstance(node, DictConfig) and not node._is_none() and not node._is_interpolation():
            yield from _leaf_keys(node, f"{path}.")


def check_keys(config: DictConfig, *, base: DictConfig) -> None:
    """Refuse keys that neither verl's YAML nor the recipe's has, at any depth and in both policies.

    Raises:
        SettingsError: names each unknown key with its full path and the nearest known ones.
    """
    known = set(_leaf_keys(base))
    shared = {key.removeprefix("actor_rollout_ref.") for key in known if key.startswith("actor_rollout_ref.")}
    for policy in ("code", "test"):
        known |= {f"policies.{policy}.{key}" for key in shared}
    unknown = [key for key in _leaf_keys(config) if key not in known and not _is_free(key)]
    if unknown:
        first = unknown[0]
        near = _near_misses(first, sorted(known))
        raise SettingsError(f"unknown keys: {', '.join(unknown)}" + (f"; did you mean {near}?" if near else ""))


def _is_free(key: str) -> bool:
    padded = f".{key}."
    return any(f".{subtree}." in padded for subtree in (*_FREE_SUBTREES, *_KNOWN_BEYOND_YAML))


COLOCATED, SEPARATE = "colocated", "separate"
LAYOUTS = (COLOCATED, SEPARATE)
"""Both policies on all GPUs; each on GPUs of its own."""


def pool_of(config: DictConfig, policy: str) -> tuple[int, int]:
    """Nodes, and GPUs on each of them, that a policy lives on."""
    pool = config.pools[policy] if config.layout == SEPARATE else config.trainer
    return pool.nnodes, pool.n_gpus_per_node


def pool_spec(config: DictConfig, policies: Sequence[str]) -> dict[str, list[int]]:
    """verl's resource pools by name: GPUs on each node. One pool for all policies, or one for each."""
    if config.layout == COLOCATED:
        return {COLOCATED: [config.trainer.n_gpus_per_node] * config.trainer.nnodes}
    sizes = {policy: pool_of(config, policy) for policy in policies}
    return {policy: [gpus] * nodes for policy, (nodes, gpus) in sizes.items()}


def policy_view(config: DictConfig, policy: str) -> DictConfig:
    """verl's configuration as one policy sees it: its overrides merged over ``actor_rollout_ref``.

    Interpolations resolve against the merged tree, so a value that refers to ``actor_rollout_ref.actor.…`` follows the
    policy's own override. The result has no ``policies`` key and nothing left to resolve.
    """
    view = OmegaConf.masked_copy(config, [str(key) for key in config if key != "policies"])
    overrides = OmegaConf.to_container(config.policies[policy], resolve=False)
    view.actor_rollout_ref = OmegaConf.merge(view.actor_rollout_ref, overrides)
    if config.layout == SEPARATE:
        view.trainer.nnodes, view.trainer.n_gpus_per_node = pool_of(config, policy)
    OmegaConf.resolve(view)
    return view


def missing_keys(config: DictConfig) -> list[str]:
    """Keys that a user must set (`???`), by full path."""
    return sorted(OmegaConf.missing_keys(config))


def to_yaml(config: DictConfig | ListConfig) -> str:
    """The configuration as YAML with every interpolation resolved."""
    return OmegaConf.to_yaml(config, resolve=True)
