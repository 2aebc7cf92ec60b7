"""Verdicts about one candidate, as plain data that pickles."""

import enum
from dataclasses import dataclass

from ..cases.case import Rejection
from ..runners.base import HANGS_THROUGHOUT, TOTAL_SPENT


class CaseOutcome(enum.StrEnum):
    """Outcome of one valid case. If the call gave no value, the outcome has the name of the call's status."""

    PASSED = "passed"
    WRONG_VALUE = "wrong_value"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    DIED = "died"
    """The process ended or broke its channel during the case."""
    OUTPUT_LIMIT = "output_limit"
    UNENCODABLE = "unencodable"
    """It returned something that is not a builtin value."""
    NOT_LOADED = "not_loaded"

    @property
    def failed(self) -> bool:
        return self is not CaseOutcome.PASSED


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One valid case and the candidate's outcome in it."""

    call: str
    """Canonical source of the left side, as the programs were asked. A replay asks it again."""
    reference_value: str
    """The reference's return value as Python literal text."""
    expected: str
    """The expected output as written. A replayed case carries the reference's return value here."""
    expected_correct: bool
    """The expected output equals the reference's return value. An incorrect assertion is still a valid case."""
    outcome: CaseOutcome
    detail: str = ""
    """A short remark for logs from an untrusted process. No decision may depend on it. A TIMED_OUT case names its
    limit here, or has ``TOTAL_SPENT`` if no time was left to ask or to finish."""
    key: str = ""
    """Hexadecimal digest, under which a book remembers the case. Cases of a question that make the same call share it,
    whatever the spelling of the call and the read of its result. Empty in verdicts made by hand, which use ``call``."""
    family: str = ""
    """A text that failed cases share if they show one mistake, see ``repetition``. Empty in verdicts made by hand."""

    @property
    def id(self) -> str:
        """The same for all spellings and reads of a call; a case is remembered and counted under it."""
        return self.key or self.call

    @property
    def is_unasked(self) -> bool:
        """The program had no time left for this call, or was spared it since it hung in all calls before."""
        return self.outcome is CaseOutcome.TIMED_OUT and self.detail in (TOTAL_SPENT, HANGS_THROUGHOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteVerdict:
    """The valid, distinct cases of one suite in written order, and its refused asserts."""

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
    """The load result of one candidate, its suites in the given order, and its replayed history."""

    loaded: bool
    load_error: str
    """The reason why the candidate did not load; empty if it loaded."""
    suites: tuple[SuiteVerdict, ...]
    history: tuple[CaseResult, ...]
    """Replayed cases that are still valid, in the given order."""
    dropped_history: tuple[Rejection, ...]
    """Replayed calls that the reference no longer answers, or that are no longer well formed."""
    cpu_seconds: float
    """CPU time of the candidate's processes; 0 if there was no program."""
    wall_seconds: float
    """Wall time of the whole judgement, reference included."""
    was_cached: bool = False
    """The program was not run, because an identical program has the answers, see ``Judge(reuse_results=...)``."""
    example_failure: str = ""
    """The reason why only the definitions were judged: an example at the top level raises (``sys.exit()`` as well),
    asks for input or hangs. Empty if the whole program loads."""
