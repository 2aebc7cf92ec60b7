"""Rates files: what is shipped loads, what cannot be meant is refused with rule, value, place and cure."""

import statistics

import numpy as np
import pytest
import yaml

from examples.simulator.blocks import SimulationError, changed
from examples.simulator.rates import SHIPPED, rates_from, read_rates
from examples.simulator.workload import Lengths, sample_step


def refusal(*assignments, drop=""):
    raw = changed(read_rates("paper_1.5b"), assignments, default="workload")
    if drop:
        block, _, key = drop.rpartition(".")
        del raw[block][key]
    with pytest.raises(SimulationError) as caught:
        rates_from(raw)
    return str(caught.value)


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_shipped_file_loads_and_says_what_it_rests_on(path):
    found = rates_from(read_rates(path.stem))
    assert found.basis in ("assumed", "measured")
    assert rates_from(yaml.safe_load(yaml.safe_dump(found.plain()))) == found


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("paper_*.yaml")), ids=lambda path: path.stem)
def test_nobody_has_measured_the_papers_scale(path):
    assert read_rates(path.stem)["basis"] == "assumed"


@pytest.mark.parametrize(
    ("assignments", "words"),
    [
        (["basis=guessed"], "basis: unknown name 'guessed'; known: assumed, measured"),
        (["questions=0"], "workload.questions must be at least 1, got 0"),
        (["questions=many"], "rates.workload.questions must be an integer, got 'many'"),
        (["update_n=9"], "workload.update_n must be at most num_candidates = 8, got 9"),
        (["program_tokens.mean=0"], "workload.program_tokens.mean must be above 0, got 0"),
        (["suite_tokens.endless_frac=1.5"], "workload.suite_tokens.endless_frac must be at most 1, got 1.5"),
        (["code.server.demand=0"], "code.server.demand must be above 0, got 0"),
        (["code.server.iteration_seconds=-1"], "code.server.iteration_seconds must be at least 0 and finite, got -1"),
        (["test.server.kv_tokens=.inf"], "rates.test.server.kv_tokens must be an integer, got inf"),
        (["test.sync_seconds=.inf"], "test.sync_seconds must be at least 0 and finite, got inf"),
        (["code.update={}"], "rates.code.update lacks fixed_seconds, mini_batch_seconds, row_seconds, token_seconds"),
        (["machine.servers_on_host=1"], "rates.machine.servers_on_host must be true or false, got 1"),
        (["judge=5"], "rates.judge must be a block of keys, got 5; known: workers"),
        (["client={wrokers: 1}"], "unknown keys under rates.client: wrokers; known: workers"),
        (
            ["code.server.iteration_seconds=0", "code.server.request_seconds=0"],
            "code.server.iteration_seconds + request_seconds must be above 0",
        ),
    ],
)
def test_values_out_of_range_are_refused_with_their_place(assignments, words):
    assert words in refusal(*assignments)


def test_every_rate_is_stated():
    assert "rates.judge lacks case_seconds" in refusal(drop="judge.case_seconds")


def test_numbers_that_yaml_reads_as_texts_are_numbers():
    raw = changed(read_rates("paper_1.5b"), ["code.server.iteration_seconds=1e-3"], default="workload")
    assert rates_from(raw).code.server.iteration_seconds == 0.001


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("questions", "must be key=value, got 'questions'"),
        ("qestions=3", "unknown key 'qestions'; known there: questions"),
        ("code.speed=3", "unknown key 'code.speed'; known there: server"),
        ("judge.workers.all=3", "unknown key 'judge.workers.all'"),
        ("questions=[1", "questions must be a plain value"),
    ],
)
def test_changes_that_change_nothing_are_refused(assignment, words):
    with pytest.raises(SimulationError) as caught:
        changed(read_rates("paper_1.5b"), [assignment], default="workload")
    assert words in str(caught.value)


def test_a_change_of_one_policy_leaves_the_other_alone():
    raw = changed(read_rates("paper_1.5b"), ["code.server.demand=0.5"], default="workload")
    assert (raw["code"]["server"]["demand"], raw["test"]["server"]["demand"]) == (0.5, 1.0)


def test_changes_leave_the_original_alone():
    raw = read_rates("paper_1.5b")
    assert changed(raw, ["questions=3"], default="workload")["workload"]["questions"] == 3
    assert raw["workload"]["questions"] == 256


@pytest.mark.parametrize(
    ("text", "words"), [("- 1", "must be a mapping of keys, got list"), ("a: [", "cannot be read")]
)
def test_a_file_that_holds_no_rates_is_refused(tmp_path, text, words):
    path = tmp_path / "rates.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SimulationError, match=words):
        read_rates(str(path))


def test_an_unknown_name_lists_the_shipped_files():
    with pytest.raises(SimulationError, match=r"no rates 'paper_2b'; give a YAML file or one of: .*paper_1\.5b"):
        read_rates("paper_2b")


def test_lengths_have_their_mean_and_respect_their_cap():
    drawn = Lengths(mean=500, sigma=0.6, cap=4096).sample(np.random.default_rng(0), 200_000)
    assert statistics.fmean(drawn.tolist()) == pytest.approx(500, rel=0.01)
    assert drawn.max() <= 4096
    assert set(Lengths(mean=7, sigma=0, cap=9).sample(np.random.default_rng(0), 5).tolist()) == {7}


def test_endless_responses_reach_the_cap():
    drawn = Lengths(mean=10, sigma=0, cap=99, endless_frac=0.25).sample(np.random.default_rng(0), 10_000)
    assert (drawn == 99).mean() == pytest.approx(0.25, abs=0.02)


def test_a_seed_repeats_a_step_and_another_changes_it():
    def drawn(seed):
        raw = changed(read_rates("paper_1.5b"), ["questions=4", f"seed={seed}"], default="workload")
        return sample_step(rates_from(raw).workload)

    assert drawn(1) == drawn(1) != drawn(2)
    work = drawn(1)
    assert [len(work.programs), sum(len(one.suites) for one in work.programs)] == [32, 256]
    assert [len(work.trained("code")), len(work.trained("test"))] == [32, 32]
    one = work.questions[0][0]
    assert one.suites[0].prompt_tokens == 260 + one.written.prompt_tokens + one.written.response_tokens
