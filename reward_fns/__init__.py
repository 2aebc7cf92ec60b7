"""Rewards for code and for tests, as functions of a judge's verdicts.

The package imports the standard library and ``sandbox``, but neither verl nor torch. Any verl job can call
``reward_fns.verl_entry.compute_score``.
"""

# ``sandbox`` is a common name: SandboxFusion's server package has it, and a file in the current directory may too.
try:
    from sandbox import CandidateVerdict as CandidateVerdict
except ImportError as error:  # the error's own message names the missing part and the file that was found
    raise ImportError(
        f"reward_fns needs the 'sandbox' package of the code-a1-recipe distribution: {error}. Another distribution "
        "(such as SandboxFusion's server) or a file called sandbox.py may come first on sys.path: put the "
        "code-a1-recipe checkout before it on PYTHONPATH, or use an environment without it. If the file above is in "
        "the checkout itself, install the checkout again (pip install -e .)."
    ) from error

from .breakdown import Breakdown as Breakdown
from .code_llm_reward import code_llm_reward as code_llm_reward, pass_rate as pass_rate
from .extract import (
    ExtractionFailure as ExtractionFailure,
    asked_names as asked_names,
    extract_candidate as extract_candidate,
    extract_suite as extract_suite,
)
from .interface import (
    CodeReward as CodeReward,
    JudgedCandidate as JudgedCandidate,
    QuestionVerdicts as QuestionVerdicts,
    TestReward as TestReward,
    lookup as lookup,
)
from .registry import (
    CODE_REWARDS as CODE_REWARDS,
    TEST_REWARDS as TEST_REWARDS,
    find_reward as find_reward,
    load_module as load_module,
    reward_code as reward_code,
    reward_file as reward_file,
    reward_suites as reward_suites,
)
from .test_llm_reward import (
    ADVERSARIAL_READINGS as ADVERSARIAL_READINGS,
    test_llm_reward as test_llm_reward,
    validity as validity,
)
from .weighted_reward import AdversarialReward as AdversarialReward
