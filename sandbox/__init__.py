"""A judge of untrusted Python programs: what does this candidate answer, and is it right?

>>> from sandbox import Judge, JudgeRequest, LocalRunner
>>> with LocalRunner() as runner:
...     verdict = Judge(runner).judge(
...         JudgeRequest(
...             question_id="double",
...             reference="def f(x): return 2 * x",
...             candidate="def f(x): return x + x",
...             suites=(("assert f(3) == 6",),),
...         )
...     )
>>> verdict.suites[0].cases[0].outcome.value
'passed'
"""

from .answers import syntax_key
from .cases import Call, Case, Rejection, RejectionReason, Suite
from .errors import SandboxConfigError, SandboxError, SandboxUnavailableError
from .judge import Judge, JudgeRequest
from .limits import Limits
from .local_runner import LocalRunner
from .runner import Answer, AnswerKind, Lane, Program, ProgramResult, Runner
from .verdict import CandidateVerdict, CaseOutcome, CaseResult, SuiteVerdict

__all__ = [
    "Answer",
    "AnswerKind",
    "Call",
    "CandidateVerdict",
    "Case",
    "CaseOutcome",
    "CaseResult",
    "Judge",
    "JudgeRequest",
    "Lane",
    "Limits",
    "LocalRunner",
    "Program",
    "ProgramResult",
    "Rejection",
    "RejectionReason",
    "Runner",
    "SandboxConfigError",
    "SandboxError",
    "SandboxUnavailableError",
    "Suite",
    "SuiteVerdict",
    "syntax_key",
]
