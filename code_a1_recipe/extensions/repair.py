"""Repair turns: the Code LLM sees a case that its program failed, and writes the program again.

The paper has no such turns. The case comes from the program's suites and replays, never from the hidden tests. The
expected output of the case is the reference's return value, as in every reward. The new program is judged on the same
suites and replays, and rewarded on the cases that no prompt has shown.
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

_MAX_FIELD_CHARS = 400
"""Largest number of characters of a call, result or expected output in a prompt; longer texts are cut."""


class Repair(Extension):
    """Lets the Code LLM repair programs. The repaired programs of one question and turn are a GRPO group."""

    name = "repair"

    def __init__(self, *, num_turns: int, prompts: str, is_pooled: bool) -> None:
        """``prompts`` names the pair of templates. With ``is_pooled``, the reward uses all cases of a question."""
        self._num_turns = num_turns
        self._template = template_for("repair", prompts)
        self._is_pooled = is_pooled

    async def after_verdicts(self, judged: JudgedQuestion) -> Found:
        """In each turn, repair every program that has a reward and still fails a case."""
        repairs: list[ExtraProgram] = []
        shown_ids = defaultdict[int, set[str]](set)
        latest = dict(enumerate(judged.candidates))
        for turn in range(1, self._num_turns + 1):
            failures = {}
            for c, program in latest.items():
                case = shown_case(program.verdict)
                # A program without a reward met an outage, or the Test LLM's prompt had no room for it.
                if case and program.reward and program.source:
                    failures[c] = case
                    shown_ids[c].add(case.id)
            requests = [self._repaired(judged, c, turn, latest[c], case) for c, case in failures.items()]
            results = await asyncio.gather(*requests)
            # A program whose repair prompt would be too long gets no further turns.
            repaired = {c: result for c, result in zip(failures, results, strict=True) if result is not None}
            if not repaired:
                break
            to_reward = [_without_cases(program, shown_ids[c]) for c, program in repaired.items()]
            rewarded = judged.runner.rewarded(judged.task, to_reward)
            before, latest = latest, {}
            for c, program in zip(repaired, rewarded, strict=True):
                latest[c] = replace(repaired[c], reward=program.reward)
                repair = ExtraProgram(
                    kind=self.name,
                    candidate=c,
                    turn=turn,
                    before=before[c],
                    result=latest[c],
                )
                repairs.append(repair)
        return Found(programs=tuple(repairs))

    async def _repaired(
        self,
        judged: JudgedQuestion,
        c: int,
        turn: int,
        before: CandidateResult,
        case: CaseResult,
    ) -> CandidateResult | None:
        """Let the Code LLM repair a program, and judge the result; None if the prompt has no room."""
        runner, task = judged.runner, judged.task
        fields = {
            **task.question.prompt_fields,
            "candidate": before.source,
            **prompt_fields(case, before.verdict),
        }
        try:
            written = await runner.write(task, f"{c}r{turn}", self._template, fields)
        except PromptTooLongError:
            return None
        # The candidate's suites judge the repaired program too, so that the rewards before and after are comparable.
        suites = judged.candidates[c].suites
        hidden = await runner.hidden(task, written)
        program = await runner.judged(task, replace(written, suites=suites, **hidden))
        if self._is_pooled:
            program = await runner.pooled(task, program, judged.candidates)
        return replace(program, suites=())

    def metrics(self, episode: Episode) -> Iterator[tuple[str, float]]:
        """Metrics of repairs. A program that is repaired in several turns counts once for each turn."""
        final = list(episode.candidates)
        for repair in self._repairs(episode):
            result = repair.result
            final[repair.candidate] = result
            if result.reward is None:
                continue
            yield "code/repaired_rate", shown_case(result.verdict) is None
            rate = broken_rate(repair)
            if rate is not None:
                yield "code/repair_broke_case_rate", rate
        for program in final:
            if program.reward is not None and program.hidden is not None:
                yield "code/pass@1_after_repair", passes_all(program.hidden)

    def extra_groups(self, episode: Episode) -> Iterator[ExtraGroup]:
        """One group for each turn. The prompts of a group have the same question, but different programs and cases."""
        turns = defaultdict[int, list[tuple[int, CandidateResult]]](list)
        for repair in self._repairs(episode):
            member = repair.candidate, repair.result
            turns[repair.turn].append(member)
        for turn, members in turns.items():
            yield ExtraGroup(policy="code", name=f"r{turn}", members=members)

    def _repairs(self, episode: Episode) -> list[ExtraProgram]:
        return [extra for extra in episode.extra_programs if extra.kind == self.name]


def shown_case(verdict: CandidateVerdict | None) -> CaseResult | None:
    """The failed case that the prompt shows: the shortest, because it leaves most room for question and program."""
    if verdict is None:
        return None

    def length(case: CaseResult) -> int:
        return sum(map(len, _uncut_fields(case, verdict).values()))

    failed = [case for case in met_cases(verdict) if case.outcome.failed]
    return min(failed, key=length, default=None)


def prompt_fields(case: CaseResult, verdict: CandidateVerdict | None) -> dict[str, str]:
    """The template's fields about a case: ``call``, ``result`` (such as "returns 3") and ``expected``, shortened."""
    fields = _uncut_fields(case, verdict)
    for name, text in fields.items():
        if len(text) > _MAX_FIELD_CHARS:
            fields[name] = f"{text[:_MAX_FIELD_CHARS]}..."
    return fields


def _uncut_fields(case: CaseResult, verdict: CandidateVerdict | None) -> dict[str, str]:
    load_error = verdict.load_error if verdict is not None else ""
    results = {
        CaseOutcome.WRONG_VALUE: f"returns {case.detail}",
        CaseOutcome.RAISED: f"raises {case.detail}",
        CaseOutcome.TIMED_OUT: "does not end in time",
        CaseOutcome.NOT_LOADED: f"cannot be made, since the program does not load: {load_error or case.detail}",
    }
    result = results.get(case.outcome, f"gives no value ({case.outcome.value})")
    return {"call": case.call, "result": result, "expected": case.reference_value}


def met_cases(verdict: CandidateVerdict) -> Iterator[CaseResult]:
    """All cases of the suites, then the replayed cases."""
    for suite in verdict.suites:
        yield from suite.cases
    yield from verdict.history


def _without_cases(program: CandidateResult, case_ids: Collection[str]) -> CandidateResult:
    """Remove the cases with these ids from the program's verdicts."""
    # The shown cases do not count, because a program can pass them by copying values from its prompt. All spellings of
    # a call have one id.

    def others(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
        return tuple(case for case in cases if case.id not in case_ids)

    verdict = program.verdict
    pooled = program.pooled
    if pooled is not None:
        pooled = replace(pooled, cases=others(pooled.cases))
    if verdict is not None:
        suites = [replace(suite, cases=others(suite.cases)) for suite in verdict.suites]
        # R_C counts an empty suite as failed, so a suite that had only shown cases must be removed.
        verdict = replace(
            verdict,
            suites=tuple(suite for suite in suites if suite.cases),
            history=others(verdict.history),
        )
        has_pooled_cases = pooled is not None and bool(pooled.cases)
        if not (verdict.suites or verdict.history or has_pooled_cases):
            verdict = None  # no case is left to reward
    return replace(program, verdict=verdict, pooled=pooled)


def broken_rate(repair: ExtraProgram) -> float | None:
    """Of the cases that passed before the repair, the share in [0, 1] that fails after it; None without such cases."""
    if repair.before.verdict is None or repair.result.verdict is None:
        return None
    passed_ids = {case.id for case in met_cases(repair.before.verdict) if not case.outcome.failed}
    after = [case for case in met_cases(repair.result.verdict) if case.id in passed_ids]
    if not after:
        return None
    num_broken = sum(case.outcome.failed for case in after)
    return num_broken / len(after)
