"""Finds, checks and calls reward functions, both the shipped functions and a user's own."""

import functools
import hashlib
import importlib
import importlib.util
import inspect
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from .adversary_reward import adversary_rewards
from .breakdown import Breakdown
from .code_llm_reward import pass_rate_rewards
from .interface import CodeReward, QuestionVerdicts, TestReward, lookup
from .test_llm_reward import valid_and_adversarial_rewards
from .weighted_reward import weighted_code_rewards, weighted_test_rewards

CODE_REWARDS: dict[str, CodeReward] = {"pass_rate": pass_rate_rewards, "weighted": weighted_code_rewards}
"""Maps each name for ``rewards.code.name`` to its function. "pass_rate" is the paper's R_C; "weighted" also punishes a
response without a program that loads."""

TEST_REWARDS: dict[str, TestReward] = {
    "valid_and_adversarial": valid_and_adversarial_rewards,
    "adversary": adversary_rewards,
    "weighted": weighted_test_rewards,
}
"""Maps each name for ``rewards.test.name`` to its function. "valid_and_adversarial" is the paper's R_T; "adversary"
pays a suite for the failed calls that it found; "weighted" has the paper's terms with free weights."""

_PACKAGE, _FILE = "pkg://", "file://"
_HINT = "return reward_fns.Breakdown(parts={'name': value}) or None for each"


def find_reward(
    role: str,
    name: str,
    *,
    path: str | None = None,
    kwargs: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Any:
    """Find a reward function and bind its keyword arguments.

    Args:
        role: "code" or "test".
        name: a name in ``CODE_REWARDS`` or ``TEST_REWARDS``; with ``path``, the name of a function in that module.
        path: ``pkg://package.module`` or a Python file, as in verl's custom reward functions. A file can import
            installed packages, but not other files of its folder.
        kwargs: keyword arguments of the function; the question is not one of them.
        defaults: further keyword arguments. The function gets only the defaults that its signature names.

    Returns:
        A ``CodeReward`` or a ``TestReward``.

    Raises:
        ValueError: the name, module, file or function does not exist, or the function does not take its arguments.
    """
    table: Mapping[str, Any] = CODE_REWARDS if role == "code" else TEST_REWARDS
    function = lookup(name, table, what=f"{role} reward") if path is None else getattr(load_module(path), name, None)
    if not callable(function):
        hint = f"define `def {name}(question)` there, or name another function of this module in rewards.{role}.name"
        raise ValueError(f"{path} has no function {name!r}; {hint}")
    # A wrong argument is found now, and not at the first episode, which may come an hour later.
    signature = inspect.signature(function)
    # A user's function need not have the paper's parameters.
    arguments = {key: value for key, value in (defaults or {}).items() if key in signature.parameters} | dict(
        kwargs or {}
    )
    try:
        signature.bind(object(), **arguments)
    except TypeError as error:
        call = ", ".join(["question", *(f"{key}=..." for key in arguments)])
        raise ValueError(
            f"{name}{signature} cannot be called as {name}({call}): {error}; the question is the only "
            f"positional argument, and rewards.{role}.kwargs holds the others"
        ) from error
    return functools.partial(function, **arguments)


def reward_file(path: str) -> Path | None:
    """The file that ``path`` names; None for a ``pkg://`` module."""
    return None if path.startswith(_PACKAGE) else Path(path.removeprefix(_FILE))


def load_module(path: str) -> ModuleType:
    """Import the module at ``pkg://a.b`` (or ``pkg://a/b``), ``file:///a/b.py`` or ``/a/b.py``.

    Raises:
        ValueError: the module does not exist, or its import fails.
    """
    try:
        if (file := reward_file(path)) is not None:
            return _load_file(file)
        return importlib.import_module(path.removeprefix(_PACKAGE).replace("/", "."))
    except (Exception, SystemExit) as error:  # a user's module may raise anything, and may end in sys.exit
        hint = "give pkg://package.module for an installed module, or the path of a Python file"
        raise ValueError(f"{path} cannot be loaded: {type(error).__name__}: {error}; {hint}") from error


def _load_file(file: Path) -> ModuleType:
    content = file.read_bytes()
    # The module's name depends on path and content. So an edited file is loaded anew, and two files with the same name
    # do not collide.
    digest = hashlib.sha256(str(file.absolute()).encode() + b"/" + content).hexdigest()
    name = f"reward_file_{digest[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError("its name does not end in .py")
    # The module is registered before it runs, because its dataclasses look it up in `sys.modules`.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def reward_code(function: CodeReward, question: QuestionVerdicts) -> tuple[Breakdown | None, ...]:
    """Call the function for a question, and check the rewards that it returns for the candidates.

    Raises:
        ValueError: the number of rewards is wrong, or a reward is no ``Breakdown``, is too large for float32, or
            belongs to a candidate without a verdict.
    """
    rewards = _checked_list(function(question), len(question.candidates), "one for each candidate")
    for c, reward in enumerate(rewards):
        _check_reward(reward, question, c, place=f"candidate {c}")
    return rewards


def reward_suites(function: TestReward, question: QuestionVerdicts) -> tuple[tuple[Breakdown | None, ...], ...]:
    """Call the function for a question, and check the rewards that it returns for the suites: one row for each
    candidate.

    Raises:
        ValueError: as in :func:`reward_code`; each candidate needs one reward for each of its ``suite_texts``.
    """
    rows = _checked_list(function(question), len(question.candidates), "a list for each candidate")
    checked_rows = []
    for c, (row, candidate) in enumerate(zip(rows, question.candidates, strict=True)):
        rewards = _checked_list(row, len(candidate.suite_texts), f"one for each of candidate {c}'s suite_texts")
        for s, reward in enumerate(rewards):
            _check_reward(reward, question, c, place=f"suite {s} of candidate {c}")
        checked_rows.append(rewards)
    return tuple(checked_rows)


def _checked_list(rewards: object, length: int, rule: str) -> tuple[Any, ...]:
    if not isinstance(rewards, Sequence) or isinstance(rewards, str):
        raise ValueError(f"must return a list, {rule}, got {rewards!r}; {_HINT}")
    if len(rewards) != length:
        raise ValueError(f"must return {length} items, {rule}, got {len(rewards)}; {_HINT}")
    return tuple(rewards)


def _check_reward(reward: object, question: QuestionVerdicts, c: int, *, place: str) -> None:
    if reward is None:
        return
    if not isinstance(reward, Breakdown):
        raise ValueError(f"must reward {place} with a Breakdown or None, got {reward!r}; {_HINT}")
    # verl stores rewards in float32, which may overflow although all parts are finite.
    try:
        is_finite = math.isfinite(reward.total)
    except OverflowError:
        is_finite = False
    if not is_finite:
        raise ValueError(f"must reward {place} with a number that float32 can hold, got {dict(reward.parts)}")
    if question.candidates[c].verdict is None:
        raise ValueError(
            f"must reward {place} with None, since the candidate has no verdict, got {reward.total!r}; skip candidates "
            "with verdict=None"
        )
