"""Reward functions by name, the paper's and a user's own; there is one way to find, check and call them."""

import functools
import hashlib
import importlib
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from .adversary_reward import adversary_rewards
from .breakdown import Breakdown
from .code_llm_reward import pass_rate_rewards
from .interface import CodeReward, QuestionVerdicts, TestReward
from .lookup import lookup
from .test_llm_reward import valid_and_adversarial_rewards
from .weighted_reward import weighted_code_rewards, weighted_test_rewards

CODE_REWARDS: dict[str, CodeReward] = {"pass_rate": pass_rate_rewards, "weighted": weighted_code_rewards}
"""By ``rewards.code.name``; "pass_rate" is the paper's R_C, "weighted" punishes what is no program."""

TEST_REWARDS: dict[str, TestReward] = {
    "valid_and_adversarial": valid_and_adversarial_rewards,
    "adversary": adversary_rewards,
    "weighted": weighted_test_rewards,
}
"""By ``rewards.test.name``; "valid_and_adversarial" is the paper's R_T, "adversary" other rules by ``kwargs``,
"weighted" the paper's terms with free weights."""

_PACKAGE, _FILE = "pkg://", "file://"
_HINT = "return reward_fns.Breakdown(parts={'name': value}) or None for each"


def find_code_reward(name: str, *, path: str | None = None, kwargs: Mapping[str, Any] | None = None) -> CodeReward:
    """The Code LLM's reward function with its keyword arguments; see :func:`find_test_reward`."""
    return cast("CodeReward", _find(name, path, CODE_REWARDS, role="code", kwargs=kwargs or {}, defaults={}))


def find_test_reward(
    name: str,
    *,
    path: str | None = None,
    kwargs: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> TestReward:
    """The Test LLM's reward function with its keyword arguments.

    A function with an attribute ``check_arguments`` has it called with the arguments; it raises ValueError for values
    that cannot work, or for a program that is not installed.

    Args:
        name: a name of ``TEST_REWARDS``; with ``path`` the name of a function there.
        path: ``pkg://package.module``, or a Python file, as in verl's custom reward functions. A file is loaded by
            itself: it imports what is installed, not the files beside it.
        kwargs: keyword arguments of the function beside the question.
        defaults: further arguments, given to a function that has parameters of these names.

    Raises:
        ValueError: no such name, module, file or function, or it does not take these arguments or values.
    """
    found = _find(name, path, TEST_REWARDS, role="test", kwargs=kwargs or {}, defaults=defaults or {})
    return cast("TestReward", found)


def _find(
    name: str,
    path: str | None,
    table: Mapping[str, Any],
    *,
    role: str,
    kwargs: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> Callable[[QuestionVerdicts], Any]:
    function = lookup(name, table, what=f"{role} reward") if path is None else getattr(load_module(path), name, None)
    if not callable(function):
        hint = f"define `def {name}(question)` there, or name one that it has by rewards.{role}.name"
        raise ValueError(f"{path} has no function {name!r}; {hint}")
    # Bound here and not at the first episode, which may come an hour later.
    signature = inspect.signature(function)
    arguments = {key: value for key, value in defaults.items() if key in signature.parameters} | dict(kwargs)
    try:
        signature.bind(object(), **arguments)
    except TypeError as error:
        call = ", ".join(["question", *(f"{key}=..." for key in arguments)])
        raise ValueError(
            f"{name}{signature} cannot be called as {name}({call}): {error}; the question is "
            f"given by position, the other parameters by rewards.{role}.kwargs"
        ) from error
    if (check := getattr(function, "check_arguments", None)) is not None:
        try:
            check(**arguments)
        except TypeError as error:
            raise ValueError(f"{name} does not take these values: {error}") from error
    return functools.partial(function, **arguments)


def reward_file(path: str) -> Path | None:
    """The file that ``path`` names; None for a ``pkg://`` module."""
    return None if path.startswith(_PACKAGE) else Path(path.removeprefix(_FILE))


def load_module(path: str) -> ModuleType:
    """The module at ``pkg://a.b`` (or ``pkg://a/b``), ``file:///a/b.py`` or ``/a/b.py``.

    Raises:
        ValueError: it is not there, or raises while it is imported.
    """
    try:
        if (file := reward_file(path)) is not None:
            return _load_file(file)
        return importlib.import_module(path.removeprefix(_PACKAGE).replace("/", "."))
    except Exception as error:  # a user's module may raise anything
        hint = "give pkg://package.module of what is installed, or the path of a Python file"
        raise ValueError(f"{path} cannot be loaded: {type(error).__name__}: {error}; {hint}") from error


def _load_file(file: Path) -> ModuleType:
    content = file.read_bytes()
    # Named after place and content: an edited file is loaded anew, and two files of one name do not meet.
    name = f"reward_file_{hashlib.sha256(str(file.absolute()).encode() + b'/' + content).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError("its name does not end in .py")
    # Listed before it runs: its dataclasses look their own module up.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def reward_code(function: CodeReward, question: QuestionVerdicts) -> tuple[Breakdown | None, ...]:
    """The function's rewards of a question's candidates, checked.

    Raises:
        ValueError: not one for each candidate, no reward, not finite, or a reward for what has no verdict.
    """
    rewards = _checked_list(function(question), len(question.candidates), "one for each candidate")
    for c, reward in enumerate(rewards):
        _check_reward(reward, question, c, place=f"candidate {c}")
    return rewards


def reward_suites(function: TestReward, question: QuestionVerdicts) -> tuple[tuple[Breakdown | None, ...], ...]:
    """The function's rewards of a question's suites, by candidate, checked.

    Raises:
        ValueError: as for :func:`reward_code`.
    """
    rows = []
    for c, row in enumerate(_checked_list(function(question), len(question.candidates), "a list for each candidate")):
        num_suites = len(question.candidates[c].suite_texts)
        rows.append(_checked_list(row, num_suites, f"one for each of candidate {c}'s suite_texts"))
        for s, reward in enumerate(rows[-1]):
            _check_reward(reward, question, c, place=f"suite {s} of candidate {c}")
    return tuple(rows)


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
    # Parts may be finite while their sum is no float32, in which verl carries rewards.
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
