"""A user's function that writes suites in place of the Test LLM (``episode.tester``).

The function can play a perfect tester. With a perfect tester, the effect on the Code LLM is an upper bound.
"""

from reward_fns import load_module

from ..algorithm.episode_types import ScriptedTester
from ..algorithm.user_code import user_code
from ..errors import CodeA1Error, SettingsError


def find_scripted_tester(path: str | None) -> ScriptedTester | None:
    """Find the function at ``pkg://package.module:function`` or ``folder/file.py:function``; None without a path.

    Raises:
        SettingsError: the function does not exist, or its module cannot be loaded.
    """
    if path is None:
        return None
    module, _, name = path.rpartition(":")
    hint = "give pkg://package.module:function, or FILE.py:function"
    if not module or not name.isidentifier():
        raise SettingsError(f"episode.tester={path!r} must name a module and a function; {hint}")
    try:
        function = getattr(load_module(module), name, None)
    except ValueError as error:
        raise SettingsError(f"episode.tester={path!r}: {error}") from error
    if not callable(function):
        raise SettingsError(f"episode.tester={path!r}: {module} has no function {name!r}")

    def write(question: str, program: str, *, num_suites: int, num_cases: int, seed: int) -> list[str]:
        with user_code(f"episode.tester={path!r}", function):
            texts = function(question, program, num_suites=num_suites, num_cases=num_cases, seed=seed)
            suites = list(map(str, texts))
        # A wrong number of suites would cause an error much later, in code that cannot name the user's function.
        if len(suites) != num_suites:
            raise CodeA1Error(f"episode.tester={path!r} must return {num_suites} suites, got {len(suites)}")
        return suites

    return write
