"""Repair turns: a program that failed a case is written again, with that case before the Code LLM.

The case comes from the program's suites and its replays, never from the hidden tests. The second program meets the same
suites and replays. The case's expected output is the reference's, as in every reward of a training.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from sandbox import CandidateVerdict, CaseOutcome, CaseResult

from .episode_types import CandidateResult, Repair

_MAX_SHOWN = 400
"""Characters of a call, a result or an expected output; what a longer one has beyond them is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFailure:
    """What the prompt says of one case that a program failed."""

    call: str
    result: str
    """What the program did, as the end of a sentence: "returns 3", "raises ValueError: ..."."""
    expected: str

    @classmethod
    def of(cls, call: str, outcome: CaseOutcome, detail: str, *, expected: str) -> "ShownFailure":
        """``detail``: what it returned or raised, as text, or why the program did not load."""
        results = {
            CaseOutcome.WRONG_VALUE: f"returns {detail}",
            CaseOutcome.RAISED: f"raises {detail}",
            CaseOutcome.TIMED_OUT: "does not end in time",
            CaseOutcome.NOT_LOADED: f"cannot be made, since the program does not load: {detail}",
        }
        return cls(call=call, result=results.get(outcome, f"gives no value ({outcome.value})"), expected=expected)

    @property
    def prompt_fields(self) -> dict[str, str]:
        return {"call": _cut(self.call), "result": _cut(self.result), "expected": _cut(self.expected)}


def shown_failure(verdict: CandidateVerdict | None) -> ShownFailure | None:
    """The failed case with the shortest text, the first of those; None where there is no verdict or no failed case."""
    if verdict is None:
        return None
    shown = [
        ShownFailure.of(case.call, case.outcome, verdict.load_error or case.detail, expected=case.reference_value)
        for case in met_cases(verdict)
        if case.outcome.failed
    ]
    # The shortest leaves most of the prompt to the question and the program.
    return min(shown, key=lambda one: len(one.call + one.result + one.expected), default=None)


def met_cases(verdict: CandidateVerdict) -> Iterator[CaseResult]:
    """All cases of the suites, then the replayed ones."""
    for suite in verdict.suites:
        yield from suite.cases
    yield from verdict.history


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


async def repair_turns(
    candidates: Sequence[CandidateResult],
    *,
    num_turns: int,
    write: Callable[[int, int, CandidateResult, ShownFailure], Awaitable[CandidateResult | None]],
    reward: Callable[[Sequence[CandidateResult]], Sequence[CandidateResult]],
) -> tuple[Repair, ...]:
    """Turn by turn, every program that still fails a case and has a reward is written again.

    Args:
        candidates: [C] judged and rewarded.
        num_turns: 0 or more.
        write: from candidate number, turn, program and failure to the judged program; None where none could be asked.
        reward: gives the programs of one turn their rewards.
    """
    found: list[Repair] = []
    latest = dict(enumerate(candidates))
    for turn in range(1, num_turns + 1):
        # Without a reward nothing is known of a program: an outage hit it, or the Test LLM had no room for it.
        failures = {c: shown_failure(one.verdict) for c, one in latest.items() if one.reward and one.source}
        asked = [(c, failure) for c, failure in failures.items() if failure is not None]
        if not asked:
            break
        written = await asyncio.gather(*[write(c, turn, latest[c], failure) for c, failure in asked])
        places = [c for (c, _), one in zip(asked, written, strict=True) if one is not None]
        results = [one for one in written if one is not None]
        rewarded = dict(zip(places, reward(results) if results else (), strict=True))
        for c, result in rewarded.items():
            found.append(Repair(candidate=c, turn=turn, before=latest[c], result=result))
        # Who had no room in the prompt stays with its last program, and is not asked again.
        latest = rewarded
    return tuple(found)


def broken_rate(repair: Repair) -> float | None:
    """Share, in [0, 1], of the cases that the program before passed and the repaired one fails; None without any."""
    if repair.before.verdict is None or repair.result.verdict is None:
        return None
    # Both met the same suites and replays, so their cases stand in the same order.
    pairs = zip(met_cases(repair.before.verdict), met_cases(repair.result.verdict), strict=False)
    passed = [new for old, new in pairs if not old.outcome.failed]
    return sum(new.outcome.failed for new in passed) / len(passed) if passed else None
