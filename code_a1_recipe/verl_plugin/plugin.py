"""Entry point of the group ``verl.plugins``, which verl loads in each of its processes.

This module imports little, because each import of verl loads it, even in processes that only read configurations. The
module registers a vLLM backend for each policy, and the CPU platform if ``VERL_PLATFORM=cpu`` is set. The trainer
registers itself when ``code_a1_recipe.training.trainer`` is imported.
"""

import os
import re
import sys

from .backends import register_policy_backends
from .cpu.environment import PLATFORM_NAME, PLATFORM_VARIABLE

_LAUNCHER = "verl.trainer.main_ppo"
_ASKS_FOR_RECIPE = re.compile(r"trainer_mode=code_a1( |$)|--?(config-\w+|c[dpn])[= ]\S*code_a1")


def refuse_launcher(arguments: list[str]) -> None:
    """If this process is verl's launcher and was called for this recipe, print the right command and end the process.

    The launcher would start one of verl's trainers, which train only one policy.

    Args:
        arguments: command line of the process, as in ``sys.orig_argv``.
    """
    launcher_arguments = " ".join(arguments).partition(f"-m {_LAUNCHER} ")[2]
    if _ASKS_FOR_RECIPE.search(launcher_arguments):
        sys.stderr.write(
            f"error: `python -m {_LAUNCHER}` trains one policy; run `code-a1 PRESET_OR_FILE.yaml key=value ...` "
            "(or `python -m code_a1_recipe ...`) with the same keys. `code-a1 --help` has the presets\n"
        )
        os._exit(2)  # verl would log an exception as a debug message and go on


refuse_launcher(sys.orig_argv)
register_policy_backends()

if os.environ.get(PLATFORM_VARIABLE, "").strip().lower() == PLATFORM_NAME:
    from .cpu import verl_platform  # importing it registers the platform

    verl_platform.use_gloo_only()
