"""The Ray runner on two logical nodes: the conformance checks, and what happens when actors and nodes are lost."""

import asyncio
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import JudgeRequest, Role, SandboxConfigError, SandboxUnavailableError
from sandbox.checks.self_test import LIMITS, SELF_TEST

from ..programs import kinds, run
from ..runner_contract import RunnerContract, refuses_after_closing

# A cluster takes ten seconds to start, a lost node as long to be noticed; the checks have time limits.
pytestmark = [pytest.mark.e2e, pytest.mark.alone]
ray = pytest.importorskip("ray")

from code_a1_recipe.algorithm.settings import SandboxSettings  # noqa: E402
from code_a1_recipe.training.judge_actors import JudgePool  # noqa: E402
from code_a1_recipe.training.ray_runner import RayRunner  # noqa: E402 - after the check that Ray is there

SLEEPING = "import time\ndef f(n):\n    time.sleep(0.3)\n    return n\n"


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """Two nodes of two CPUs on this machine."""
    from ray._common.utils import get_default_ray_temp_dir
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray notes the cluster's address there, whatever temp_dir says, and expects the folder on a fresh machine too.
    Path(get_default_ray_temp_dir()).mkdir(exist_ok=True)
    folder = tempfile.mkdtemp(prefix="ray-")  # a short path: sockets lie in it
    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "object_store_memory": 80 << 20, "include_dashboard": False, "temp_dir": folder},
    )
    made.add_node(num_cpus=2, object_store_memory=80 << 20)
    ray.init(address=made.address, log_to_driver=False, logging_level="error")
    yield made
    ray.shutdown()
    made.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def runner(cluster) -> Iterator[RayRunner]:
    with RayRunner(programs_per_node=2, cpus_per_program=0.5, limits=LIMITS) as made:
        yield made


def actor_pids(runner):
    """Pids of the actors' processes by node."""
    members = list(runner._members.values())
    return {member.node_id: ray.get(member.actor.__ray_call__.remote(lambda self: os.getpid())) for member in members}


def maps_of(pid):
    return Path(f"/proc/{pid}/maps").read_text()


def in_background(runner, num_programs):
    """Run programs that take 1.2 seconds each; their results arrive in the returned list."""
    results = []
    calls = [f"f({n})" for n in range(4)]
    threads = [
        threading.Thread(target=lambda: results.append(run(runner, SLEEPING, *calls))) for _ in range(num_programs)
    ]
    for thread in threads:
        thread.start()
    return threads, results


def wait_until(condition):
    pause = threading.Event()
    for _ in range(600):
        if condition():
            return
        pause.wait(0.1)
    raise AssertionError("the awaited condition did not come")


def num_running(runner):
    return sorted(member.num_running for member in runner._members.values())


@pytest.mark.parametrize("check", [pytest.param(check, id=check.name) for check in SELF_TEST])
def test_the_quick_checks_hold(runner, check):
    if reason := check.not_applicable(runner):
        pytest.skip(reason)
    assert check.failure(runner) == ""


@pytest.mark.nightly
class TestRayRunner(RunnerContract):
    """On the module's runner, whose programs are spread over two nodes."""


def test_programs_are_spread_over_the_nodes(runner):
    wait_until(lambda: len(runner.nodes()) == 2)
    threads, results = in_background(runner, 4)
    wait_until(lambda: num_running(runner) == [2, 2])
    for thread in threads:
        thread.join()
    assert [kinds(result) for result in results] == [["value"] * 4] * 4


def test_actors_import_neither_torch_nor_verl(runner):
    for pid in actor_pids(runner).values():
        maps = maps_of(pid)
        assert "torch" not in maps
        assert "vllm" not in maps


def test_an_actor_killed_while_programs_run_loses_nothing(runner):
    wait_until(lambda: len(runner.nodes()) == 2)
    victim = next(iter(actor_pids(runner).values()))
    threads, results = in_background(runner, 6)
    wait_until(lambda: num_running(runner) == [2, 2])
    os.kill(victim, signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert [kinds(result) for result in results] == [["value"] * 4] * 6
    wait_until(lambda: len(runner.nodes()) == 2)
    assert victim not in actor_pids(runner).values()


def test_a_node_lost_while_programs_run_loses_nothing_and_a_new_node_joins(cluster, runner):
    wait_until(lambda: len(runner.nodes()) == 2)
    before = set(runner.nodes())
    other = cluster.add_node(num_cpus=2, object_store_memory=80 << 20)
    wait_until(lambda: len(runner.nodes()) == 3)
    (joined,) = set(runner.nodes()) - before
    threads, results = in_background(runner, 6)
    wait_until(lambda: num_running(runner) == [2, 2, 2])
    cluster.remove_node(other, allow_graceful=False)
    for thread in threads:
        thread.join()
    assert [kinds(result) for result in results] == [["value"] * 4] * 6
    wait_until(lambda: joined not in runner.nodes())


def test_a_program_that_is_lost_everywhere_is_an_outage(runner, monkeypatch):
    def lose(self):
        raise SandboxUnavailableError("no fork server")

    tries = []
    real = runner._take
    monkeypatch.setattr(runner, "_take", lambda avoided: tries.append(set(avoided)) or real(avoided))
    monkeypatch.setattr("code_a1_recipe.training.ray_runner.ray.get", lambda reference, **options: lose(None))
    with pytest.raises(SandboxUnavailableError, match=r"lost 4 times: node .*no fork server"):
        run(runner, SLEEPING, "f(1)")
    monkeypatch.undo()
    assert [len(avoided) for avoided in tries] == [0, 1, 2, 2]
    assert set(num_running(runner)) == {0}


def test_an_actor_that_cannot_start_says_why(cluster):
    with pytest.raises(SandboxUnavailableError, match="/no/such/folder"):
        RayRunner(programs_per_node=1, cpus_per_program=0, options={"readable": ("/no/such/folder",)})


def test_judges_may_run_their_programs_on_every_node(cluster):
    settings = SandboxSettings(
        runner="ray", num_workers=1, programs_per_worker=1, judge_timeout_seconds=60.0, max_outage_rate=0.5
    )
    request = JudgeRequest(
        question_id="q",
        reference="def f(x): return x",
        candidate="def f(x): return -x",
        suites=(("assert f(0) == 0", "assert f(1) == 1"),),
    )
    judges = JudgePool.start(settings, seed=1)
    try:
        verdict = asyncio.run(judges.judge(request))
    finally:
        judges.close()
    assert [case.outcome.value for case in verdict.suites[0].cases] == ["passed", "wrong_value"]


def test_a_number_out_of_range_is_refused():
    with pytest.raises(SandboxConfigError, match="programs_per_node must be at least 1, got 0"):
        RayRunner(programs_per_node=0)


def test_the_runner_at_its_end(cluster):
    refuses_after_closing(RayRunner(programs_per_node=1, cpus_per_program=0, limits=LIMITS))


def test_closing_ends_the_actors_and_a_run_under_way(cluster):
    own = RayRunner(programs_per_node=1, cpus_per_program=0, limits=LIMITS)
    pids = actor_pids(own)
    raised = []

    def spin():
        try:
            own_result = run(own, SLEEPING, *(f"f({n})" for n in range(40)), role=Role.CANDIDATE)
            raised.append(own_result)
        except SandboxUnavailableError as error:
            raised.append(error)

    thread = threading.Thread(target=spin)
    thread.start()
    wait_until(lambda: 1 in num_running(own))
    own.close()
    thread.join()
    assert isinstance(raised[0], SandboxUnavailableError)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids.values()))
