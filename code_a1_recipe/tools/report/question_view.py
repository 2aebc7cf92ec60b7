"""Writes questions as text for a terminal, with the programs and suites that a run recorded for them."""

import sys
from collections.abc import Iterable, Sequence

from sandbox import CaseResult

from ...algorithm.mistake_book import BookEntry
from ...algorithm.question import Question
from ...data.reader import QuestionTable
from ...errors import InputError
from ...jobs.terminal import indented, paint, printable
from ...runs.reader import RunRecords
from ...runs.rollout_record import SUITE, RewardRecord, RolloutRecord, SuiteRecord

OUTCOMES = {
    "detected": "incorrect, and a test of its reward (new, given, pooled or replayed) broke it",
    "undetected": "incorrect, and no test of its reward broke it",
    "untested": "incorrect by the hidden tests, and not run on any other test",
    "solved": "correct by the hidden tests",
    "unusable": "the response has no program, or the program does not load",
    "outage": "the sandbox could not judge the program",
    "unknown": "not broken, and not judged on hidden tests (validation.hidden_in_training)",
}
"""Outcome of a recorded program -> its meaning."""
_COLOURS = {"solved": "good", "outage": "doubtful", "unknown": "doubtful"}
"""Outcome -> its meaning for ``paint``, which chooses a colour by the meaning. All other outcomes are "bad"."""
_HIDDEN_SHOWN = 3
"""At most this many failed hidden tests are shown for a program."""
_TEST_CHARS = 500
"""At most this many characters of a test are shown."""


def questions_by_id(run: RunRecords) -> QuestionTable:
    """Read the training and held-out questions. If a file is gone, write a note to stderr and return no question."""
    try:
        return {**run.questions("train_files"), **run.questions("val_files")}
    except InputError as error:
        sys.stderr.write(f"note: {error}\n")
        return {}


def question_lines(question: Question, *, most: int) -> list[str]:
    """Show a question: prompt, prelude, reference, the first ``most`` tests of each kind, buggy programs."""
    source = f"  ({printable(question.data_source)})" if question.data_source else ""
    names = f"  (entry points: {', '.join(question.entry_points)})" if question.entry_points else ""
    heading = paint("heading", f"question {printable(question.id)}")
    lines = [heading + source, *indented(question.prompt, 2)]
    if question.prelude.strip():
        lines += _code_lines("prelude", question.prelude)
    lines += _code_lines("reference", question.reference, names)
    for name, tests in (("tests", question.tests), ("golden tests", question.golden_tests)):
        if not tests:
            continue
        first = f", the first {most}" if len(tests) > most else ""
        lines.append(paint("heading", f"{len(tests)} {name}{first}"))
        for test in tests[:most]:
            rest = f"... ({len(test)} characters)" if len(test) > _TEST_CHARS else ""
            lines += indented(test[:_TEST_CHARS] + rest, 4)
    for number, program in enumerate(question.buggy_programs):
        lines += _code_lines(f"buggy program {number}", program)
    return lines


def _code_lines(heading: str, code: str, remark: str = "") -> list[str]:
    return [paint("heading", heading) + remark, *indented(code.rstrip(), 4)]


def book_lines(entries: Sequence[BookEntry]) -> list[str]:
    """Show a question's cases in the Mistake Book. The case with the largest count comes first."""
    lines = [paint("heading", "Mistake Book") + f"  {len(entries)} cases, with failures minus passed replays"]
    for entry in sorted(entries, key=lambda entry: -entry.frequency):
        lines.append(printable(f"    {entry.frequency} x  {entry.call} == {entry.answer}"))
    return lines


def outcome_of(record: RolloutRecord) -> str:
    """Name the outcome of a program: a key of ``OUTCOMES``."""
    if record.outage:
        return "outage"
    if record.source is None or (record.verdict is not None and not record.verdict.loaded):
        return "unusable"
    if record.is_broken():
        return "detected"
    if record.kind != "buggy_program":  # a recorded buggy program is known to be wrong
        if record.hidden_tests is None:
            return "unknown"
        if record.is_solved:
            return "solved"
    return "undetected" if any(cases for _, cases in record.met_cases()) else "untested"


def pick_episodes(records: Iterable[RolloutRecord], *, outcome: str, limit: int) -> list[RolloutRecord]:
    """Pick the first ``limit`` records that have the outcome, at most one record for each question."""
    chosen: dict[str, RolloutRecord] = {}
    for record in records:
        if outcome_of(record) == outcome:
            chosen.setdefault(record.question, record)
    return list(chosen.values())[:limit]


def program_lines(record: RolloutRecord) -> list[str]:
    """Show one program with its reward, its suites, and the result of each assert."""
    name = outcome_of(record)
    outcome = paint(_COLOURS.get(name, "bad"), name)
    program = record.source if record.source is not None else f"(no program: {record.extraction_failure})"
    heading = paint("heading", f"candidate {record.candidate}, {record.kind}, step {record.step}")
    reward = _reward(record.reward)
    if record.reward and record.reward.terms:
        terms = [f"{term} {value:g}" for term, value in record.reward.terms.items()]
        reward += f"  ({', '.join(terms)})"
    lines = [
        f"{heading}: {outcome} ({OUTCOMES[name]})",
        f"  {reward}",
        *indented(program.rstrip(), 4),
    ]
    if record.outage:
        lines += indented(f"outage: {record.outage}", 2)
    for number, suite in enumerate(record.suites):
        lines.append(f"  suite {number}: {_reward(suite.reward)}")
        lines += _suite_lines(suite)
    for name, cases in record.met_cases():
        if name != SUITE:
            lines += [f"  {name}", *[f"    {_case(case)}" for case in cases]]
    hidden = record.hidden_tests
    if hidden is not None:
        num_passed = hidden.num_valid - hidden.num_failed
        lines.append(f"  hidden tests: {num_passed} of {hidden.num_valid} passed")
        failed = [case for case in hidden.cases if case.outcome.failed]
        lines += [f"    {_case(case)}" for case in failed[:_HIDDEN_SHOWN]]
    return lines


def _suite_lines(suite: SuiteRecord) -> list[str]:
    if suite.verdict is None:
        return ["    (no verdict)"]
    lines = []
    if suite.extraction_failure:
        lines.append(f"    {paint('bad', 'no suite')}: {printable(suite.extraction_failure)}")
    lines += [f"    {_case(case)}" for case in suite.verdict.cases]
    for entry in suite.verdict.rejections:
        mark = paint("doubtful", "no valid case")
        lines.append(f"      {_on_one_line(entry.text)}  {mark}: {entry.reason}")
    return lines


def _case(case: CaseResult) -> str:
    """Show an assert as the Test LLM wrote it. Say whether it is correct, and whether it broke the program."""
    mark, outcome = " ", "passed"
    if case.outcome.failed:
        mark = paint("bad", "x")
        outcome = paint("bad", f"broke the program: {case.outcome}")
    claim = "correct"
    if not case.expected_correct:
        value = _on_one_line(case.reference_value)
        claim = f"{paint('doubtful', 'incorrect assertion')}, the reference returns {value}"
    text = _on_one_line(f"assert {case.call} == {case.expected}")
    return f"{mark} {text}  {claim}; {outcome}"


def _on_one_line(text: str) -> str:
    return printable(text).replace("\n", " ")


def _reward(reward: RewardRecord | None) -> str:
    if reward is None:
        return "no reward"
    parts = " + ".join(f"{name} {value:.3f}" for name, value in reward.parts.items())
    return f"reward {reward.total:.3f}" + (f" = {parts}" if parts else "")
