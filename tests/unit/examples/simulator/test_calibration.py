"""Rates come back out of runs that were made with them; other runs are predicted with them."""

import json
from dataclasses import replace

import pytest

from examples.simulator.blocks import SimulationError, changed
from examples.simulator.calibration import calibrate, of_run, ordinary, predict
from examples.simulator.check import check, check_rows, summary
from examples.simulator.rates import rates_from, read_rates
from examples.simulator.recorded import read_run
from examples.simulator.simulator import BARRIER, STREAMING

from .run_folders import write_run

TRUE_RATES = {
    "machine": {"gpus": 1, "gpu_capacity": 1.0, "host_cores": 2.0, "servers_on_host": True},
    "client": {"workers": 1, "send_seconds": 2e-3, "receive_seconds": 5e-4, "question_seconds": 1e-2},
    "judge": {
        "workers": 2,
        "programs_per_worker": 1,
        "question_seconds": 1e-2,
        "program_seconds": 2e-2,
        "case_seconds": 1e-3,
    },
}
SERVER = ["iteration_seconds=8e-3", "request_seconds=1e-4", "admission_seconds=2e-3", "max_num_seqs=128"]
SHAPE = [
    "questions=4",
    "num_candidates=3",
    "num_suites=4",
    "cases_per_suite=2",
    "mini_batch_groups=2",
    "question_tokens={mean: 20, sigma: 0.2, cap: 64}",
    "program_tokens={mean: 30, sigma: 0.4, cap: 64}",
    "suite_tokens={mean: 10, sigma: 0.3, cap: 64}",
]


def true_rates(*assignments):
    servers = [f"{policy}.server.{change}" for policy in ("code", "test") for change in SERVER]
    raw = changed(read_rates("paper_1.5b"), [*servers, *SHAPE, *assignments], default="workload") | TRUE_RATES
    for policy, token_seconds in (("code", 2e-4), ("test", 5e-4)):
        raw[policy]["update"] = {
            "fixed_seconds": 0.2,
            "mini_batch_seconds": 0.1,
            "row_seconds": 0.0,
            "token_seconds": token_seconds,
        }
        raw[policy] |= {"sync_seconds": 0.03, "sleep_seconds": 0.0}
    return rates_from(raw)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Sizes that differ, so that costs by request, by program and by question can be told apart."""
    root = tmp_path_factory.mktemp("runs")
    sizes = {
        "small": (STREAMING, []),
        "phases": (BARRIER, ["num_candidates=5"]),
        "suites": (STREAMING, ["num_suites=8"]),
        "questions": (BARRIER, ["questions=8", "num_suites=2"]),
    }
    return [
        read_run(write_run(root / name, true_rates(*changes), mode=mode, num_steps=2))
        for name, (mode, changes) in sizes.items()
    ]


@pytest.fixture(scope="module")
def fitted(runs):
    return calibrate(runs, cores=2)


def test_the_first_step_and_checkpoints_are_left_out_and_validation_is_no_part_of_a_step(runs):
    assert [len(run.steps) for run in runs] == [2, 2, 2, 2]
    assert all(step.seconds < 10 for run in runs for step in run.steps)
    assert all(step.other == pytest.approx(0.05) for run in runs for step in run.steps)
    assert [run.mode for run in runs] == [STREAMING, BARRIER, STREAMING, BARRIER]


def test_rates_are_recovered(fitted):
    assert fitted.basis == "measured"
    assert fitted.code.server.iteration_seconds == pytest.approx(8e-3, rel=0.1)
    assert fitted.test.server.iteration_seconds == pytest.approx(8e-3, rel=0.2)
    assert fitted.client.send_seconds == pytest.approx(2e-3, rel=0.2)
    assert fitted.client.question_seconds == pytest.approx(1e-2, rel=0.1)
    assert fitted.judge.program_seconds == pytest.approx(2e-2, rel=0.1)
    assert fitted.judge.case_seconds == pytest.approx(1e-3, rel=0.2)
    assert fitted.code.sync_seconds == pytest.approx(0.03)
    assert fitted.step_seconds == pytest.approx(0.05)


def test_update_rates_predict_other_sizes(fitted):
    def seconds(rates):
        return rates.test.update.seconds(rows=40, tokens=14000, mini_batches=3, gpus=1)

    assert seconds(fitted) == pytest.approx(seconds(true_rates()), rel=0.1)


def test_a_run_with_other_sizes_is_predicted(fitted, tmp_path):
    rates = true_rates("questions=6", "num_candidates=4", "num_suites=6")
    run = read_run(write_run(tmp_path / "other", rates, mode=STREAMING, num_steps=2))
    for prediction, step in zip(predict(fitted, run), run.steps, strict=True):
        assert prediction.episodes == pytest.approx(step.episodes, rel=0.05)
        assert prediction.seconds == pytest.approx(step.seconds, rel=0.05)


@pytest.mark.parametrize("layout", ["colocated", "separate"])
def test_a_policy_that_did_not_update_is_predicted_without_an_update(tmp_path, layout):
    rates = true_rates()
    run = read_run(write_run(tmp_path / "frozen", rates, updated=("code",), layout=layout, num_steps=1))
    (prediction,), (measured,) = predict(replace(rates, step_seconds=0.05), run), run.steps
    assert len(measured.work.trained("test")) > 0  # its suites were selected all the same
    assert prediction.updates == pytest.approx(measured.updates["code"])
    assert prediction.seconds == pytest.approx(measured.seconds)


@pytest.mark.parametrize("layout", ["colocated", "separate"])
def test_a_measured_sync_is_predicted_whole(fitted, tmp_path, layout):
    run = read_run(write_run(tmp_path / "run", true_rates(), layout=layout, num_steps=1))
    assert predict(fitted, run)[0].sync == pytest.approx(run.steps[0].sync)


@pytest.mark.parametrize("mode", [STREAMING, BARRIER])
def test_hidden_and_pooled_tests_are_requests_of_their_own(tmp_path, mode):
    run = read_run(write_run(tmp_path / "run", true_rates(), mode=mode, num_steps=1, hidden=9, pooled=24))
    programs = run.steps[0].work.programs
    assert {(one.judged, one.hidden, one.pooled) for one in programs} == {(4 * 2, 9, 24)}
    assert predict(true_rates(), run)[0].episodes == pytest.approx(run.steps[0].episodes)


def test_a_program_that_shares_a_verdict_asked_neither_for_it_nor_for_the_hidden_tests(tmp_path):
    folder = write_run(tmp_path / "run", true_rates(), num_steps=1, hidden=9)
    path = folder / "rollouts" / "train_000002.jsonl"
    first, second, *rest = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    second |= {"suites": [], "judge_span": None, "duplicate_of": 0}
    path.write_text("".join(json.dumps(one) + "\n" for one in (first, second, *rest)), encoding="utf-8")
    programs = read_run(folder).steps[0].work.programs
    assert [(one.judged, one.hidden) for one in programs[:3]] == [(8, 9), (None, None), (8, 9)]


def test_a_run_is_predicted_with_its_own_numbers_of_workers(fitted, runs):
    config = runs[0].config | {"sandbox": {"num_workers": 7, "programs_per_worker": 3}}
    config["policies"] = {"code": {}, "test": {"rollout": {"max_num_seqs": 5}}}
    own = of_run(fitted, replace(runs[0], config=config))
    assert (own.judge.workers, own.judge.programs_per_worker) == (7, 3)
    assert (own.code.server.max_num_seqs, own.test.server.max_num_seqs) == (128, 5)
    with pytest.raises(SimulationError, match="the configuration of small cannot be used: KeyError: 'sandbox'"):
        of_run(fitted, replace(runs[0], config={"actor_rollout_ref": {"rollout": {}}}))


def test_the_workload_of_the_runs_goes_into_the_file(fitted):
    shape = fitted.workload
    assert (shape.questions, shape.num_candidates, shape.num_suites, shape.mini_batch_groups) == (4, 3, 4, 2)
    assert shape.template_tokens == 260
    assert rates_from(fitted.plain()) == fitted


def test_a_check_predicts_each_run_from_the_others(runs):
    checked = list(check(runs[:3], cores=2))
    assert [one.run.name for one in checked] == ["small", "phases", "suites"]
    table = list(check_rows(checked))
    assert table[0][:6] == ["run", "mode", "Q", "C", "S", "steps"]
    assert table[2][:6] == ["phases", "barrier", "4", "5", "4", "2"]
    assert len({len(row) for row in table}) == 1
    assert max(abs(one.step_error) for one in checked) < 0.15
    assert summary(checked).startswith("step: mean absolute error ")


def test_one_run_cannot_be_checked(runs):
    with pytest.raises(SimulationError, match="at least 2 runs, one to predict and one to calibrate on; got 1"):
        list(check(runs[:1]))


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(SimulationError, match=r"cannot be read as a run folder: InputError: .* holds no run"):
        read_run(tmp_path)


def test_a_run_of_one_step_is_refused_with_a_cure(tmp_path):
    folder = write_run(tmp_path / "short", true_rates(), num_steps=0)
    with pytest.raises(SimulationError, match=r"has no step from 2 on with times in its rollouts; train a few steps"):
        read_run(folder)


def test_steps_with_an_outage_and_half_written_rows_are_left_out(tmp_path):
    folder = write_run(tmp_path / "run", true_rates(), num_steps=2)
    path = folder / "rollouts" / "train_000002.jsonl"
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    record = json.loads(first) | {"outage": "SandboxUnavailableError: gone"}
    path.write_text("\n".join([json.dumps(record), *rest]) + "\n", encoding="utf-8")
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as handle:
        handle.write('{"step": 4, "timi')
    assert len(read_run(folder).steps) == 1


def test_a_fit_looks_at_the_most_ordinary_steps(runs):
    steps = [replace(runs[0].steps[0], episodes=seconds) for seconds in (9.0, 1.0, 2.0, 2.5, 3.0)]
    assert [step.episodes for step in ordinary(steps, 3)] == [2.5, 2.0, 3.0]
    assert len(ordinary(steps, 9)) == 5
