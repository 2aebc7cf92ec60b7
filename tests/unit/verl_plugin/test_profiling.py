"""Profiles of both policies, as verl's trainer asks for them."""

from types import SimpleNamespace

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.verl_plugin.loop import AllWorkers
from code_a1_recipe.verl_plugin.workers import _profiler_arguments

MICRO = ["run_dir=/tmp/run", "policies.code.model.path=m", "policies.test.model.path=m"]


def test_workers_are_profiled_as_verls_trainer_asks():
    assert _profiler_arguments(read_config("cpu", MICRO).for_policy("code")) == {}
    steps = ["global_profiler.steps=[2,3]", "global_profiler.tool=nsys"]
    arguments = _profiler_arguments(read_config("cpu", [*MICRO, *steps]).for_policy("code"))
    assert list(arguments["profile_steps"]) == [2, 3]
    assert arguments["worker_nsight_options"]["trace"] == "cuda,nvtx,cublas,ucx"


def test_verls_trainer_starts_and_stops_the_profiler_of_both_policies_in_the_steps_that_are_named():
    from code_a1_recipe.training.trainer import CodeA1Trainer

    log = []

    def group(name):
        return SimpleNamespace(
            start_profile=lambda **given: log.append((name, "starts", given["profile_step"])),
            stop_profile=lambda **given: log.append((name, "stops", given["run_command"])),
        )

    trainer = object.__new__(CodeA1Trainer)
    trainer.config = read_config("cpu", [*MICRO, "global_profiler.steps=[2]"]).for_verl()
    trainer.actor_rollout_wg = trainer.ref_policy_wg = AllWorkers([group("code"), group("test")])
    trainer.policies = {}
    trainer.use_reference_policy, trainer.use_critic, trainer.total_training_steps = True, False, 3
    trainer.prev_step_profile = trainer.curr_step_profile = trainer.next_step_profile = False
    for trainer.global_steps in (1, 2, 3):
        trainer._start_profiling()
        trainer._stop_profiling()
    assert log == [("code", "starts", 2), ("test", "starts", 2), ("code", "stops", True), ("test", "stops", True)]
