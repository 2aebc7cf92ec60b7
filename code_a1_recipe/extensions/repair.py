"""Repair turns: a program that failed a case is written again, with that case before the Code LLM.

Not in the paper. The case comes from the program's suites and its replays, never from the hidden tests. The second
program meets the same suites and replays, and is rewarded on the cases that were not shown. The case's expected output
is the reference's, as in every reward of a training.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from sandbox import CandidateVerdict, CaseOutcome, CaseResult
from sandbox.text import passes_all

from ..algorithm.episode_types import CandidateResult, Episode, ExtraProgram, PromptTooLongError
from ..algorithm.hooks import Extension, ExtraGroup, Found, JudgedQuestion
from ..algorithm.prompts import template_for

_MAX_SHOWN = 400
"""Characters of a call, a result or an expected output; what a longer one has beyond them is not shown."""


class Repair(Extension):
    """Has programs that failed a case written again; those of a question and turn are a GRPO group."""

    name = "repair"

    def __init__(self, *, num_turns: int, prompts: str, is_pooled: bool) -> None:
        """``prompts`` names the pair of templates; ``is_pooled``: the reward is made of all the question's cases."""
        self._num_turns = num_turns
        self._template = template_for("repair", prompts)
        self._is_pooled = is_pooled

    async def after_verdicts(self, work: JudgedQuestion) -> Found:
        """Turn by turn, have every program written again that still fails a case and has a reward."""
        found: list[ExtraProgram] = []
        shown = defaultdict[int, set[str]](set)
        latest = dict(enumerate(work.candidates))
        for turn in range(1, self._num_turns + 1):
            failures = {}
            for c, program in latest.items():
                case = shown_case(program.verdict)
                # Without a reward nothing is known of a program: an outage hit it, or the Test LLM had no room for it.
                if case and program.reward and program.source:
                    failures[c] = case
                    shown[c].add(case.id)
            asked = [self._written_again(work, c, turn, latest[c], case) for c, case in failures.items()]
            written = await asyncio.gather(*asked)
            results = {}
            for c, program_again in zip(failures, written, strict=True):
                if program_again is not None:
                    results[c] = program_again
            if not results:
                break
            others = [_on_others(one, shown[c]) for c, one in results.items()]
            rewarded = work.runner.rewarded(work.task, others)
            before, latest = latest, {}
            # Who had no room in the prompt stays with its last program, and is not asked again.
            for c, other in zip(results, rewarded, strict=True):
                latest[c] = replace(results[c], reward=other.reward)
                repair = ExtraProgram(
                    kind=self.name,
                    candidate=c,
                    turn=turn,
                    before=before[c],
                    result=latest[c],
                )
                found.append(repair)
        return Found(programs=tuple(found))

    async def _written_again(
        self,
        work: JudgedQuestion,
        c: int,
        turn: int,
        before: CandidateResult,
        case: CaseResult,
    ) -> CandidateResult | None:
        """The new program, judged; None where the prompt has no room."""
        runner, task = work.runner, work.task
        fields = {
            **task.question.prompt_fields,
            "candidate": before.source,
            **prompt_fields(case, before.verdict),
        }
        try:
            written = await runner.write(task, f"{c}r{turn}", self._template, fields)
        except PromptTooLongError:
            return None
        # The suites of the first program, so that both rewards compare.
        suites = work.candidates[c].suites
        hidden = await runner.hidden(task, written)
        judged = await runner.judged(task, replace(written, suites=suites, **hidden))
        if self._is_pooled:
            judged = await runner.pooled(task, judged, work.candidates)
        return replace(judged, suites=())

    def metrics(self, episode: Episode) -> Iterator[tuple[str, float]]:
        """How the turns went; each repaired program counts once for each of its turns."""
        final = list(episode.candidates)
        for repair in self._repairs(episode):
            result = repair.result
            final[repair.candidate] = result  # without a reward where nothing is known of it
            if result.reward is None:
                continue
            yield "code/repaired_rate", shown_case(result.verdict) is None
            if (rate := broken_rate(repair)) is not None:
                yield "code/repair_broke_case_rate", rate
        for program in final:
            if program.reward is not None and program.hidden is not None:
                yield "code/pass@1_after_repair", passes_all(program.hidden)

    def extra_groups(self, episode: Episode) -> Iterator[ExtraGroup]:
        """One for each turn. Its prompts differ in the program and the case that they show, and share the question."""
        turns = defaultdict[int, list[tuple[int, CandidateResult]]](list)
        for repair in self._repairs(episode):
            turns[repair.turn].append((repair.candidate, repair.result))
        for turn, members in turns.items():
            yield ExtraGroup(
                policy="code",
                name=f"r{turn}",
                members=members,
            )

    def _repairs(self, episode: Episode) -> list[ExtraProgram]:
        return [extra for extra in episode.extra_programs if extra.kind == self.name]


def shown_case(verdict: CandidateVerdict | None) -> CaseResult | None:
    """The failed case that the prompt shows: the shortest, which leaves most room to the question and the program."""
    if verdict is None:
        return None
    failed = [case for case in met_cases(verdict) if case.outcome.failed]
    return min(failed, key=lambda case: sum(map(len, _told(case, verdict).values())), default=None)


def prompt_fields(case: CaseResult, verdict: CandidateVerdict | None) -> dict[str, str]:
    """Fields of the template, each cut: ``call``, ``result`` as the end of a sentence, ``expected``."""
    fields = _told(case, verdict)
    return {name: text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..." for name, text in fields.items()}


def _told(case: CaseResult, verdict: CandidateVerdict | None) -> dict[str, str]:
    load_error = verdict.load_error if verdict is not None else ""
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


def _on_others(program: CandidateResult, shown: Collection[str]) -> CandidateResult:
    """The program as if it had not met the cases with the ids ``shown``, in whatever spelling.

    A program that only copies the values it was shown would pass them.
    """

    def others(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
        return tuple(case for case in cases if case.id not in shown)

    verdict, pooled = program.verdict, program.pooled
    if verdict is not None:
        suites = [replace(suite, cases=others(suite.cases)) for suite in verdict.suites]
        # An empty suite would count as failed, and which suites become empty depends on the shown case.
        verdict = replace(
            verdict,
            suites=tuple(suite for suite in suites if suite.cases),
            history=others(verdict.history),
        )
        if not (verdict.suites or verdict.history):
            verdict = None  # no reward: nothing else was met
    if pooled is not None:
        pooled = replace(pooled, cases=others(pooled.cases))
    return replace(program, verdict=verdict, pooled=pooled)


def broken_rate(repair: ExtraProgram) -> float | None:
    """Share, in [0, 1], of the cases that the program before passed and the repaired one fails; None without any."""
    if repair.before.verdict is None or repair.result.verdict is None:
        return None
    # Both met the same suites and replays, so their cases stand in the same order.
    pairs = zip(met_cases(repair.before.verdict), met_cases(repair.result.verdict), strict=False)
    passed = [new for old, new in pairs if not old.outcome.failed]
    return sum(new.outcome.failed for new in passed) / len(passed) if passed else None
