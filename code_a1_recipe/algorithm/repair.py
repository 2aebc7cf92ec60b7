"""Repair turns: a program that failed a case is written again, with that case before the Code LLM.

The case comes from the program's suites and its replays, never from the hidden tests. The second program meets the same
suites and replays, and is rewarded on the cases that were not shown. The case's expected output is the reference's, as
in every reward of a training.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import replace

from sandbox import CandidateVerdict, CaseOutcome, CaseResult

from .episode_types import CandidateResult, Repair

_MAX_SHOWN = 400
"""Characters of a call, a result or an expected output; what a longer one has beyond them is not shown."""


def shown_failure(verdict: CandidateVerdict | None) -> dict[str, str]:
    """What the prompt says of the failed case with the shortest text, the first of those.

    Returns:
        Fields of the template: the call, what the program did as the end of a sentence ("returns 3", "raises
        ValueError: ..."), and the expected output. Empty where there is no verdict or no failed case.
    """
    if verdict is None:
        return {}
    failed = [_prompt_fields(case, verdict.load_error) for case in met_cases(verdict) if case.outcome.failed]
    # The shortest leaves most of the prompt to the question and the program.
    shown = min(failed, key=lambda fields: sum(map(len, fields.values())), default={})
    return {name: _cut(text) for name, text in shown.items()}


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _prompt_fields(case: CaseResult, load_error: str) -> dict[str, str]:
    results = {
        CaseOutcome.WRONG_VALUE: f"returns {case.detail}",
        CaseOutcome.RAISED: f"raises {case.detail}",
        CaseOutcome.TIMED_OUT: "does not end in time",
        CaseOutcome.NOT_LOADED: f"cannot be made, since the program does not load: {load_error or case.detail}",
    }
    result = results.get(case.outcome, f"gives no value ({case.outcome.value})")
    return {
        "call": case.call,
        "result": result,
        "expected": case.reference_value,
    }


def met_cases(verdict: CandidateVerdict) -> Iterator[CaseResult]:
    """All cases of the suites, then the replayed ones."""
    for suite in verdict.suites:
        yield from suite.cases
    yield from verdict.history


async def repair_turns(
    candidates: Sequence[CandidateResult],
    *,
    num_turns: int,
    write: Callable[
        [int, int, CandidateResult, dict[str, str]],
        Awaitable[CandidateResult | None],
    ],
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
    shown = defaultdict[int, set[str]](set)
    latest = dict(enumerate(candidates))
    for turn in range(1, num_turns + 1):
        failures = {}
        for c, program in latest.items():
            failure = shown_failure(program.verdict)
            # Without a reward nothing is known of a program: an outage hit it, or the Test LLM had no room for it.
            if failure and program.reward and program.source:
                failures[c] = failure
                shown[c].add(failure["call"])
        asked = [write(c, turn, latest[c], failure) for c, failure in failures.items()]
        written = await asyncio.gather(*asked)
        results = {c: one for c, one in zip(failures, written, strict=True) if one is not None}
        if not results:
            break
        others = reward([_on_others(one, shown[c]) for c, one in results.items()])
        rewarded = {c: replace(results[c], reward=one.reward) for c, one in zip(results, others, strict=True)}
        for c, result in rewarded.items():
            found.append(
                Repair(
                    candidate=c,
                    turn=turn,
                    before=latest[c],
                    result=result,
                )
            )
        # Who had no room in the prompt stays with its last program, and is not asked again.
        latest = rewarded
    return tuple(found)


def _on_others(program: CandidateResult, shown: Collection[str]) -> CandidateResult:
    """The program as if it had not met the cases that were shown, whose values a copy of them would give."""

    def others(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
        return tuple(case for case in cases if _cut(case.call) not in shown)

    verdict, pooled = program.verdict, program.pooled
    if verdict is not None:
        suites = tuple(replace(suite, cases=others(suite.cases)) for suite in verdict.suites)
        verdict = replace(verdict, suites=suites, history=others(verdict.history))
    return replace(program, verdict=verdict, pooled=pooled and replace(pooled, cases=others(pooled.cases)))


def broken_rate(repair: Repair) -> float | None:
    """Share, in [0, 1], of the cases that the program before passed and the repaired one fails; None without any."""
    if repair.before.verdict is None or repair.result.verdict is None:
        return None
    # Both met the same suites and replays, so their cases stand in the same order.
    pairs = zip(met_cases(repair.before.verdict), met_cases(repair.result.verdict), strict=False)
    passed = [new for old, new in pairs if not old.outcome.failed]
    return sum(new.outcome.failed for new in passed) / len(passed) if passed else None
