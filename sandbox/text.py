"""Public names that read, compare and print asserts, programs and values without a judge.

======================================  ===========================================================================
Need                                    Name
======================================  ===========================================================================
read an assert without running it       ``Gate``, ``parse_assert``, ``Interface``, ``asserted``
look at a program without running it    ``defined_names``, ``missing_names``, ``parse_program``, ``syntax_key``
compare, decode and print values        ``matches``, ``comparer``, ``decode``, ``encode``, ``to_literal``, ``spell``
judge programs that read standard input ``CHECKERS``, ``output_checker``, ``INPUT_ENTRY``
make programs that solve nothing        ``control_programs``, ``passes_all``
compare with ``CaseResult.detail``      ``TOTAL_SPENT``, ``HANGS_THROUGHOUT``, ``NOT_ASKED``
======================================  ===========================================================================
"""

from .cases.asserted import asserted as asserted, put_in as put_in
from .cases.case import Case as Case, Suite as Suite
from .cases.condition import compared as compared
from .cases.definitions import (
    defined_names as defined_names,
    imported_names as imported_names,
    missing_names as missing_names,
)
from .cases.gate import LISTED_OUTPUTS as LISTED_OUTPUTS, Gate as Gate
from .cases.parser import parse_assert as parse_assert, parse_call as parse_call, parse_suite as parse_suite
from .cases.reference_interface import (
    MAX_PARSED_CHARS as MAX_PARSED_CHARS,
    PARSE_ERRORS as PARSE_ERRORS,
    Interface as Interface,
    parse_program as parse_program,
    parse_untrusted as parse_untrusted,
)
from .checks.control import control_programs as control_programs, passes_all as passes_all
from .judge.process_pool import DEFAULT_QUESTIONS_PER_WORKER as DEFAULT_QUESTIONS_PER_WORKER
from .judge.request import comparison as comparison
from .judge.run_cache import syntax_key as syntax_key
from .runners.base import HANGS_THROUGHOUT as HANGS_THROUGHOUT, NOT_ASKED as NOT_ASKED, TOTAL_SPENT as TOTAL_SPENT
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
    FROM_JSON as FROM_JSON,
    IN_LIST as IN_LIST,
    Same as Same,
    output_checker as output_checker,
)
