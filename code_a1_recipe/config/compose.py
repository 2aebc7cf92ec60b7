"""From a preset or a YAML file and `key=value` overrides to a ``RunConfig``; hydra is used here and nowhere else.

verl's `ppo_trainer.yaml` is found without importing verl, so that a typing error is answered in a second.
"""

import importlib.util
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ..algorithm.schedule import POLICY_NAMES
from ..algorithm.settings_block import near_misses, unknown_key
from ..errors import SettingsError
from .removed import drop_removed_keys, refused_keys
from .rules import VALUE_RULES, Rule, broken_rules
from .run_config import CONFIG_FORMAT, SEPARATE, RunConfig, copied
from .verl_keys import changed_keys

CONFIG_DIR = Path(__file__).parent
BASE_CONFIG = "code_a1"
SHARED_CONFIGS = (BASE_CONFIG, "gpu", "verl_keys")

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
    "rewards.code.kwargs",
    "rewards.test.kwargs",
    "micro",
    # verl's dataclasses know it and its YAML files leave it out.
    "rollout.enable_sleep_mode",
)


def _share_of_card(shared: float, layout: str, is_self_play: bool, num_suites: int, tester: str | None) -> float:
    """Of a GPU's memory: with another policy's server on the card, or alone on it."""
    return 0.8 if layout == SEPARATE or is_self_play or not num_suites or tester else shared


OmegaConf.register_new_resolver("share_of_card", _share_of_card, replace=True)


def _on_each(number: int, num_nodes: object) -> int:
    """Processes of all nodes; what is no number of nodes is refused under its own key."""
    return number * num_nodes if isinstance(num_nodes, int) else number


OmegaConf.register_new_resolver("on_each", _on_each, replace=True)

_PLAIN_TEXT = re.compile(r"[\w./~@-]+", re.ASCII)
_USER_FILES = ("prompts.code", "prompts.test", "rewards.code.path", "rewards.test.path")
"""Paths that become absolute, since workers start in other folders."""


def quoted(value: object) -> str:
    """A text as hydra's grammar takes it whatever it holds: a backslash counts only before a quote."""
    text = str(value)
    if _PLAIN_TEXT.fullmatch(text):
        return text
    escaped = re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text)
    return f"'{escaped}'"


def preset_names() -> list[str]:
    """Presets that ship with the recipe, without the files of shared defaults."""
    return sorted(path.stem for path in CONFIG_DIR.glob("*.yaml") if path.stem not in SHARED_CONFIGS)


def arm_names() -> list[str]:
    """Values of ``arm=``."""
    return sorted(path.stem for path in (CONFIG_DIR / "arm").glob("*.yaml"))


_SHARED = "actor_rollout_ref"
"""Block of what both policies have in common; ``policies.<name>`` goes over it."""


def read_config(
    preset_or_path: str, overrides: Sequence[str] = (), *, rules: Sequence[Rule] = VALUE_RULES
) -> RunConfig:
    """Compose a preset (`cpu`) or a YAML file with overrides (`data.train_batch_size=4`), and check it.

    Args:
        rules: checked beside the bounds of the single values.

    Raises:
        SettingsError: names everything that is wrong at once: unknown keys, values out of bounds, broken rules.
    """
    tree = compose_config(preset_or_path, overrides)
    try:
        config, refused = RunConfig.from_tree(tree)
    except OmegaConfBaseException as error:
        raise SettingsError(_explain(error)) from error
    unknown = dict(_unknown_keys(tree)) | dict(refused_keys(tree))
    values = (problem for key, problem in refused.items() if key not in unknown)
    problems = [*unknown.values(), *changed_keys(tree, _preset(BASE_CONFIG), "refused")]
    problems += [*_overruled(tree, overrides), *values]
    problems += broken_rules(config, rules, is_partial=bool(refused))
    if problems:
        raise SettingsError(*dict.fromkeys(problems))
    return config


def keys_without_effect(config: RunConfig) -> list[str]:
    """A message for each of verl's keys that has a value of the user's and changes nothing."""
    return list(changed_keys(config.for_verl(), _preset(BASE_CONFIG), "no_effect"))


def recorded_config(path: Path) -> RunConfig:
    """Read the ``resolved_config.yaml`` of a run.

    Raises:
        SettingsError: it cannot be read, is of another format, or was changed; names everything that is wrong.
    """
    try:
        tree = DictConfig(OmegaConf.load(path))
        if (found := tree.get("config_format")) != CONFIG_FORMAT:
            hint = "read the run with the release that wrote it, or train again"
            raise SettingsError(f"{path} has format {found}, this release reads format {CONFIG_FORMAT}; {hint}")
        drop_removed_keys(tree)
        config, refused = RunConfig.from_tree(tree)
    except (OSError, yaml.YAMLError, OmegaConfBaseException, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(f"{path} is no configuration of a run: {type(error).__name__}: {error}") from error
    if refused:
        raise SettingsError(*(f"{path}: {problem}" for problem in refused.values()))
    return config


def compose_config(preset_or_path: str, overrides: Sequence[str] = ()) -> DictConfig:
    """Compose without checking keys and values.

    Raises:
        SettingsError: unknown preset or file, overrides that hydra cannot read (all of them), YAML that is none.
    """
    folder, name = _locate(preset_or_path)
    if problems := list(_malformed(overrides)):
        raise SettingsError(*problems)
    try:
        tree = _compose(folder, name, overrides)
        OmegaConf.set_struct(tree, False)
        if "run_dir" not in tree or "policies" not in tree:
            raise SettingsError(f"{preset_or_path} must build on a preset: begin it with `defaults: [cpu, _self_]`")
        for policy in POLICY_NAMES:
            if not isinstance(tree.policies.get(policy), DictConfig):
                raise SettingsError(f"policies.{policy} must be a block of keys, got {tree.policies.get(policy)!r}")
        _complete(tree, name)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        raise SettingsError(_explain(error)) from error
    return tree


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


@cache
def _verl_config_dir() -> Path:
    spec = importlib.util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError(
            "verl is not installed in this environment; `bash run_codea1.sh setup` installs the version the recipe "
            "was checked on (REQUIRED_VERL.txt)"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "trainer" / "config"


def _malformed(overrides: Sequence[str]) -> Iterator[str]:
    for override in overrides:
        key, separator, value = override.partition("=")
        if not separator and not override.startswith("~"):
            yield f"{override!r} is not of the form key=value"
        elif key == "arm" and value not in arm_names():
            near = near_misses(value, arm_names())
            yield f"unknown arm {value!r}; " + (f"did you mean {near}?" if near else f"known: {', '.join(arm_names())}")
        else:
            try:
                OverridesParser.create().parse_override(override)
            except HydraException as error:
                quoted = f"{key}='...'"  # for hydra; the shell takes the outer ones
                yield f'{override!r} cannot be read: {_explain(error)}; quote special characters: "{quoted}"'


def _compose(folder: Path, name: str, overrides: Sequence[str]) -> DictConfig:
    written = [_as_hydra_override(override) for override in overrides]
    values = OverridesParser.create().parse_overrides(written)
    if folder != CONFIG_DIR or not all(map(_sets_a_value, values)):
        return _composed_by_hydra(folder, name, written)
    tree = copied(_preset(name))
    for one in values:  # as hydra does, once it has composed
        OmegaConf.update(tree, one.key_or_group, one.value(), merge=True, force_add=True)
    return tree


def _sets_a_value(override: Override) -> bool:
    """Whether it only sets or adds one, and chooses no file (a key of the first level may be a group of files)."""
    is_value = "." in override.key_or_group or override.key_or_group in ("run_dir", "resume")
    return bool(is_value and override.is_force_add() and not override.is_sweep_override())


@cache
def _preset(name: str) -> DictConfig:
    """Composing reads some thirty files, which takes seconds."""
    return _composed_by_hydra(CONFIG_DIR, name, ())


def _composed_by_hydra(folder: Path, name: str, overrides: Sequence[str]) -> DictConfig:
    search_path = f"hydra.searchpath=[file://{_verl_config_dir()},file://{CONFIG_DIR}]"
    GlobalHydra.instance().clear()
    with initialize_config_dir(config_dir=str(folder), version_base=None):
        return compose(name, overrides=[search_path, *overrides])


def _as_hydra_override(override: str) -> str:
    """`++`, which sets or adds: hydra would name the first unknown key alone, `_unknown_keys` names all."""
    key = override.partition("=")[0]
    if key == "arm":  # a group of settings, put over all that the preset says
        return f"+{override}"
    is_group = "@" in key or key == "model_engine"
    return override if override.startswith(("+", "~")) or is_group else f"++{override}"


def _complete(tree: DictConfig, name: str) -> None:
    """Fill in where the run writes, and put ``resume`` into verl's own keys, which the rest reads."""
    if not tree.run_dir:
        tree.run_dir = str(Path("outputs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}")
    tree.run_dir = str(Path(str(tree.run_dir)).absolute())
    tree.transfer_queue.enable = True
    tree.trainer.experiment_name = tree.trainer.experiment_name or Path(tree.run_dir).name
    own = tree.get("extensions")
    extensions = [f"extensions[{number}].path" for number in range(len(own) if OmegaConf.is_list(own) else 0)]
    for key in (*_USER_FILES, *extensions):
        path = OmegaConf.select(tree, key)
        if isinstance(path, str) and path and "://" not in path:
            OmegaConf.update(tree, key, str(Path(path).expanduser().absolute()))
    if tree.resume == "never":
        tree.trainer.resume_mode = "disable"
    elif isinstance(tree.resume, str) and tree.resume not in ("auto", ""):
        tree.trainer.resume_mode = "resume_path"
        tree.trainer.resume_from_path = str(Path(tree.resume).expanduser().absolute())


def _explain(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{mark.name}, line {mark.line + 1}: not valid YAML: {error.problem}"
    first = (str(error).splitlines() or [type(error).__name__])[0]
    cause = str(error.__cause__).splitlines()[0] if error.__cause__ else ""
    return first + (f" ({cause})" if cause and cause not in first else "")


@cache
def _known_keys() -> frozenset[str]:
    """Keys that verl's YAML or the recipe's has, at any depth and in both policies."""
    known = set(_keys(OmegaConf.to_container(_preset(BASE_CONFIG))))
    shared = {key.removeprefix("actor_rollout_ref.") for key in known if key.startswith("actor_rollout_ref.")}
    return frozenset(known.union(*({f"policies.{policy}.{key}" for key in shared} for policy in POLICY_NAMES)))


def _keys(tree: Any, prefix: str = "") -> Iterator[str]:
    """Dotted keys of plain dictionaries, at any depth."""
    for key, value in tree.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.")


def _unknown_keys(tree: DictConfig) -> Iterator[tuple[str, str]]:
    """Each key that nothing reads, with the message about it."""
    unknown: list[str] = []
    for key in _keys(OmegaConf.to_container(tree)):
        below_unknown = unknown and key.startswith(f"{unknown[-1]}.")
        if key not in _known_keys() and not below_unknown and not _is_free(key):
            unknown.append(key)
            yield key, unknown_key(key, sorted(_known_keys()))


def _overruled(tree: DictConfig, overrides: Sequence[str]) -> Iterator[str]:
    """Shared values in whose place both policies have one of their own, so that nothing would read them.

    Values alone: of a block that is given whole, a part may be read.
    """
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        own = [f"policies.{policy}{key.removeprefix(_SHARED)}" for policy in POLICY_NAMES]
        shared = OmegaConf.select(tree, key, default=None) if key.startswith(f"{_SHARED}.") else None
        is_value = shared is not None and not OmegaConf.is_config(shared)
        if is_value and all(OmegaConf.select(tree, one, default=shared) != shared for one in own):
            yield f"{key}={value} has no effect: each policy has a value of its own; set {' and '.join(own)}"


def _is_free(key: str) -> bool:
    return any(f".{subtree}." in f".{key}." for subtree in _FREE_SUBTREES)
