"""A judge of untrusted Python programs: it executes them, confined, and compares what they return.

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

This page is all that other packages import; ``sandbox.conformance`` beside it is for authors of runners.

======================================  ===========================================================================
Need                                    Name
======================================  ===========================================================================
judge one candidate / on every core     ``Judge`` / ``JudgeProcesses``; ``JudgeRequest``
read the result                         ``CandidateVerdict``, ``SuiteVerdict``, ``CaseResult``, ``CaseOutcome``
run a program without a verdict         ``LocalRunner``, ``SandboxFusionRunner``; ``Program``, ``Role``
write another runner                    ``Runner``, ``ProgramResult``, ``CallResult``, ``CallStatus``
bound what a program may use            ``Limits``
ask what this machine confines          ``probe``, ``LOCAL_TIERS``, ``OPTIONAL_FEATURES``
measure what confinement costs          ``start_as_fork_server``
read an assert without running it       ``Gate``, ``parse_assert``, ``Interface``
ask references for expected values      ``ReferencePass``
compare, decode and print values        ``matches``, ``decode``, ``to_literal``
======================================  ===========================================================================
"""

from .cases.case import Call, Case, Rejection, RejectionReason, Suite
from .cases.gate import Gate
from .cases.parser import parse_assert, parse_call, parse_suite
from .cases.reference_interface import Interface, parse_untrusted
from .confinement.jail import OPTIONAL_FEATURES
from .confinement.tiers import LOCAL_TIERS, probe
from .errors import SandboxConfigError, SandboxError, SandboxUnavailableError, ValueFormatError
from .judge.judge import Judge, JudgeRequest
from .judge.oracle import NoOracle, OracleBatch, OracleValue, ReferencePass
from .judge.process_pool import DEFAULT_QUESTIONS_PER_WORKER, JudgeProcesses, WorkerSettings
from .judge.run_cache import syntax_key
from .judge.verdict import CandidateVerdict, CaseOutcome, CaseResult, SuiteVerdict
from .limits import Limits
from .runners.base import HANGS_THROUGHOUT, TOTAL_SPENT, CallResult, CallStatus, Program, ProgramResult, Role, Runner
from .runners.fusion.runner import SandboxFusionRunner
from .runners.local.fork_server import start_as_fork_server
from .runners.local.runner import LocalRunner
from .values.comparison import matches, to_literal
from .values.decoding import decode, decode_raw
from .values.encoding import RawDict, RawRatio, RawSet, canonical_key, encode
from .values.literals import LIBRARY_MODULES, LIBRARY_NAMES, LiteralReader, spell

__all__ = [
    # Judging
    "Judge",
    "JudgeRequest",
    "JudgeProcesses",
    "WorkerSettings",
    "DEFAULT_QUESTIONS_PER_WORKER",
    "ReferencePass",
    "OracleBatch",
    "OracleValue",
    "NoOracle",
    # Verdicts
    "CandidateVerdict",
    "SuiteVerdict",
    "CaseResult",
    "CaseOutcome",
    # Running programs
    "Runner",
    "LocalRunner",
    "SandboxFusionRunner",
    "Role",
    "Program",
    "ProgramResult",
    "CallResult",
    "CallStatus",
    "TOTAL_SPENT",
    "HANGS_THROUGHOUT",
    "Limits",
    "LOCAL_TIERS",
    "OPTIONAL_FEATURES",
    "probe",
    "start_as_fork_server",
    # Asserts as data
    "Call",
    "Case",
    "Suite",
    "Rejection",
    "RejectionReason",
    "Gate",
    "Interface",
    "parse_assert",
    "parse_call",
    "parse_suite",
    "parse_untrusted",
    "syntax_key",
    # Values
    "matches",
    "encode",
    "decode",
    "decode_raw",
    "canonical_key",
    "to_literal",
    "RawDict",
    "RawRatio",
    "RawSet",
    "spell",
    "LiteralReader",
    "LIBRARY_MODULES",
    "LIBRARY_NAMES",
    # Errors
    "SandboxError",
    "SandboxConfigError",
    "SandboxUnavailableError",
    "ValueFormatError",
]
