"""``code-a1 harvest``: turns the tests of a run's Test LLM into golden tests of its questions, for ``arm=static``."""

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

_MAX_JUDGED = 512
_MAX_MUTANTS = 200


@dataclass
class Found:
    """The tests and incorrect programs that a run recorded for a question."""

    question: Question
    num_broken: Counter[str] = field(default_factory=Counter)
    """Valid case, as an assert -> number of programs that it broke."""
    programs: dict[str, str] = field(default_factory=dict)
    """Key of the syntax tree -> source of an incorrect program."""

    @property
    def tests(self) -> list[str]:
        """The asserts. The assert that broke most programs comes first."""
        return [text for text, _ in self.num_broken.most_common()]


def collect(run: RunRecords) -> list[Found]:
    """Collect a run's questions that have a valid case, in the order of the question files.

    Tests come from the second half of the steps, because the Test LLM gets better in training. A question without a
    valid case in the second half gets its tests from the first half. Incorrect programs come from all steps.

    Raises:
        InputError: the run has no valid case, or a file of its questions is missing.
    """
    found_by_id = {name: Found(question) for name, question in run.questions("train_files").items()}
    steps = run.training_steps
    middle = len(steps) // 2
    for half in (steps[middle:], steps[:middle]):
        done = {name for name, found in found_by_id.items() if found.num_broken}
        for step in half:
            for record in run.training(step):
                found = found_by_id.get(record.question)
                if found is None:
                    continue
                if record.source is not None and _is_wrong(record):
                    found.programs.setdefault(syntax_key(record.source), record.source)
                if record.question not in done:
                    _count_broken(record, found.num_broken)
    harvested = [found for found in found_by_id.values() if found.num_broken]
    if not harvested:
        raise InputError(f"{run.folder}: no valid case in its rollouts; harvest a run in which a Test LLM took part")
    return harvested


def _count_broken(record: RolloutRecord, num_broken: Counter[str]) -> None:
    """Add 1 to the count of each valid case that broke the program. A case that broke no program gets the count 0."""
    for suite in record.suites:
        if suite.verdict is None:
            continue
        for case in suite.verdict.cases:
            has_broken = case.outcome not in (CaseOutcome.PASSED, CaseOutcome.NOT_LOADED)
            num_broken[f"assert {case.call} == {case.reference_value}"] += has_broken


def _is_wrong(record: RolloutRecord) -> bool:
    """Say whether the program loads and fails a test, which may be a hidden test."""
    if record.outage or not record.is_loaded:
        return False
    hidden = record.hidden_tests
    return record.is_broken() or (hidden is not None and hidden.num_failed > 0)


def harvest(folder: Path, *, output: Path, workers: int) -> Report:
    """Write a run's questions as JSON lines, with few ``golden_tests`` for each. A repeated call resumes.

    Args:
        folder: folder of the run.
        output: receives a row for each question, in the native columns.
        workers: number of judge processes, which confine programs as in the run.

    Raises:
        InputError, SandboxConfigError: the run or the sandbox cannot be used; nothing was written.
        OutageError: the sandbox is down; judged rows are kept.
    """
    run = RunRecords.open(folder)
    harvested = collect(run)
    sandbox = SandboxSettings.read(run.config.get("sandbox") or {}, where=f"the run in {folder}: sandbox")
    confinement = Confinement.of_run(sandbox)
    check_cosmic_ray()
    recorded = []
    for found in harvested:
        recorded.append((asdict(found.question), found.tests, list(found.programs.values())))
    settings = {**confinement.described(), "recorded": fingerprint(json.dumps(recorded))}

    def row_of(found: Found, judge_all: JudgeAll) -> Row:
        mutants = mutants_of(found.question.reference, max_mutants=_MAX_MUTANTS)
        return minimal_row(found, [mutant.source for mutant in mutants], judge_all)

    with JsonlStore(output, settings=settings, key="id") as store:
        judge_confined(
            store,
            harvested,
            row_of,
            key=lambda found: found.question.id,
            confinement=confinement,
            num_workers=workers,
            what="harvest",
        )
        rows = list(store.rows())
    num_outages = sum(bool(row["outage"]) for row in rows)
    failure = f"{num_outages} questions met an outage and kept all their tests; repeat the command to judge them again"
    return Report(text=f"{output}: {summary(rows)}", failure=failure if num_outages else "")


def minimal_row(found: Found, mutants: Sequence[str], judge_all: JudgeAll) -> Row:
    """Choose few tests that kill the same mutants and recorded programs as all tests of the question.

    A test kills a program if the program answers the test's call differently from the reference, raises, runs out of
    time or does not load. A test that the reference does not confirm is dropped, because the reference may have changed
    since the run. After an outage all tests stay.
    """
    tests = found.tests[:_MAX_JUDGED]
    programs = [*mutants, *found.programs.values()]
    # The reference comes first, because only tests that the reference confirms are counted.
    sources = [found.question.reference, *programs]
    requests = [request_for(found.question, source, tests, given=True) for source in sources]
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
    return {
        **asdict(found.question),
        "golden_tests": list(tests),
        "outage": outage,
        "num_harvested": len(found.num_broken),
        **counts,
    }


def cover(sets: Mapping[str, Set[int]]) -> list[str]:
    """Choose few sets whose union is the union of all sets, and return their names.

    Of several equally good sets, the first is chosen. Finding the smallest choice is NP-hard. The greedy choice has at
    most ``1 + ln(n)`` times as many sets as the smallest choice, where ``n`` is the size of the largest set (Chvatal
    1979, "A Greedy Heuristic for the Set-Covering Problem").

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
        # Sets that were chosen later may together contain a set that was chosen earlier.
        others = [sets[other] for other in chosen if other != name]
        if sets[name] <= set().union(*others):
            chosen.remove(name)
    return chosen


def summary(rows: Sequence[Row]) -> str:
    """Describe the result of the harvest in a line for the terminal."""
    totals: Counter[str] = Counter()
    for row in rows:
        totals["num_tests"] += len(row["golden_tests"])
        for name in ("num_harvested", "num_killed", "num_programs"):
            totals[name] += row.get(name, 0)
    text = f"{len(rows)} questions, tests {totals['num_harvested']} -> {totals['num_tests']}"
    if totals["num_programs"]:
        text += f", which kill the same {totals['num_killed']} of {totals['num_programs']} incorrect programs"
    return text
