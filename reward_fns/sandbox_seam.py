"""The one place where this package meets ``sandbox``.

``sandbox`` is a common name: SandboxFusion's server package has it, and a file in the current directory may have it.
Such a package would fail later and elsewhere, so the error here explains the cause. Every other module of
``reward_fns`` imports the sandbox's names from this one.
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
except ImportError as error:  # its message says what is missing, and in which file
    raise ImportError(
        f"reward_fns needs the 'sandbox' package of the code-a1-recipe distribution: {error}. Another distribution "
        "(SandboxFusion's server is one) or a file called sandbox.py may come first on sys.path: put the "
        "code-a1-recipe checkout before it on PYTHONPATH, or use an environment without it. If the place is the "
        "checkout itself, install it again (pip install -e .)."
    ) from error
