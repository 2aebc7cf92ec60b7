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

This page is all that other packages import. Authors of runners find what a runner must do in ``tests/conformance``.

======================================  ===========================================================================
Need                                    Name
======================================  ===========================================================================
judge one candidate / on every core     ``Judge`` / ``JudgeProcesses``; ``JudgeRequest``
read the result                         ``CandidateVerdict``, ``SuiteVerdict``, ``CaseResult``, ``CaseOutcome``
run a program without a verdict         ``LocalRunner``, ``SandboxFusionRunner``; ``Program``, ``Role``
write another runner                    ``Runner``, ``ProgramResult``, ``CallResult``, ``CallStatus``
bound what a program may use            ``Limits``
ask what this machine confines          ``probe``, ``LOCAL_TIERS``, ``OPTIONAL_FEATURES``
read an assert without running it       ``Gate``, ``parse_assert``, ``Interface``
ask references for expected values      ``ReferencePass``
compare, decode and print values        ``matches``, ``decode``, ``to_literal``
programs that read standard input       ``Kind``, ``CHECKERS``, ``output_checker``, ``INPUT_ENTRY``
======================================  ===========================================================================
"""

from .cases.asserted import asserted as asserted, put_in as put_in
from .cases.case import (
    Call as Call,
    Case as Case,
    Kind as Kind,
    Rejection as Rejection,
    RejectionReason as RejectionReason,
    Suite as Suite,
)
from .cases.condition import compared as compared
from .cases.definitions import (
    defined_names as defined_names,
    imported_names as imported_names,
    missing_names as missing_names,
)
from .cases.gate import Gate as Gate
from .cases.parser import parse_assert as parse_assert, parse_call as parse_call, parse_suite as parse_suite
from .cases.reference_interface import (
    PARSE_ERRORS as PARSE_ERRORS,
    Interface as Interface,
    parse_untrusted as parse_untrusted,
)
from .checks.control import control_programs as control_programs, passes_all as passes_all
from .confinement.jail import OPTIONAL_FEATURES as OPTIONAL_FEATURES
from .confinement.tiers import LOCAL_TIERS as LOCAL_TIERS, probe as probe
from .errors import (
    SandboxConfigError as SandboxConfigError,
    SandboxError as SandboxError,
    SandboxUnavailableError as SandboxUnavailableError,
    ValueFormatError as ValueFormatError,
)
from .judge.judge import Judge as Judge
from .judge.oracle import (
    OracleValue as OracleValue,
    ReferencePass as ReferencePass,
)
from .judge.process_pool import (
    DEFAULT_QUESTIONS_PER_WORKER as DEFAULT_QUESTIONS_PER_WORKER,
    JudgeProcesses as JudgeProcesses,
    WorkerSettings as WorkerSettings,
)
from .judge.request import JudgeRequest as JudgeRequest, comparison as comparison
from .judge.run_cache import syntax_key as syntax_key
from .judge.verdict import (
    CandidateVerdict as CandidateVerdict,
    CaseOutcome as CaseOutcome,
    CaseResult as CaseResult,
    SuiteVerdict as SuiteVerdict,
)
from .limits import Limits as Limits
from .runners.base import (
    HANGS_THROUGHOUT as HANGS_THROUGHOUT,
    NOT_ASKED as NOT_ASKED,
    TOTAL_SPENT as TOTAL_SPENT,
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
from .values.comparison import comparer as comparer, matches as matches, to_literal as to_literal
from .values.decoding import decode as decode, decode_raw as decode_raw
from .values.encoding import (
    RawDict as RawDict,
    RawRatio as RawRatio,
    RawSet as RawSet,
    canonical_key as canonical_key,
    encode as encode,
)
from .values.literals import (
    INPUT_ENTRY as INPUT_ENTRY,
    LIBRARY_MODULES as LIBRARY_MODULES,
    LIBRARY_NAMES as LIBRARY_NAMES,
    NODE_NAMES as NODE_NAMES,
    LiteralReader as LiteralReader,
    spell as spell,
)
from .values.outputs import (
    CHECKERS as CHECKERS,
    DEFAULT_CHECKER as DEFAULT_CHECKER,
    Same as Same,
    output_checker as output_checker,
)
