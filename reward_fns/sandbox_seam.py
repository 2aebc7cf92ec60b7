"""The only module of ``reward_fns`` that imports ``sandbox``; other modules import the sandbox's names from this
module.

``sandbox`` is a common name: SandboxFusion's server package has the same name, and a file in the current directory may
have it too. If Python finds another ``sandbox`` first, the error below explains the cause.
"""

try:
    from sandbox import (
        CandidateVerdict as CandidateVerdict,
        CaseResult as CaseResult,
        Judge as Judge,
        JudgeRequest as JudgeRequest,
        Kind as Kind,
        Limits as Limits,
        LocalRunner as LocalRunner,
        SuiteVerdict as SuiteVerdict,
        ValueFormatError as ValueFormatError,
    )
    from sandbox.text import (
        INPUT_ENTRY as INPUT_ENTRY,
        PARSE_ERRORS as PARSE_ERRORS,
        asserted as asserted,
        compared as compared,
        defined_names as defined_names,
        imported_names as imported_names,
        missing_names as missing_names,
        parse_untrusted as parse_untrusted,
    )
except ImportError as error:  # the error's own message names the missing part and the file that was found
    raise ImportError(
        f"reward_fns needs the 'sandbox' package of the code-a1-recipe distribution: {error}. Another distribution "
        "(such as SandboxFusion's server) or a file called sandbox.py may come first on sys.path: put the "
        "code-a1-recipe checkout before it on PYTHONPATH, or use an environment without it. If the file above is in "
        "the checkout itself, install the checkout again (pip install -e .)."
    ) from error
