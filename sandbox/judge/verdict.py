"""The judge's findings about one candidate. They are plain data, which pickles."""

import enum
from dataclasses import dataclass

from ..cases.case import Rejection
from ..runners.base import HANGS_THROUGHOUT, TOTAL_SPENT


class CaseOutcome(enum.StrEnum):
    """Outcome of one valid case. Where the call gave no value it has the name of the call's status."""

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
    """One valid case and the candidate's fate in it."""

    call: str
    """Canonical source of the left side, as it was asked; a replay asks it again."""
    reference_value: str
    """The reference's return value as Python literal text."""
    expected: str
    """The expected output as written. A replayed case carries the reference's return value here."""
    expected_correct: bool
    """The expected output equals the reference's return value. An incorrect assertion is still a valid case."""
    outcome: CaseOutcome
    detail: str = ""
    """A short remark for logs, taken from an untrusted process; nothing may be decided on it. Of a
    TIMED_OUT case it says which limit; ``TOTAL_SPENT`` where no time was left to ask, or to finish."""
    key: str = ""
    """Hexadecimal digest, equal for cases of one question that make the same call, however it is spelled and
    its result is read: a case is remembered under it. Empty in verdicts made by hand; then ``call`` serves."""
    family: str = ""
    """Equal for failed cases of a suite that show one mistake, see ``repetition``; empty in verdicts made by hand."""

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
    """One suite: its valid, distinct cases in written order, and what was refused."""

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
    """One candidate: whether it loads, its suites in the order given, and its replayed history."""

    loaded: bool
    load_error: str
    """Why it did not load; empty when it did."""
    suites: tuple[SuiteVerdict, ...]
    history: tuple[CaseResult, ...]
    """The replayed cases that are still valid, in the order given."""
    dropped_history: tuple[Rejection, ...]
    """Replayed calls that the reference no longer answers, or that are no longer well formed."""
    cpu_seconds: float
    """CPU time of the candidate's processes; 0 when there was no program."""
    wall_seconds: float
    """Wall time of the whole judgement, reference included."""
    was_cached: bool = False
    """An identical program had been asked the same calls before, see ``Judge(reuse_results=...)``; it was not run."""
    example_failure: str = ""
    """Why the program does not load as a whole, where it was judged on its definitions alone: an example at its top
    level raises (``sys.exit()`` too), asks for input or hangs. Empty where it loads as it is."""
