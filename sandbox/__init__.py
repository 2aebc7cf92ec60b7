"""Judges untrusted Python programs: runs them in confinement and compares their return values.

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

Other packages import only from ``sandbox`` and from ``sandbox.text``, which works on source text and values.
The tests in ``tests/conformance`` specify what a runner must do.

======================================  ===========================================================================
Need                                    Name
======================================  ===========================================================================
judge candidates one by one             ``Judge``, ``JudgeRequest``
judge candidates on every core          ``JudgeProcesses``, ``WorkerSettings``
read the result                         ``CandidateVerdict``, ``SuiteVerdict``, ``CaseResult``, ``CaseOutcome``
read why asserts were refused           ``Rejection``, ``RejectionReason``
run a program without a verdict         ``LocalRunner``, ``SandboxFusionRunner``; ``Program``, ``Call``, ``Role``
write another runner                    ``Runner``, ``ProgramResult``, ``CallResult``, ``CallStatus``, ``Closing``
limit time, memory and files            ``Limits``
ask what this machine can confine       ``probe``, ``LOCAL_TIERS``, ``OPTIONAL_FEATURES``
choose how tests use a program          ``Kind``
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
