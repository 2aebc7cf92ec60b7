"""Without ``VERL_PLATFORM=cpu`` verl gets a backend for each policy from the recipe, and nothing that a CPU needs."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

PROGRAM = """
import sys
import verl
from code_a1_recipe.verl_plugin import plugin
from verl.workers.rollout.replica import RolloutReplicaRegistry
from verl.plugin.platform import get_platform
print(sorted(name for name in sys.modules if name.startswith("code_a1_recipe.verl_plugin.cpu.")))
print([name for name in RolloutReplicaRegistry._registry if name in ("vllm_code", "vllm_test")])
print(get_platform().device_name)
"""
FOLDER = "code_a1_recipe.verl_plugin.cpu."


@pytest.mark.parametrize(
    ("platform", "modules", "device"),
    [
        (None, ["environment"], "cuda"),
        pytest.param("cpu", ["environment", "verl_platform"], "cpu", marks=pytest.mark.nightly),
    ],
)
def test_the_plugin_brings_what_cpus_need_only_where_it_is_asked_for(repository, platform, modules, device):
    environment = {name: value for name, value in os.environ.items() if name != "VERL_PLATFORM"}
    environment |= {"PYTHONPATH": str(repository)} | ({"VERL_PLATFORM": platform} if platform else {})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()[-3:]
    assert lines == [str([f"{FOLDER}{name}" for name in modules]), "['vllm_code', 'vllm_test']", device]
