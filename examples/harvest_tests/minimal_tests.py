"""As few of a question's tests as kill the same programs: mutants of its reference, and recorded buggy programs."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from code_a1_recipe.algorithm.question import Question, request_for
from code_a1_recipe.jobs.confinement import JudgeAll
from code_a1_recipe.jobs.jsonl_store import Row
from code_a1_recipe.test_quality.kill_matrix import cases_by_place, is_broken
from sandbox import SandboxUnavailableError

from .set_cover import cover

MAX_JUDGED = 512
"""Different calls of a question that are judged when its tests are minimised, those that broke most programs first."""


@dataclass(slots=True, kw_only=True)
class Found:
    """What a run recorded for one question."""

    broken: Counter[str] = field(default_factory=Counter)
    """Each valid case as an assert, with the number of programs it broke."""
    keys: dict[str, str] = field(default_factory=dict)
    """What each assert is known by, equal for all spellings of one call."""
    buggy_programs: dict[str, str] = field(default_factory=dict)
    """Programs that a test broke, by syntax tree."""

    @property
    def tests(self) -> tuple[str, ...]:
        """The asserts, those that broke most programs first."""
        return tuple(text for text, _ in self.broken.most_common())


Harvested = tuple[Question, Found]
"""A question with what a run recorded for it."""


def distinct(found: Found) -> list[tuple[str, int]]:
    """One test for each call, however it was spelled, with the times it broke a program; best first.

    The spelling that broke most stands for the others, and the times of all add up.
    """
    first: dict[str, str] = {}
    times: Counter[str] = Counter()
    for text, num_broken in found.broken.most_common():
        first.setdefault(found.keys[text], text)
        times[found.keys[text]] += num_broken
    return [(first[key], count) for key, count in times.most_common()]


def minimal_row(
    harvested: Harvested, judge_all: JudgeAll, *, min_tests: int = 1, max_mutants: int = 200, seed: int = 0
) -> Row:
    """Which of a question's tests to keep, and what they kill: one row of the work file.

    A test kills a program that answers its call otherwise than the reference, raises, runs out of time or does not
    load. A call for which the program had no time left, or was not asked, kills nothing. A test whose value is not the
    one that the question's reference gives now (its file has changed since the run) goes. Where the sandbox could not
    judge a program, ``outage`` says why, and all tests stay.

    Args:
        harvested: the question and what a run recorded for it.
        judge_all: asks the judge.
        min_tests: that the question keeps at least, as far as it has some.
        max_mutants: of its reference.
        seed: of the choice of mutants where there are more.
    """
    from code_a1_recipe.test_quality.mutants import mutants_of  # here: needs cosmic-ray

    question, found = harvested
    tests = distinct(found)
    judged = tests[:MAX_JUDGED]
    texts = [text for text, _ in judged]
    mutants = [mutant.source for mutant in mutants_of(question.reference, max_mutants=max_mutants, seed=seed)]
    programs = [*mutants, *found.buggy_programs.values()]
    row: Row = {"question": question.id, "outage": None, "num_tests": len(tests)}
    kills: list[set[int]] = [set() for _ in texts]
    is_answered, is_contradicted = [False] * len(texts), [False] * len(texts)
    asked = programs or [question.reference]  # on which the tests are held against the reference all the same
    for place, result in enumerate(judge_all([request_for(question, source, texts) for source in asked])):
        if isinstance(result, SandboxUnavailableError):
            return row | {"outage": str(result), "kept": texts}
        for number, case in cases_by_place(texts, result.suites[0]):
            is_answered[number] = True
            is_contradicted[number] |= not case.expected_correct
            if programs and case.expected_correct and is_broken(case):
                kills[number].add(place)
    valid = [number for number in range(len(texts)) if is_answered[number] and not is_contradicted[number]]
    chosen = cover([kills[number] for number in valid], [judged[number][1] for number in valid], least=min_tests)
    killed = set().union(*(kills[number] for number in valid))
    still = set().union(*(kills[valid[place]] for place in chosen))
    return row | {
        "kept": [texts[valid[place]] for place in chosen],
        "num_unjudged": len(tests) - len(texts),
        "num_invalid": len(texts) - sum(is_answered),
        "num_contradicted": sum(is_contradicted),
        "num_mutants": len(mutants),
        "num_buggy_programs": len(found.buggy_programs),
        "mutants_killed": sum(place < len(mutants) for place in killed),
        "mutants_killed_after": sum(place < len(mutants) for place in still),
        "buggy_programs_killed": sum(place >= len(mutants) for place in killed),
        "buggy_programs_killed_after": sum(place >= len(mutants) for place in still),
    }


def summary(rows: Iterable[Mapping[str, Any]]) -> str:
    """The effect of minimising, for the terminal; questions with an outage are left out."""
    judged = [row for row in rows if not row["outage"]]

    def total(name: str) -> int:
        return sum(row[name] for row in judged)

    def counted(what: str, name: str) -> str:
        return f"{what} {total(f'{name}_killed')} -> {total(f'{name}_killed_after')} of {total(f'num_{name}')}"

    before, after = total("num_tests"), sum(len(row["kept"]) for row in judged)
    lines = [
        f"tests {before} -> {after}" + (f" ({after / len(judged):.1f} a question)" if judged else ""),
        f"killed by them: {counted('mutants', 'mutants')}, {counted('recorded buggy programs', 'buggy_programs')}",
    ]
    if total("num_invalid") or total("num_contradicted") or total("num_unjudged"):
        lines.append(
            f"left out: {total('num_invalid')} that the reference no longer answers, {total('num_contradicted')} that "
            f"it answers otherwise, {total('num_unjudged')} beyond the first {MAX_JUDGED} of a question"
        )
    return "\n".join(lines)
