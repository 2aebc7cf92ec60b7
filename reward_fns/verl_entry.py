"""``compute_score`` for any verl job: judges one response in the sandbox and rewards it.

In a verl config::

    reward:
      custom_reward_function:
        path: pkg://reward_fns.verl_entry
        name: compute_score
        reward_kwargs: {num_cases: 8, alpha: 0.5, sandbox: {num_workers: 4, limits: {total_seconds: 10}}}

Name the module with ``pkg://``. A file path would load the module outside its package, and the module's imports would
fail.

An outage of the sandbox raises an exception, and never becomes a reward. The V1 trainer of verl 0.9.1 then leaves this
response out of the step, and trains on the other responses of its group. If an outage affects all responses of a step,
the job stops.
"""

import atexit
import inspect
import json
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sandbox import CandidateVerdict, Judge, JudgeRequest, Kind, Limits, LocalRunner
from sandbox.text import LISTED_OUTPUTS, PARSE_ERRORS, parse_untrusted

from .code_llm_reward import code_llm_reward
from .extract import ExtractionFailure, asked_names, extract_candidate, extract_suite
from .listed import SOLUTION, with_function, with_listed_outputs
from .test_llm_reward import test_llm_reward

logger = logging.getLogger(__name__)

MAX_WORKERS = 4
"""Default of ``sandbox.num_workers``. On a machine with fewer CPUs, the default is the number of CPUs. verl starts
``reward.num_workers`` reward processes, 8 by default, and each process has its own judge."""

MAX_CACHED_QUESTIONS = 1024
"""Number of questions whose oracle answers stay cached. verl assigns a step's responses to its reward processes at
random, so each process meets most questions of a step."""

_WARNED = set[str]()
"""Questions with tests that are left out. Each question gets one warning."""
_TRUTH_KEYS = {
    "id",
    "reference",
    "tests",
    "prelude",
    "entry_points",
    "candidate",
    "kind",
    "checker",
    "inputs",
    "outputs",
    "fn_name",
}


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Mapping[str, Any] | str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    num_cases: int = 8,
    alpha: float = 0.5,
    adversarial: str = "release",
    nonprintable_penalty: bool = False,
    sandbox: Mapping[str, Any] | None = None,
    reward_router_address: object = None,
    reward_model_tokenizer: object = None,
) -> dict[str, float]:
    """Score one response. verl calls a custom reward function with these arguments.

    A *code* response (the default) is judged on the asserts in ``ground_truth["tests"]``, as one suite. Its reward is
    R_C without history, which is the pass rate on the valid cases. A *test* response has
    ``extra_info["role"] == "test"``. This response is a suite that is judged against the program
    ``ground_truth["candidate"]``. The reward of the suite is R_T without history. See
    :func:`~reward_fns.code_llm_reward.code_llm_reward` and :func:`~reward_fns.test_llm_reward.test_llm_reward`.

    The function is thread-safe. The first call creates the judge, which is closed when the process exits.

    Args:
        data_source: only used in messages.
        solution_str: the decoded response.
        ground_truth: a mapping, or its JSON text. ``reference`` is the source of a correct solution. ``tests`` is a
            sequence or numpy array of asserts, which a code response needs. ``candidate`` is the source of the program
            under test, which a test response needs. ``prelude`` and ``entry_points`` are optional. For code, verl's
            ``prime_code`` columns can take the place of ``reference`` and ``tests``: ``inputs``, ``outputs`` and, for a
            function, ``fn_name`` (see :mod:`reward_fns.listed`).
        extra_info: ``role`` is "code" or "test". Other keys, which verl and datasets add, are ignored.
        num_cases, alpha, adversarial, nonprintable_penalty: as in ``test_llm_reward``; unused for code.
        sandbox: arguments of ``sandbox.LocalRunner``, whose ``limits`` may be a mapping. Every call in a process must
            give the same arguments, because a process has one judge.
        reward_router_address, reward_model_tokenizer: passed by verl and ignored.

    Returns:
        ``score``, the reward as a float32 value, and the reward's named terms as floats. All responses of one role have
        the same keys. verl needs the same keys in all rows of a batch, so a batch must not mix roles.

    Raises:
        ValueError: the ground truth or an argument is wrong, or this machine cannot confine programs as required.
        sandbox.SandboxUnavailableError: the sandbox could not run the program. An outage earns no reward.
    """
    if not isinstance(solution_str, str):
        raise ValueError(f"solution_str must be the decoded response, got {solution_str!r} ({data_source})")
    if not isinstance(extra_info or {}, Mapping):
        raise ValueError(f"extra_info must be a mapping, got {type(extra_info).__name__} ({data_source})")
    if not isinstance(sandbox or {}, Mapping):
        raise ValueError(f"sandbox must be a mapping of arguments of sandbox.LocalRunner, got {sandbox!r}")
    role = (extra_info or {}).get("role", "code")
    if role not in ("code", "test"):
        raise ValueError(f"extra_info['role'] must be 'code' or 'test', got {role!r} ({data_source})")
    truth = read_ground_truth(ground_truth, role=role, where=f"ground_truth of data source {data_source!r}")
    options = _plain(sandbox or {})
    if role == "code":
        return _score_code(solution_str, truth, options)
    suite = extract_suite(solution_str)
    texts = () if isinstance(suite, ExtractionFailure) else suite
    reward = test_llm_reward(
        _SHARED.judge(replace(truth, suites=(texts,), given=False), options),
        0,
        num_cases=num_cases,
        alpha=alpha,
        adversarial=adversarial,
        response_text=solution_str,
        nonprintable_penalty=nonprintable_penalty,
    )
    return {"score": reward.total, **reward.terms}


def judge_here(request: JudgeRequest, options: dict[str, Any]) -> CandidateVerdict:
    """Judge a request with the judge of this process. The first call creates this judge.

    Args:
        request: a program with its suites.
        options: arguments of ``sandbox.LocalRunner``, as in ``compute_score``.

    Raises:
        ValueError: an option is unknown, the judge was started with other options, or the reference does not parse.
        sandbox.SandboxUnavailableError: the sandbox could not run the program.
    """
    _check_reference(request.reference, where="the request")
    return _SHARED.judge(request, _plain(options))


def _score_code(solution: str, truth: JudgeRequest, sandbox: dict[str, Any]) -> dict[str, float]:
    candidate = _candidate(solution, truth)
    verdict = _SHARED.judge(replace(truth, candidate=candidate), sandbox)
    num_valid = len(verdict.suites[0].cases)
    left_out = verdict.suites[0].rejections
    if left_out and truth.question_id not in _WARNED:
        _WARNED.add(truth.question_id)
        logger.warning(
            "question=%s %d of its %d tests are no valid cases and are left out%s: %s",
            truth.question_id,
            len(left_out),
            len(truth.suites[0]),
            "" if num_valid else ", so every response scores 0",
            [f"{item.reason}, {item.detail:.200}: {item.text:.100}" for item in left_out[:3]],
        )
    reward = code_llm_reward(verdict)
    extracted = float(candidate is not None)
    return {"score": reward.total, "extracted": extracted, "num_valid": float(num_valid), **reward.terms}


def _candidate(solution: str, truth: JudgeRequest) -> str | None:
    names = asked_names(truth.entry_points, truth.reference, truth.suites[0])
    program = extract_candidate(solution, reads_input=truth.kind == Kind.STDIN, names=names)
    if truth.reference.startswith(LISTED_OUTPUTS) and truth.kind != Kind.STDIN:
        # The function under test may be a method of the class `Solution`. A second extraction asks for this class,
        # because the block that the first one found may just show how to use the class.
        if SOLUTION in solution and not (isinstance(program, str) and SOLUTION in program):
            again = extract_candidate(solution, names=("Solution",))
            program = again if isinstance(again, str) and SOLUTION in again else program
        if isinstance(program, str):
            return with_function(program, names)
    return None if isinstance(program, ExtractionFailure) else program


def read_ground_truth(raw: Mapping[str, Any] | str, *, role: str, where: str) -> JudgeRequest:
    """Check a row's ground truth, and make a request to the judge from it.

    Args:
        raw: the mapping or its JSON text.
        role: "code" needs ``tests``, "test" needs ``candidate``.
        where: place of the ground truth, for messages.

    Returns:
        A request with the candidate, and with the tests as its only suite. The caller then puts the response in the
        place of the candidate or the suite. Rows with the same reference and prelude have the same ``question_id``, so
        they share cached answers.

    Raises:
        ValueError: the ground truth is wrong.
    """
    if isinstance(raw, str):
        return _read_json(raw, role, where)
    if not isinstance(raw, Mapping):
        raise ValueError(f"{where} must be a mapping or the JSON text of one, got {type(raw).__name__}")
    if unknown := sorted(str(key) for key in raw if key not in _TRUTH_KEYS):
        raise ValueError(f"{where} has unknown keys {unknown}; known: {sorted(_TRUTH_KEYS)}")
    # Lists from parquet files are numpy arrays. The method `tolist` converts them without an import of numpy.
    given = {key: value.tolist() if hasattr(value, "tolist") else value for key, value in raw.items()}
    given = {"candidate": None, "tests": ()} | {key: value for key, value in given.items() if value is not None}
    given.pop("id", None)  # without ids, rows with the same reference share cached answers
    has_reference = str(given.get("reference", "")).strip()
    if not has_reference and (role == "test" or "inputs" not in given):
        listed = "; for code, 'inputs' and 'outputs' can take its place" if role == "code" else ""
        raise ValueError(f"{where} needs 'reference', the source of a correct solution; it is the oracle{listed}")
    try:
        truth = JudgeRequest.from_mapping(with_listed_outputs(given) if "inputs" in given else given)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    _check_reference(truth.reference, where=where)
    if role == "code" and not truth.suites[0]:
        raise ValueError(f"{where} needs 'tests', a list of assert statements, to score code")
    if role == "test" and not truth.candidate:
        raise ValueError(f"{where} needs 'candidate', the program that the suite tests, to score tests")
    return replace(truth, candidate=truth.candidate or None)


# All responses of a group have the same ground truth, and verl scores them within seconds of one another. Only few
# texts are cached, because a ground truth may have megabytes of listed outputs.
@lru_cache(64)
def _read_json(text: str, role: str, where: str) -> JudgeRequest:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} must be a mapping or JSON text, got {text[:80]!r}: {error}") from error
    return read_ground_truth(raw, role=role, where=where)


def _check_reference(text: str, *, where: str) -> None:
    try:
        parse_untrusted(text)
    except PARSE_ERRORS as error:
        raise ValueError(f"{where}: 'reference' is not Python 3: {error}") from error


def _plain(value: Any) -> Any:
    """Convert mappings and sequences of any type, such as hydra's, to dictionaries and lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(inner) for inner in value]
    return value


class _SharedJudge:
    """The judge of a process, created at its first use. A forked child needs a new judge, because the fork server of
    the judge belongs to the parent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._judge: Judge | None = None
        self._runner: LocalRunner | None = None
        self._options: dict[str, Any] = {}
        self._recent: OrderedDict[str, None] = OrderedDict()

    def judge(self, request: JudgeRequest, options: dict[str, Any]) -> CandidateVerdict:
        with self._lock:
            judge = self._open(options)
            # The cache forgets the least recently used question, because a process may meet any number of questions.
            self._recent[request.question_id] = None
            self._recent.move_to_end(request.question_id)
            if len(self._recent) > MAX_CACHED_QUESTIONS:
                judge.forget(self._recent.popitem(last=False)[0])
        return judge.judge(request)

    def close(self) -> None:
        with self._lock:
            if self._runner is not None:
                self._runner.close()
            self._judge = self._runner = None

    def _open(self, options: dict[str, Any]) -> Judge:
        if self._judge is None:
            self._recent.clear()
            self._runner = _make_runner(options)
            self._judge = Judge(self._runner)
            self._options = options
        elif options != self._options:
            raise ValueError(
                f"sandbox={options} differs from the arguments with which this process's judge was started, "
                f"{self._options}; give the same arguments to all rows of a job "
                "(reward.custom_reward_function.reward_kwargs)"
            )
        return self._judge


def _start_anew() -> None:
    # A forked child cannot use the parent's judge. Also, if another thread held the judge's lock at the fork, the lock
    # would stay locked in the child.
    global _SHARED
    _SHARED = _SharedJudge()


def _make_runner(options: dict[str, Any]) -> LocalRunner:
    known = set(inspect.signature(LocalRunner).parameters)
    if unknown := sorted(set(options) - known):
        raise ValueError(f"unknown keys under sandbox: {unknown}; known: {sorted(known)}")
    limits = Limits.from_mapping(options.get("limits") or {}, where="sandbox.limits")
    return LocalRunner(**{"num_workers": min(MAX_WORKERS, os.cpu_count() or 1), **options, "limits": limits})


_SHARED = _SharedJudge()
os.register_at_fork(after_in_child=_start_anew)
atexit.register(lambda: _SHARED.close())
