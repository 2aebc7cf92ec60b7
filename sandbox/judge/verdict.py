"""Verdicts about one candidate, as plain data that can be pickled."""

import enum
from dataclasses import dataclass

from ..cases.case import Rejection
from ..runners.base import HANGS_THROUGHOUT, TOTAL_SPENT


class CaseOutcome(enum.StrEnum):
    """Outcome of one valid case. If the call returned no value, the outcome has the name of the call's status."""

    PASSED = "passed"
    WRONG_VALUE = "wrong_value"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    DIED = "died"
    """The process ended or broke its channel during the case."""
    OUTPUT_LIMIT = "output_limit"
    UNENCODABLE = "unencodable"
    """The call returned something that is not a builtin value."""
    NOT_LOADED = "not_loaded"

    @property
    def failed(self) -> bool:
        return self is not CaseOutcome.PASSED


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One valid case and the candidate's outcome in it."""

    call: str
    """Canonical source of the assert's left side, which the programs evaluated. A replay evaluates it again."""
    reference_value: str
    """The reference's return value as Python literal text."""
    expected: str
    """The expected output as written; for a replayed case, the reference's return value."""
    expected_correct: bool
    """The expected output equals the reference's return value. An incorrect assertion is a valid case, too."""
    outcome: CaseOutcome
    detail: str = ""
    """A short remark for logs. An untrusted process may have written it, so no decision may depend on it. But the
    detail of a TIMED_OUT case comes from the judge: the limit, or ``TOTAL_SPENT`` if no time was left to make or finish
    the call."""
    key: str = ""
    """Hexadecimal digest. Cases of a question have the same key if they make the same call. The spelling of the call
    and the part of the result that they read do not matter. Empty if no judge made the verdict."""
    family: str = ""
    """Hexadecimal digest. Cases have the same family if they show the same mistake, see ``repetition``. Empty if no
    judge made the verdict."""

    @property
    def id(self) -> str:
        """Identifier under which a case is kept and counted once: its family, its key or its call."""
        return self.family or self.key or self.call

    @property
    def is_unasked(self) -> bool:
        """No time was left for this call, or the program's first calls had all hung."""
        return self.outcome is CaseOutcome.TIMED_OUT and self.detail in (TOTAL_SPENT, HANGS_THROUGHOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteVerdict:
    """The valid, distinct cases of one suite in their written order, and the refused asserts of the suite."""

    cases: tuple[CaseResult, ...]
    rejections: tuple[Rejection, ...]

    @property
    def num_valid(self) -> int:
        return len(self.cases)

    @property
    def num_expected_correct(self) -> int:
        return sum(case.expected_correct for case in self.cases)

    @property
    def num_expected_incorrect(self) -> int:
        return self.num_valid - self.num_expected_correct

    @property
    def num_failed(self) -> int:
        return sum(case.outcome.failed for case in self.cases)

    @property
    def num_rejected(self) -> int:
        return len(self.rejections)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateVerdict:
    """The verdict about one candidate: whether it loaded, and its outcomes in all suites and replayed calls."""

    loaded: bool
    load_error: str
    """The reason why the candidate did not load; empty if it loaded."""
    suites: tuple[SuiteVerdict, ...]
    history: tuple[CaseResult, ...]
    """Replayed cases that are still valid, in the order of the request."""
    dropped_history: tuple[Rejection, ...]
    """Replayed calls that are no longer valid: the gate refuses them, or the reference does not answer."""
    cpu_seconds: float
    """CPU time of the candidate's processes; 0 if there was no program."""
    wall_seconds: float
    """Wall time of the whole judgement, including the reference pass."""
    was_cached: bool = False
    """The program did not run, because an identical program had run before, see ``Judge(reuse_results=...)``."""
    example_failure: str = ""
    """The exception of an example at top level that was skipped; or the reason why only the definitions were judged: an
    example hangs. Empty if no example fails."""
