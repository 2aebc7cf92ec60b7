"""The rollout record: one JSON line for each program, with its suites, verdicts, rewards and a format version.

Episode workers write the lines with ``encode_records``, and ``runs.reader`` reads them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from reward_fns import Breakdown
from sandbox import CandidateVerdict, CaseResult, Rejection, SuiteVerdict

from ..algorithm.episode_types import CandidateResult, Episode
from ..algorithm.spans import Span

VERSION: Final = 8
"""Format version of a line. Raise this number if a field of the record classes changes, or a field of the sandbox's
verdicts. A new field with a default needs no new version, because older lines stay readable."""

MAX_FAILED_CASES: Final = 20
"""Largest number of failed hidden tests in a program's record."""

SUITE, REPLAYED = "suite", "replayed from the Mistake Book"
"""Two origins of tests that ``RolloutRecord.met_cases`` yields."""


class RewardRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A reward with its parts and terms."""

    total: float
    parts: dict[str, float]
    terms: dict[str, float]


class VerdictRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict without the verdicts on its suites. Each ``SuiteRecord`` has the verdict on its suite."""

    loaded: bool
    load_error: str
    history: tuple[CaseResult, ...]
    """Results of the replayed cases."""
    cpu_seconds: float
    example_failure: str = ""
    """See ``sandbox.CandidateVerdict``."""


class HiddenTestsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A program's verdict on the hidden tests: counts, and the first failed cases, because thousands may fail."""

    cases: tuple[CaseResult, ...]
    """Failed cases, at most ``MAX_FAILED_CASES``."""
    rejections: tuple[Rejection, ...] = ()
    num_passed: int = 0
    num_more_failed: int = 0
    """Number of failed cases that are not in ``cases``."""

    @property
    def num_failed(self) -> int:
        return self.num_more_failed + sum(case.outcome.failed for case in self.cases)

    @property
    def num_valid(self) -> int:
        return self.num_passed + self.num_more_failed + len(self.cases)


class SuiteRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A suite that the Test LLM wrote for a program."""

    response: str
    response_tokens: int
    prompt_tokens: int
    cached_tokens: int
    """Number of prompt tokens that the server found in its prefix cache."""
    extraction_failure: str
    """Reason why the response holds no asserts; empty if it holds asserts."""
    reward: RewardRecord | None
    verdict: SuiteVerdict | None
    """Verdict on the suite; None after an outage."""
    span: Span | None
    """Time in which the suite was written. All spans are in seconds since the start of the step."""


class RolloutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A program, with the suites that the Test LLM wrote for it."""

    v: Literal[8]
    index: int
    """Position of the question in its step."""
    step: int
    question: str
    data_source: str
    kind: str
    """Kind of the program. Training has "sampled" programs. Validation also has "greedy" programs (at temperature 0)
    and "buggy_program" (from the question's row)."""
    candidate: int
    """Number of the program among the programs of the same kind."""
    response: str
    response_tokens: int
    prompt_tokens: int
    source: str | None
    """Source of the program; None if the response holds no program."""
    extraction_failure: str
    """Reason why the response holds no program; empty if it holds one."""
    is_too_long_to_test: bool
    """True if the program does not fit into the Test LLM's prompt. A program that does not fit has no reward."""
    outage: str
    """Reason why the sandbox could not judge the program; empty if it could. After an outage ``verdict`` is None."""
    verdict: VerdictRecord | None
    reward: RewardRecord | None
    given_tests: SuiteVerdict | None
    """Verdict on the dataset's own tests, if the reward is computed from them."""
    pooled_tests: SuiteVerdict | None
    """Verdict on the cases of all programs of the question, if the reward is computed from them."""
    hidden_tests: HiddenTestsRecord | None
    """Verdict on the question's hidden tests, if they were run. Hidden tests give no reward."""
    selected: bool
    """Whether the program's suites train the Test LLM."""
    span: Span | None
    """Time in which the response was sampled. The three spans below are the times of the program's verdicts."""
    judge_span: Span | None
    hidden_span: Span | None
    pooled_span: Span | None
    suites: tuple[SuiteRecord, ...]

    @property
    def is_solved(self) -> bool:
        """Whether the program passed all hidden tests.

        Without hidden tests, a program does not count as one that solved the question.
        """
        hidden = self.hidden_tests
        return hidden is not None and hidden.num_valid > 0 and hidden.num_failed == 0

    @property
    def is_loaded(self) -> bool:
        return self.verdict is not None and self.verdict.loaded

    def met_cases(self) -> Iterator[tuple[str, Sequence[CaseResult]]]:
        """Yield each origin of tests, with the program's results on these tests. Hidden tests are left out."""
        for suite in self.suites:
            if suite.verdict is not None:
                yield SUITE, suite.verdict.cases
        for name, tests in (("given tests", self.given_tests), ("pooled tests", self.pooled_tests)):
            if tests is not None:
                yield name, tests.cases
        if self.verdict is not None and self.verdict.history:
            yield REPLAYED, self.verdict.history

    def is_broken(self, *, by_replays: bool = True) -> bool:
        """Whether the program failed a case. ``by_replays=False`` ignores the replayed cases."""
        for origin, cases in self.met_cases():
            is_counted = by_replays or origin != REPLAYED
            if is_counted and any(case.outcome.failed for case in cases):
                return True
        return False


def reward_record(reward: Breakdown | None) -> RewardRecord | None:
    """Convert a reward. None stays None."""
    return msgspec.convert(reward, RewardRecord | None, from_attributes=True)


def verdict_record(verdict: CandidateVerdict | None) -> VerdictRecord | None:
    """Convert a verdict. None, which stands for an outage, stays None."""
    return msgspec.convert(verdict, VerdictRecord | None, from_attributes=True)


def hidden_tests_record(verdict: CandidateVerdict | None) -> HiddenTestsRecord | None:
    """Convert the verdict on the hidden tests, which has a single suite.

    None, for tests that were not run, stays None.
    """
    if verdict is None:
        return None
    hidden = verdict.suites[0]
    failed = [case for case in hidden.cases if case.outcome.failed]
    return HiddenTestsRecord(
        cases=tuple(failed[:MAX_FAILED_CASES]),
        rejections=hidden.rejections,
        num_passed=hidden.num_valid - len(failed),
        num_more_failed=max(0, len(failed) - MAX_FAILED_CASES),
    )


def encode_records(records: Iterable[RolloutRecord]) -> bytes:
    """Encode records as lines of JSON. Lone surrogates become question marks, because UTF-8 cannot encode them."""
    return b"".join(map(_line, records))


def _line(record: RolloutRecord) -> bytes:
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(record), ensure_ascii=False)
        return text.encode("utf-8", "replace") + b"\n"


def episode_records(episode: Episode, *, selected: Sequence[int]) -> Iterator[RolloutRecord]:
    """Yield the record of each program. The suites of the candidates in ``selected`` train the Test LLM."""
    for c, candidate in enumerate(episode.candidates):
        yield _record(episode, "sampled", c, candidate, selected=c in selected)
    if episode.greedy is not None:
        yield _record(episode, "greedy", 0, episode.greedy)
    for p, buggy in enumerate(episode.buggy_programs):
        yield _record(episode, "buggy_program", p, buggy)


_COPIED = (
    "source",
    "extraction_failure",
    "is_too_long_to_test",
    "outage",
    "span",
    "judge_span",
    "hidden_span",
    "pooled_span",
)
"""Fields that a record copies from a program's result."""


def _record(
    episode: Episode,
    kind: str,
    number: int,
    candidate: CandidateResult,
    *,
    selected: bool = False,
) -> RolloutRecord:
    task, response, verdict = episode.task, candidate.response, candidate.verdict
    judged = verdict.suites if verdict is not None else ()
    # A program with more verdicts than suites was run on the dataset's own tests.
    has_given = len(judged) > len(candidate.suites)
    return RolloutRecord(
        v=VERSION,
        index=task.index,
        step=task.step,
        question=task.question.id,
        data_source=task.question.data_source,
        kind=kind,
        candidate=number,
        response=response.text,
        response_tokens=len(response.token_ids),
        prompt_tokens=len(response.prompt_ids),
        verdict=verdict_record(verdict),
        reward=reward_record(candidate.reward),
        given_tests=judged[0] if has_given else None,
        pooled_tests=candidate.pooled,
        hidden_tests=hidden_tests_record(candidate.hidden),
        selected=selected,
        suites=tuple(
            SuiteRecord(
                response=suite.response.text,
                response_tokens=len(suite.response.token_ids),
                prompt_tokens=len(suite.response.prompt_ids),
                cached_tokens=suite.response.cached_tokens,
                extraction_failure=suite.extraction_failure,
                reward=reward_record(suite.reward),
                verdict=verdict.suites[s] if verdict else None,
                span=suite.span,
            )
            for s, suite in enumerate(candidate.suites)
        ),
        **{name: getattr(candidate, name) for name in _COPIED},
    )
