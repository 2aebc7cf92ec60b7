"""The CPUs that Ray must count, as a plan says, are what the parts of a run take of a real Ray."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.e2e  # three clusters start, and verl is imported in each

SPARE = 2
START = f"""
import json, sys, time
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.lifecycle.launch import prepare_environment

config = read_config("cpu", json.loads(sys.argv[1]))
prepare_environment(config)
import ray, transfer_queue
from verl.single_controller.ray import ResourcePoolManager
from code_a1_recipe.training import episode_actors
from code_a1_recipe.training.judge_actors import JudgePool
from code_a1_recipe.training.plan.needs import Place, needs_of
from code_a1_recipe.training.plan.sizes import KNOWN
from code_a1_recipe.training.startup import make_pools

class Idle:
    "In place of an episode worker, which would ask for servers."
    def __init__(self, settings, connections): pass
    def ready(self): return True

found = needs_of(config, dict.fromkeys(config.policy_names, KNOWN["micro"]), gpu_memory=0)
needed = sum(one.amount * one.count for one in found if one.place == Place.CPUS)
ray.init(address="local", num_cpus=needed + {SPARE}, num_gpus=4, include_dashboard=False, logging_level="error")
transfer_queue.init(config.for_verl().transfer_queue)
make_pools(ResourcePoolManager(resource_pool_spec={{}}, mapping={{}}), config)
judges = JudgePool.start(config.sandbox, seed=1)
episode_actors.EpisodeWorker = Idle
episodes = episode_actors.EpisodePool.start(config, endpoints={{}}, judges=judges)
deadline = time.monotonic() + 30
while (left := ray.available_resources().get("CPU", 0)) != {SPARE} and time.monotonic() < deadline:
    time.sleep(0.5)  # Ray's own count lags behind
print(json.dumps([needed, left]))
judges.close()
ray.shutdown()
"""


@pytest.mark.parametrize(
    ("overrides", "needed"),
    [
        ([], 8),
        (
            [
                "layout=separate",
                "sandbox.programs_per_worker=2",
                "episode.num_workers=2",
                "transfer_queue.backend.SimpleStorage.num_data_storage_units=3",
            ],
            6 + 4 + 2 + 4,
        ),
        (["sandbox.runner=ray"], 8 + 2),
    ],
    ids=["preset", "other numbers", "ray runner"],
)
def test_parts_of_a_run_leave_what_the_plan_did_not_count(tmp_path, overrides, needed):
    settings = json.dumps([f"run_dir={tmp_path}", *overrides])
    done = subprocess.run([sys.executable, "-c", START, settings], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [needed, SPARE]
