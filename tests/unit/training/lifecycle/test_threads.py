"""OpenMP threads of the processes of a CPU run."""

import pytest

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.lifecycle import launch

REAL = ("policies.code.model.path=a/b", "policies.test.model.path=a/b")


@pytest.mark.parametrize(
    ("overrides", "of_servers", "of_training"),
    [
        ((), "1", "1"),  # the tiny models
        (REAL, "8", "8"),
        ((*REAL, "layout=separate"), "8", "4"),
    ],
)
def test_processes_that_compute_at_the_same_time_share_the_cores(monkeypatch, overrides, of_servers, of_training):
    monkeypatch.setattr(launch.os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(launch.os, "environ", {"CODE_A1_TEST": "1"})
    monkeypatch.setattr(launch, "make_sockets_folder", lambda: "/nowhere")
    variables = launch.prepare_environment(read_config("cpu", ["run_dir=/nowhere/x", *overrides]))
    assert variables["OMP_NUM_THREADS"] == of_servers
    assert variables["CODE_A1_TRAINING_THREADS"] == of_training
