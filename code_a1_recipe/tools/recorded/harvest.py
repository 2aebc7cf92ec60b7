"""``code-a1 harvest``: turns the tests of a run's Test LLM into golden tests of its questions, for ``arm=static``."""

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sandbox import CaseOutcome, SandboxUnavailableError
from sandbox.text import syntax_key

from ...algorithm.question import Question, request_for
from ...algorithm.settings import SandboxSettings
from ...errors import InputError
from ...files import fingerprint
from ...jobs.confinement import Confinement, JudgeAll, judge_confined
from ...jobs.jsonl_store import JsonlStore, Row
from ...jobs.outputs import Report
from ...runs.reader import RunRecords
from ...runs.rollout_record import RolloutRecord
from ..test_quality.metrics import cases_by_place, is_broken
from ..test_quality.mutants import check_cosmic_ray, mutants_of

MAX_TESTS = 32
"""Number of tests that a question keeps without judging: as many as ``arm=static`` uses."""
_MAX_JUDGED = 512
_MAX_MUTANTS = 200


@dataclass
class Found:
    """The tests and incorrect programs that a run recorded for a question."""

    question: Question
    num_broken: Counter[str] = field(default_factory=Counter)
    """Number of programs that each valid case broke, by the case as an assert."""
    programs: dict[str, str] = field(default_factory=dict)
    """Incorrect programs by syntax tree."""

    @property
    def tests(self) -> list[str]:
        """The asserts, beginning with the assert that broke most programs."""
        return [text for text, _ in self.num_broken.most_common()]


def collect(run: RunRecords) -> list[Found]:
    """Collect the questions of a run that have a valid case, in the order of their files.

    Tests come from the second half of the steps, because the Test LLM gets better in training. A question without a
    valid case there gets its tests from the first half.

    Raises:
        InputError: the run has no suites, or a file of its questions is missing.
    """
    founds = {name: Found(question) for name, question in run.questions("train_files").items()}
    steps = run.training_steps
    middle = len(steps) // 2
    for half in (steps[middle:], steps[:middle]):
        is_done = {name for name, found in founds.items() if found.num_broken}
        for record in itertools.chain.from_iterable(map(run.training, half)):
            found = founds.get(record.question)
            if found is None:
                continue
            if record.source is not None and _is_wrong(record):
                found.programs.setdefault(syntax_key(record.source), record.source)
            if record.question not in is_done:
                _count_broken(record, found.num_broken)
    harvested = [found for found in founds.values() if found.num_broken]
    if not harvested:
        raise InputError(f"{run.folder}: no valid case in its rollouts; harvest a run in which a Test LLM took part")
    return harvested


def _count_broken(record: RolloutRecord, num_broken: Counter[str]) -> None:
    """Count for each valid case of a program's suites if it broke the program. Other cases enter with 0."""
    for suite in record.suites:
        for case in suite.verdict.cases if suite.verdict else ():
            has_caught = case.outcome not in (CaseOutcome.PASSED, CaseOutcome.NOT_LOADED)
            num_broken[f"assert {case.call} == {case.reference_value}"] += has_caught


def _is_wrong(record: RolloutRecord) -> bool:
    """True if the program loads and fails a test, which may be a hidden one."""
    hidden = record.hidden_tests
    is_caught = record.is_broken() or (hidden is not None and hidden.num_failed > 0)
    return record.is_loaded and is_caught and not record.outage


def harvest(folder: Path, *, output: Path, minimise: bool = True, workers: int = 1) -> Report:
    """Write a run's questions with ``golden_tests`` as JSON lines. A repeated call resumes.

    Args:
        folder: folder of the run.
        output: receives a row for each question, in the native columns.
        minimise: True keeps as few tests as kill the same programs. False keeps the best ``MAX_TESTS`` without judging.
        workers: number of judge processes; they confine programs as in the run.

    Raises:
        InputError, SandboxConfigError: the run or the sandbox cannot be used; nothing was written.
        OutageError: the sandbox is down; judged rows are kept.
    """
    run = RunRecords.open(folder)
    founds = collect(run)
    sandbox = SandboxSettings.read(run.config.get("sandbox") or {}, where=f"the run in {folder}: sandbox")
    confinement = Confinement.of_run(sandbox)
    recorded = [(asdict(found.question), found.tests, list(found.programs.values())) for found in founds]
    settings = {
        **confinement.described(),
        "minimise": minimise,
        "recorded": fingerprint(json.dumps(recorded)),
    }
    if minimise:
        check_cosmic_ray()
    with JsonlStore(output, settings=settings, key="id") as store:
        if minimise:
            judge_confined(
                store,
                founds,
                lambda found, judge_all: minimal_row(found, _mutants(found), judge_all),
                key=lambda found: found.question.id,
                confinement=confinement,
                num_workers=workers,
                what="harvest",
            )
        else:
            for found in founds:
                store.append(_row(found, found.tests[:MAX_TESTS]))
        rows = list(store.rows())
    num_outages = sum(bool(row["outage"]) for row in rows)
    failure = f"{num_outages} questions met an outage and kept all their tests; repeat the command to judge them again"
    return Report(text=f"{output}: {summary(rows)}", failure=failure if num_outages else "")


def _mutants(found: Found) -> list[str]:
    mutants = mutants_of(found.question.reference, max_mutants=_MAX_MUTANTS)
    return [mutant.source for mutant in mutants]


def minimal_row(found: Found, mutants: Sequence[str], judge_all: JudgeAll) -> Row:
    """Choose few tests of a question that kill the same mutants and recorded programs as all its tests.

    A test kills a program that answers its call otherwise than the reference, raises, runs out of time or does not
    load. A test that the reference does not confirm is dropped, because the reference may have changed since the run.
    After an outage all tests stay.
    """
    tests = found.tests[:_MAX_JUDGED]
    programs = [*mutants, *found.programs.values()]
    # The reference comes first, because only tests that it confirms are counted.
    requests = [request_for(found.question, source, tests) for source in (found.question.reference, *programs)]
    kills: dict[str, set[int]] = {}
    for number, result in enumerate(judge_all(requests)):
        if isinstance(result, SandboxUnavailableError):
            return _row(found, tests, outage=str(result))
        for place, case in cases_by_place(tests, result.suites[0]):
            test = tests[place]
            if number == 0 and case.expected_correct:
                kills[test] = set()
            elif test in kills and is_broken(case):
                kills[test].add(number)
    killed = set().union(*kills.values())
    kept = cover(kills) or list(kills)[:1]
    return _row(found, kept, num_programs=len(programs), num_killed=len(killed))


def _row(found: Found, tests: Sequence[str], *, outage: str = "", **counts: int) -> Row:
    """Make the row of a question with its golden tests. Readers of questions ignore the columns of counts."""
    counts["num_harvested"] = len(found.num_broken)
    return {
        **asdict(found.question),
        "golden_tests": list(tests),
        "outage": outage,
        **counts,
    }


def cover(sets: Mapping[str, Set[int]]) -> list[str]:
    """Choose few sets whose union is the union of all, and return their names. Ties go to the earlier set.

    Finding the smallest choice is NP-hard. This greedy choice has at most ``1 + ln(n)`` times as many sets, with ``n``
    the size of the largest set (Chvatal 1979, "A Greedy Heuristic for the Set-Covering Problem").

    Example:
        >>> cover({"a": {1}, "b": {1, 2}, "c": {3}, "d": {2, 3}})
        ['b', 'c']
    """
    missing = set().union(*sets.values())
    chosen = []
    while missing:
        best = max(sets, key=lambda name: len(sets[name] & missing))
        chosen.append(best)
        missing -= sets[best]
    for name in reversed(chosen.copy()):
        # Sets that were chosen later may together contain an earlier one.
        others = [sets[other] for other in chosen if other != name]
        if sets[name] <= set().union(*others):
            chosen.remove(name)
    return chosen


def summary(rows: Sequence[Row]) -> str:
    """Describe the effect of the harvest for the terminal."""
    names = ("num_harvested", "num_killed", "num_programs")
    num_harvested, num_killed, num_programs = (sum(row.get(name, 0) for row in rows) for name in names)
    num_tests = sum(len(row["golden_tests"]) for row in rows)
    text = f"{len(rows)} questions, tests {num_harvested} -> {num_tests}"
    if num_programs:
        text += f", which kill the same {num_killed} of {num_programs} incorrect programs"
    return text
