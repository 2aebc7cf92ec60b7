"""``python -m code_a1_recipe.check_references FILE...``: can this data set be judged?

Sends each question's reference through the judge as if it were a candidate, on the question's own tests. A
reference that does not pass them all, or a question none of whose tests is a valid case, gives wrong or no
rewards; run this on new data before training on it. A test that repeats another's call is passed over.
"""

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from sandbox import CandidateVerdict, Judge, JudgeRequest, LocalRunner, RejectionReason

from .adapters import ADAPTERS
from .questions import Question, QuestionError, read_questions

NO_TESTS = "no_tests"

BATCH_TESTS = 64
"""Tests sent as one suite: a question with thousands of them is judged in pieces."""

EXIT_ALL_GOOD, EXIT_SOME_BAD, EXIT_UNUSABLE = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCheck:
    """What the judge said of one reference on its question's own tests."""

    question_id: str
    num_tests: int
    """Tests judged, repetitions of a call not counted."""
    num_passed: int
    reasons: Counter[str] = field(default_factory=Counter)
    """Why each of the other tests did not pass: an outcome, a rejection, ``wrong_claim`` or a load error."""
    example: str = ""
    """One such test with the judge's remark."""

    @property
    def is_good(self) -> bool:
        """All tests are valid cases, rightly claimed and passed."""
        return self.num_tests > 0 and not self.reasons

    @property
    def category(self) -> str:
        """The most frequent reason; "" for a good one and ``NO_TESTS`` for a question without."""
        if not self.num_tests:
            return NO_TESTS
        return self.reasons.most_common(1)[0][0] if self.reasons else ""


def check_reference(judge: Judge, question: Question, *, max_tests: int | None = None) -> ReferenceCheck:
    """Judge one question's reference on its own tests.

    Args:
        judge: used for this question only; its cached answers are dropped afterwards.
        question: with tests; without, nothing is run.
        max_tests: look at the first ones only.

    Raises:
        sandbox.SandboxUnavailableError: the sandbox could not run it.
    """
    tests = question.tests[:max_tests]
    reasons: Counter[str] = Counter()
    example = ""
    num_passed = 0
    batches = [tests[at : at + BATCH_TESTS] for at in range(0, len(tests), BATCH_TESTS)]
    for batch in batches:
        verdict = judge.judge(request_for(question, batch))
        for reason, remark in faults_of(verdict):
            reasons[reason] += 1
            example = example or remark
        num_passed += sum(
            case.claimed_right and not case.outcome.failed for suite in verdict.suites for case in suite.cases
        )
    judge.forget(question.id)
    return ReferenceCheck(
        question_id=question.id,
        num_tests=num_passed + reasons.total(),
        num_passed=num_passed,
        reasons=reasons,
        example=example,
    )


def request_for(question: Question, tests: Sequence[str]) -> JudgeRequest:
    """The question's reference as its own candidate, on ``tests`` as one suite."""
    return JudgeRequest(
        question_id=question.id,
        reference=question.reference,
        candidate=question.reference,
        suites=(tuple(tests),),
        prelude=question.prelude,
        entry_points=question.entry_points,
    )


def faults_of(verdict: CandidateVerdict) -> Iterator[tuple[str, str]]:
    """(reason, example) for each test that is no passed, rightly claimed case."""
    for suite in verdict.suites:
        for rejection in suite.rejections:
            if rejection.reason is RejectionReason.DUPLICATE:
                continue
            yield rejection.reason.value, f"{rejection.text[:120]}  # {rejection.detail[:120]}"
        for case in suite.cases:
            remark = f"{case.call[:120]} is {case.answer[:60]}, claimed {case.claimed[:60]}  # {case.detail[:120]}"
            if case.outcome.failed:
                reason = case.outcome.value if verdict.loaded else f"not_loaded: {verdict.load_error[:60]}"
                yield reason, remark
            elif not case.claimed_right:
                yield "wrong_claim", remark


def report(checks: Sequence[ReferenceCheck], *, name: str) -> str:
    """A table of reasons, then every question that is not good, as text."""
    num_good = sum(check.is_good for check in checks)
    num_tests = sum(check.num_tests for check in checks)
    num_passed = sum(check.num_passed for check in checks)
    num_tested = sum(check.num_tests > 0 for check in checks)
    lines = [
        f"{name}: {num_good} of {num_tested} references pass all of their own tests "
        f"({num_passed} of {num_tests} tests); {len(checks) - num_tested} questions have no tests"
    ]
    by_category = Counter(check.category for check in checks if check.reasons)
    lines += [f"  {count:5d}  {category}" for category, count in by_category.most_common()]
    for check in sorted(checks, key=lambda check: (check.category, check.question_id)):
        if not check.reasons:
            continue
        reasons = ", ".join(f"{reason} {count}" for reason, count in check.reasons.most_common())
        lines.append(f"  {check.question_id}: {check.num_passed}/{check.num_tests} passed; {reasons}")
        lines.append(f"      {check.example}")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check each file; 0 when no reference fails a test of its own, 1 when one does, 2 when a file is unusable."""
    parser = argparse.ArgumentParser(prog="python -m code_a1_recipe.check_references", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="parquet, JSON or JSON lines")
    parser.add_argument("--adapter", default="auto", choices=["auto", *ADAPTERS], help="how to read the columns")
    parser.add_argument("--limit", type=int, help="questions of each file, from its start")
    parser.add_argument("--max-tests", type=int, help="tests of each question, from the first")
    parser.add_argument("--workers", type=int, default=2, help="programs that run at once")
    options = parser.parse_args(arguments)
    all_good = True
    with (
        LocalRunner(num_workers=options.workers) as runner,
        Judge(runner) as judge,
        ThreadPoolExecutor(options.workers) as threads,
    ):
        for path in options.files:
            try:
                loaded = read_questions(path, adapter=options.adapter)
            except QuestionError as error:
                sys.stderr.write(f"{error}\n")
                return EXIT_UNUSABLE
            questions = itertools.islice(loaded.questions, options.limit)
            checks = list(
                threads.map(lambda question: check_reference(judge, question, max_tests=options.max_tests), questions)
            )
            all_good = all_good and not any(check.reasons for check in checks)
            sys.stdout.write(report(checks, name=path.name))
            sys.stdout.write(f"  tests that cannot be written as an assert: {loaded.num_dropped_tests}\n")
            sys.stdout.flush()
    return EXIT_ALL_GOOD if all_good else EXIT_SOME_BAD


if __name__ == "__main__":
    sys.exit(main())
