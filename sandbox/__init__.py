"""Judges untrusted Python programs: runs them in confinement and compares what they return.

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

Other packages import only from this page and from ``sandbox.text`` (asserts and values as text).
The tests in ``tests/conformance`` state what a runner must do.

======================================  ===========================================================================
Need                                    Name
======================================  ===========================================================================
judge one candidate / on every core     ``Judge`` / ``JudgeProcesses``; ``JudgeRequest``
read the result                         ``CandidateVerdict``, ``SuiteVerdict``, ``CaseResult``, ``CaseOutcome``
run a program without a verdict         ``LocalRunner``, ``SandboxFusionRunner``; ``Program``, ``Role``
write another runner                    ``Runner``, ``ProgramResult``, ``CallResult``, ``CallStatus``
bound what a program may use            ``Limits``
ask what this machine confines          ``probe``, ``LOCAL_TIERS``, ``OPTIONAL_FEATURES``
ask references for expected values      ``ReferencePass``
programs that read standard input       ``Kind``
======================================  ===========================================================================
"""

from .cases.case import Call as Call, Kind as Kind, Rejection as Rejection, RejectionReason as RejectionReason
from .confinement.jail import OPTIONAL_FEATURES as OPTIONAL_FEATURES
from .confinement.tiers import LOCAL_TIERS as LOCAL_TIERS, probe as probe
from .errors import (
    SandboxConfigError as SandboxConfigError,
    SandboxError as SandboxError,
    SandboxUnavailableError as SandboxUnavailableError,
    ValueFormatError as ValueFormatError,
)
from .judge.judge import Judge as Judge
from .judge.oracle import ReferencePass as ReferencePass
from .judge.process_pool import JudgeProcesses as JudgeProcesses, WorkerSettings as WorkerSettings
from .judge.request import JudgeRequest as JudgeRequest
from .judge.verdict import (
    CandidateVerdict as CandidateVerdict,
    CaseOutcome as CaseOutcome,
    CaseResult as CaseResult,
    SuiteVerdict as SuiteVerdict,
)
from .limits import Limits as Limits
from .runners.base import (
    CallResult as CallResult,
    CallStatus as CallStatus,
    Closing as Closing,
    Program as Program,
    ProgramResult as ProgramResult,
    Role as Role,
    Runner as Runner,
)
from .runners.fusion.runner import SandboxFusionRunner as SandboxFusionRunner
from .runners.local.runner import LocalRunner as LocalRunner
