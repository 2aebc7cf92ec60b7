"""Keys, commands and options that earlier releases had, each with a sentence for whoever still asks for it.

A sentence says what takes the place of what has left. `REMOVED_KEYS` is read where unknown keys are refused
(`config/compose.py`), the other two by the command line.
"""

from collections.abc import Iterator

from omegaconf import DictConfig, OmegaConf

REMOVED_KEYS: dict[str, str] = {
    "episode.repair_reward": "a program that was written again earns its own reward; for another rule write a reward "
    "function and name it by rewards.code.path",
    "episode.share_suites": "each program has suites of its own; leave it out",
    "mistake_book.counting": "passed replays are subtracted before failures are added, as in the paper's release; "
    "leave it out",
    "mistake_book.max_cases_per_question": "mistake_book.max_size bounds the whole book",
    "mistake_book.sampler": "the most frequent cases are replayed, as in the paper; leave it out",
    "opponents.sampling": "all generations of opponents are met equally often; leave it out",
    "selection.part": "groups are selected by the whole reward of their suites; for another rule write a reward "
    "function and name it by rewards.test.path",
}
"""Dotted key -> what takes its place, as the second half of a sentence."""

REMOVED_COMMANDS: dict[str, str] = {}
"""Words of a command line behind `code-a1`, such as `report push` -> what takes the command's place."""

REMOVED_OPTIONS: dict[str, str] = {}
"""A command and its option, such as `export --push` -> what takes the option's place."""


def refused_keys(tree: DictConfig) -> Iterator[tuple[str, str]]:
    """Each removed key that a configuration still sets, with the message about it."""
    for key, replacement in REMOVED_KEYS.items():
        value = OmegaConf.select(tree, key, default=_NOT_SET)
        if value is not _NOT_SET:
            yield key, f"{key}={value} was removed: {replacement}"


def drop_removed_keys(tree: DictConfig) -> None:
    """Take removed keys out of the configuration that an earlier release recorded, so that its run can be read."""
    for key, _ in list(refused_keys(tree)):
        block, _, name = key.rpartition(".")
        OmegaConf.select(tree, block).pop(name)


_NOT_SET = object()
