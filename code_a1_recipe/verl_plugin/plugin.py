"""Entry point of the group ``verl.plugins``: what verl loads in each of its processes.

Kept light: verl imports it at the end of its own import, also in processes that only read configs. It registers a
vLLM backend per policy and, where ``VERL_PLATFORM=cpu`` asks for it, the CPU platform. The trainer registers itself
when ``code_a1_recipe.training.trainer`` is imported.
"""

import os

from .backends import register_policy_backends
from .cpu.environment import PLATFORM_NAME, PLATFORM_VARIABLE

register_policy_backends()

if os.environ.get(PLATFORM_VARIABLE, "").strip().lower() == PLATFORM_NAME:
    from .cpu import verl_platform  # importing it registers the platform

    verl_platform.use_gloo_only()
