"""Makes a ``RunConfig`` from a preset or a YAML file, and from overrides `key=value`. Only this module uses hydra.

``read_config`` first composes the configuration. Then `keys.py` checks its keys, `run_config.py` checks each value, and
`rules.py` checks values that depend on one another.
"""

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
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

from ..algorithm.settings_block import near_misses
from ..errors import SettingsError
from .keys import key_problems
from .rules import VALUE_RULES, Rule
from .run_config import CONFIG_FORMAT, SEPARATE, RunConfig, copied
from .verl_keys import changed_keys

CONFIG_DIR = Path(__file__).parent
BASE_CONFIG = "code_a1"
SHARED_CONFIGS = (BASE_CONFIG, "gpu", "tiny", "verl_keys")

_LIST_OR_BLOCK = "gives a list to a block of keys, or keys to a list"
_USER_FILES = ("prompts.code", "prompts.test", "rewards.code.path", "rewards.test.path")
"""Keys whose paths are made absolute, because workers start in other folders."""


def read_config(
    preset_or_path: str, overrides: Sequence[str] = (), *, rules: Sequence[Rule] = VALUE_RULES
) -> RunConfig:
    """Compose a preset (`cpu`) or a YAML file with overrides (`data.train_batch_size=4`), and check the result.

    Args:
        rules: rules about values that depend on one another. The bounds of single values are always checked.

    Raises:
        SettingsError: the message names all unknown keys, values out of bounds and broken rules. Rules are checked once
            every value is within its bounds.
    """
    tree = compose_config(preset_or_path, overrides)
    problems = key_problems(tree, _preset(BASE_CONFIG), overrides)
    try:
        config, refused = RunConfig.from_tree(tree)
    except OmegaConfBaseException as error:
        raise SettingsError(_explain(error)) from error
    for key, problem in refused.items():
        problems.setdefault(key, problem)
    if config is not None:
        problems |= {message: message for rule in rules for message in rule(config)}
    if config is None or problems:
        raise SettingsError(*dict.fromkeys(problems.values()))
    return config


def compose_config(preset_or_path: str, overrides: Sequence[str] = ()) -> DictConfig:
    """Compose a configuration, without checking its keys and values.

    Raises:
        SettingsError: the preset or file is unknown, the file is not valid YAML, or hydra cannot read an override. The
            message names all overrides that hydra cannot read.
    """
    folder, name = _locate(preset_or_path)
    words = [_with_home(override) for override in overrides]
    if problems := list(_malformed(words)):
        raise SettingsError(*problems)
    try:
        tree = _compose(folder, name, words)
        if "run_dir" not in tree or "policies" not in tree:
            raise SettingsError(f"{preset_or_path} must build on a preset: begin it with `defaults: [cpu, _self_]`")
        _refuse_lost_blocks(tree)
        _complete(tree, name)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        raise SettingsError(_explain(error)) from error
    return tree


def _locate(preset_or_path: str) -> tuple[Path, str]:
    """Find the folder and the name of the configuration file."""
    path = Path(preset_or_path)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise SettingsError(f"config file {path} does not exist (relative paths start at {Path.cwd()})")
        is_shipped = path.resolve().parent == CONFIG_DIR.resolve()
        if (CONFIG_DIR / f"{path.stem}.yaml").is_file() and not is_shipped:
            raise SettingsError(f"{path} has the name of a shipped config, which it would hide from itself; rename it")
        return path.resolve().parent, path.stem
    if preset_or_path not in preset_names():
        raise SettingsError(
            f"unknown preset {preset_or_path!r}; known: {', '.join(preset_names())}, or the path of a .yaml file"
        )
    return CONFIG_DIR, preset_or_path


def _with_home(override: str) -> str:
    """Replace ``~`` in ``key=~/path``, which bash does not expand and hydra cannot read."""
    key, separator, value = override.partition("=")
    return f"{key}{separator}{Path(value).expanduser()}" if value.startswith("~/") else override


def _malformed(overrides: Sequence[str]) -> Iterator[str]:
    """A message for each override that hydra cannot read."""
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
                example = f"{key}='...'"  # the inner quotes are for hydra, the outer ones for the shell
                yield f'{override!r} cannot be read: {_explain(error)}; quote special characters: "{example}"'


def _compose(folder: Path, name: str, overrides: Sequence[str]) -> DictConfig:
    """Let hydra choose files and delete keys, and then set values in their order.

    hydra reads about thirty files, which takes seconds, so what it composed of shipped files is kept.
    """
    written = [_as_hydra_override(override) for override in overrides]
    parsed = OverridesParser.create().parse_overrides(written)
    choices = tuple(word for word, override in zip(written, parsed, strict=True) if not _sets_a_value(override))
    tree = copied(_shipped(name, choices)) if folder == CONFIG_DIR else _composed_by_hydra(folder, name, choices)
    OmegaConf.set_struct(tree, False)
    _refuse_lost_blocks(tree)  # a value would make a block anew, without its other keys
    for override, word in zip(parsed, overrides, strict=True):
        if _sets_a_value(override):
            try:
                OmegaConf.update(tree, override.key_or_group, override.value(), merge=True, force_add=True)
            except TypeError as error:
                raise SettingsError(f"{word!r} {_LIST_OR_BLOCK}") from error
    return tree


def _as_hydra_override(override: str) -> str:
    """Put `++` before an override, so that hydra also adds unknown keys instead of ending at the first one.

    `keys.py` then names all unknown keys.
    """
    key = override.partition("=")[0]
    if key == "arm":  # a file whose settings replace the preset's
        return f"+{override}"
    is_group = "@" in key or key == "model_engine"
    return override if override.startswith(("+", "~")) or is_group else f"++{override}"


def _sets_a_value(override: Override) -> bool:
    """Return True if an override sets or adds a value. Other top-level keys may choose a file instead."""
    is_value = "." in override.key_or_group or override.key_or_group in ("run_dir", "resume")
    return bool(is_value and override.is_force_add() and not override.is_sweep_override())


def _preset(name: str) -> DictConfig:
    return _shipped(name, ())


@cache
def _shipped(name: str, choices: tuple[str, ...]) -> DictConfig:
    return _composed_by_hydra(CONFIG_DIR, name, choices)


def _composed_by_hydra(folder: Path, name: str, overrides: Sequence[str]) -> DictConfig:
    search_path = f"hydra.searchpath=[file://{_verl_config_dir()},file://{CONFIG_DIR}]"
    GlobalHydra.instance().clear()
    with initialize_config_dir(config_dir=str(folder), version_base=None):
        return compose(name, overrides=[search_path, *overrides])


@cache
def _verl_config_dir() -> Path:
    """Find the folder of verl's YAML files without importing verl, which takes seconds."""
    spec = importlib.util.find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError(
            "verl is not installed in this environment; `bash run_codea1.sh setup` installs the version the recipe "
            "was checked on (REQUIRED_VERL.txt)"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "trainer" / "config"


def _refuse_lost_blocks(tree: DictConfig) -> None:
    found, base = (OmegaConf.to_container(one, resolve=False) for one in (tree, _preset(BASE_CONFIG)))
    assert isinstance(found, dict)
    assert isinstance(base, dict)
    if problems := list(_lost_blocks(found, base)):
        raise SettingsError(*problems)


def _lost_blocks(tree: Mapping[Any, Any], base: Mapping[Any, Any], above: str = "") -> Iterator[str]:
    """Yield a message for each block of ``base`` in whose place the tree has a value, or nothing."""
    for name, block in base.items():
        if not isinstance(block, dict) or name not in tree:
            continue
        key, value = f"{above}{name}", tree[name]
        if isinstance(value, dict):
            yield from _lost_blocks(value, block, f"{key}.")
        elif value is not None or block:
            yield f"{key} must be a block of keys, got {value!r}"


def _complete(tree: DictConfig, name: str) -> None:
    """Fill in the run's folder, make paths absolute, and write ``resume`` into verl's own keys."""
    if not tree.run_dir:
        tree.run_dir = f"outputs/{name}-{datetime.now():%Y%m%d-%H%M%S}"
    tree.run_dir = _absolute(str(tree.run_dir))
    tree.transfer_queue.enable = True
    tree.trainer.experiment_name = tree.trainer.experiment_name or Path(tree.run_dir).name
    extensions = tree.get("extensions")
    num_extensions = len(extensions) if OmegaConf.is_list(extensions) else 0
    for key in (*_USER_FILES, *(f"extensions[{number}].path" for number in range(num_extensions))):
        path = OmegaConf.select(tree, key)
        if isinstance(path, str) and path and "://" not in path:
            OmegaConf.update(tree, key, _absolute(path))
    if tree.resume == "never":
        tree.trainer.resume_mode = "disable"
    elif isinstance(tree.resume, str) and tree.resume not in ("auto", ""):
        tree.trainer.resume_mode = "resume_path"
        tree.trainer.resume_from_path = _absolute(tree.resume)


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def _explain(error: Exception) -> str:
    """Shorten a library's message to its first line, with its place in a YAML file or its cause."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{mark.name}, line {mark.line + 1}: not valid YAML: {error.problem}"
    lines = str(error).splitlines()
    first = lines[0] if lines else type(error).__name__
    if refused := re.match(r"Error merging override \+*(.*)", first):
        return f"{refused[1]!r} {_LIST_OR_BLOCK}"
    if refused := re.match(r"force-add of config groups is not supported: '\+*(.*)'", first):
        return f"{refused[1]!r} replaces a block of keys; set keys in it, such as KEY.NAME=VALUE"
    if refused := re.match(r"In '.*': Could not (?:load|find) '(.*)'", first):
        return f"unknown preset {refused[1]!r} under defaults; known: {', '.join(preset_names())}"
    if refused := re.search(r"node `(.*)` is not a container", first):
        return f"{refused[1]} must be a block of keys"
    cause = str(error.__cause__).splitlines()[0] if error.__cause__ else ""
    return first if cause in first else f"{first} ({cause})"


def recorded_config(path: Path) -> RunConfig:
    """Read the ``resolved_config.yaml`` of a run.

    Raises:
        SettingsError: the file cannot be read, has another format, or was changed. The message names all problems.
    """
    try:
        tree = DictConfig(OmegaConf.load(path))
        if (recorded := tree.get("config_format")) != CONFIG_FORMAT:
            hint = "read the run with the release that wrote it, or train again"
            raise SettingsError(f"{path} has format {recorded}, this release reads format {CONFIG_FORMAT}; {hint}")
        config, refused = RunConfig.from_tree(tree)
    except (OSError, yaml.YAMLError, OmegaConfBaseException, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(f"{path} is no configuration of a run: {type(error).__name__}: {error}") from error
    if config is None:
        raise SettingsError(*(f"{path}: {problem}" for problem in refused.values()))
    return config


def keys_without_effect(config: RunConfig) -> list[str]:
    """Return a message for each key of verl that the user has set although it changes nothing."""
    changed = changed_keys(config.for_verl(), _preset(BASE_CONFIG), "no_effect")
    return [message for _, message in changed]


def preset_names() -> list[str]:
    """List the shipped presets. Files with shared defaults are not presets."""
    return sorted(path.stem for path in CONFIG_DIR.glob("*.yaml") if path.stem not in SHARED_CONFIGS)


def arm_names() -> list[str]:
    """List the values of ``arm=``."""
    return sorted(path.stem for path in (CONFIG_DIR / "arm").glob("*.yaml"))


def quoted(value: object) -> str:
    """Quote a value so that hydra reads exactly this text, whatever characters it has."""
    text = str(value)
    if re.fullmatch(r"[\w./~@-]+", text, re.ASCII):
        return text
    # hydra treats a backslash as special only before a quote.
    escaped = re.sub(r"(\\*)('|$)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), text)
    return f"'{escaped}'"


def _share_of_card(shared: float, layout: str, is_self_play: bool, num_suites: int, tester: str | None) -> float:
    """Return the share of a GPU's memory for a server: 0.8 if it is alone on the GPU, else ``shared``."""
    is_alone = layout == SEPARATE or is_self_play or not num_suites or tester
    return 0.8 if is_alone else shared


def _on_each(number: int, layout: str, shared: object, *separate: object) -> int:
    """Return the number of processes on all nodes. If the nodes are no integer, another check refuses them.

    Two separate pools may lie on the same nodes, so the larger one counts.
    """
    nodes = [pool for pool in (separate if layout == SEPARATE else [shared]) if isinstance(pool, int)]
    return number * max(nodes, default=1)


# The recipe's YAML files call these two functions.
OmegaConf.register_new_resolver("share_of_card", _share_of_card, replace=True)
OmegaConf.register_new_resolver("on_each", _on_each, replace=True)
