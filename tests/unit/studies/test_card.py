"""The experiment on a real model: which slice is next, what is kept of a cut run, and when a claim has an answer."""

import json
import tarfile
import time
from dataclasses import replace

import pytest

from code_a1_recipe.errors import InputError
from studies.card import questions, slices
from studies.card.__main__ import EXPERIMENT, KEPT
from studies.card.plan import FIRST, LATER, missing_arms, next_slice, planned
from studies.card.rows import Ended, Recorder, Started, Step, Validation, append_rows, read_rows
from studies.card.slices import RESULTS, commit_of, pack_questions
from studies.card.tables import write_tables
from studies.experiment.grid import Experiment

SEEDS = (0, 1, 2, 3)
MEASURES = {"pass@1": 0.5, "valid": 0.5, "kill": 0.5, "detection_rate": 0.25}


def rows_of(arm, seed, *, commit="c1", why: str | None = "", gain=0.0, number=1):
    """A run with two steps: validated, or cut for the reason ``why``; None: the machine went away."""
    run = f"{arm}-{seed}-{number}"
    yield Started(
        run=run, seed=seed, arm=arm, time="2026-01-01 00:00", commit=commit, machine="card", questions="q", settings=()
    )
    for step in (1, 2):
        yield Step(run=run, step=step, metrics={"timing_s/step": 8.0, "code/pass@1": 0.1 * step})
    steps = (0, 2) if why == "" else (0,)
    for step in steps:
        # The gain differs a little between questions, since equal differences have no spread.
        measures = {
            name: {f"q{number}": value + (gain + 0.001 * number) * (step > 0) for number in range(10)}
            for name, value in MEASURES.items()
        }
        yield Validation(run=run, step=step, measures=measures)
    if why is not None:
        yield Ended(run=run, why=why, minutes=9.0)


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.jsonl"

    def write(*runs):
        for run in runs:
            append_rows(path, run)
        return path

    return write


def pair(seed, **changes):
    return [rows_of("adversary", seed, gain=0.2, **changes), rows_of("frozen", seed, **changes)]


def test_the_first_slice_is_the_first_seed_of_the_first_pair(results):
    assert next_slice(read_rows(results()), SEEDS) == (0, ("adversary", "frozen"))


def test_a_cut_arm_is_run_again_and_its_partner_is_not(results):
    runs = read_rows(results(rows_of("adversary", 0), rows_of("frozen", 0, why="the time was over")))
    wanted = next_slice(runs, SEEDS)
    assert wanted == planned(SEEDS)[0]
    assert missing_arms(runs, wanted, "c1") == ["frozen"]
    # On another commit both arms are run, since a pair is of one commit.
    assert missing_arms(runs, wanted, "c2") == ["adversary", "frozen"]


def test_a_run_without_an_end_is_no_half_of_a_pair(results):
    runs = read_rows(results(rows_of("adversary", 0), rows_of("frozen", 0, why=None)))
    assert next_slice(runs, SEEDS) == planned(SEEDS)[0]
    assert runs[1].state == "cut after step 2"


def test_runs_of_two_commits_are_no_pair(results):
    runs = read_rows(results(rows_of("adversary", 0, commit="c1"), rows_of("frozen", 0, commit="c2")))
    assert next_slice(runs, SEEDS) == planned(SEEDS)[0]


def test_the_other_arms_follow_three_pairs_and_then_further_seeds(results):
    first = [run for seed in (0, 1, 2) for run in pair(seed)]
    assert next_slice(read_rows(results(*first)), SEEDS) == (0, ("code_a1", "golden"))
    later = [rows_of(arm, seed) for seed in (0, 1, 2) for arm in ("code_a1", "golden")]
    assert next_slice(read_rows(results(*later)), SEEDS) == (3, ("adversary", "frozen"))
    assert next_slice(read_rows(results(*pair(3))), SEEDS) is None


def test_a_claim_has_no_answer_before_three_pairs(results):
    path = results(*pair(0), *pair(1), rows_of("adversary", 2, gain=0.2))
    claim = next(line for line in write_tables(path, SEEDS).splitlines() if "pass@1" in line)
    assert "+0.200" in claim
    assert "not yet" in claim


@pytest.mark.parametrize(("gain", "answer"), [(0.2, "yes"), (0.0, "no"), (-0.2, "no")])
def test_three_pairs_answer_a_claim(results, gain, answer):
    runs = [
        rows_of(arm, seed, gain=gain * (arm == "adversary")) for seed in (0, 1, 2) for arm in ("adversary", "frozen")
    ]
    path = results(*runs)
    lines = [line for line in write_tables(path, SEEDS).splitlines() if "LLM, " in line]
    assert len(lines) == 4
    assert all(f"| {answer} " in line for line in lines)


def test_mul_is_validity_times_kill_rate_of_each_question(results):
    run = read_rows(results(rows_of("frozen", 0)))[0]
    assert run.measure("mul", 0) == dict.fromkeys([f"q{number}" for number in range(10)], 0.25)
    assert run.measure("mul", 1) == {}


def test_tables_and_picture_come_from_part_results(results):
    path = results(rows_of("adversary", 0, why="the time was over"), rows_of("frozen", 0, why=None))
    tables = write_tables(path, SEEDS)
    assert "cut after step 2: the time was over" in tables
    assert "Claims" not in tables
    assert path.with_name("curves.svg").read_text().startswith("<?xml")


def test_a_line_without_its_end_is_left_out_and_replaced(results):
    path = results(rows_of("frozen", 0))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"step","run":"fro')
    assert len(read_rows(path)) == 1
    append_rows(path, [Step(run="frozen-0-1", step=3, metrics={"timing_s/step": 1.0})])
    assert path.read_bytes().startswith(whole)
    assert sorted(read_rows(path)[0].steps) == [1, 2, 3]


@pytest.mark.parametrize("line", [b"{}\n", b'{"type":"step","run":"nobody","step":1,"metrics":{}}\n', b"no json\n"])
def test_a_damaged_line_is_named(results, line):
    path = results(rows_of("frozen", 0))
    number = len(path.read_bytes().splitlines()) + 1
    with path.open("ab") as file:
        file.write(line)
    with pytest.raises(InputError, match=f"line {number} is no row"):
        read_rows(path)


def test_a_recorder_yields_each_step_once_and_waits_for_the_first(tmp_path):
    recorder = Recorder("run", tmp_path)
    assert list(recorder.new_rows()) == []
    (tmp_path / "resolved_config.yaml").write_text("data: {}\ntrainer: {}\n")
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text(json.dumps({"step": 1, "timing_s/step": 2.0, "code/reward": 0.123456789, "other": 1.0}) + "\n")
    [row] = recorder.new_rows()
    assert row.metrics == {"timing_s/step": 2.0, "code/reward": 0.12346}
    assert list(recorder.new_rows()) == []


def verdicts(folder, by_question):
    folder.mkdir()
    rows = [
        {
            "question": question,
            "sample": number,
            "passed": passed,
            "program": program,
            "reason": "not loaded: x" if program == "d" else "",
        }
        for question, found in by_question.items()
        for number, (passed, program) in enumerate(found)
    ]
    (folder / "verdicts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_questions_that_are_solved_sometimes_are_kept(tmp_path):
    names = ("never", "once", "often", "always", "cut")
    rows = [{"id": name, "data_source": "mbpp"} for name in names]
    (tmp_path / questions.ASKED).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / questions.HELD_OUT).write_text('{"id": "held"}\n')
    solved = {"never": 0, "once": 1, "often": 7, "always": 8}
    found = {name: [(number < solved[name], "p") for number in range(8)] for name in solved}
    found["cut"] = [(True, "p"), (None, "p")]
    asked = verdicts(tmp_path / "asked", found)
    tried = verdicts(
        tmp_path / "tried",
        {"held": [(False, "d"), (False, "a"), (True, "b"), (False, "a"), (False, "c"), (False, "e")]},
    )
    table = questions.choose(tmp_path, [asked], tried, tmp_path / "kept")
    assert [row["id"] for row in questions.read_jsonl(tmp_path / questions.TRAIN)] == ["once", "often"]
    assert questions.read_jsonl(tmp_path / questions.VAL)[0]["buggy_programs"] == ["a", "c"]
    assert json.loads((tmp_path / "kept" / questions.CHOICE).read_text())["asked"] == solved
    with pytest.raises(InputError, match=r"questions of .* are not in the files, such as 'once'"):
        questions.write([], tmp_path / "kept" / questions.CHOICE, tmp_path)
    assert "| mbpp | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 1 | 1 | 2 |" in table


def test_the_packed_questions_carry_the_commit(tmp_path):
    folder = tmp_path / "questions"
    (folder / "code").mkdir(parents=True)
    for name in (questions.TRAIN, questions.VAL, "code/plus.parquet", "asked.jsonl", "commit"):
        (folder / name).write_text("abc")
    pack_questions(folder, tmp_path / "q.tar.xz")
    with tarfile.open(tmp_path / "q.tar.xz") as archive:
        assert sorted(archive.getnames()) == ["code/plus.parquet", "commit", "train.jsonl", "val.jsonl"]
    assert commit_of(folder) == "abc"


def test_a_cut_run_keeps_its_rows_and_says_why(monkeypatch, tmp_path):
    def begins_and_waits(experiment, *, arms, seeds):
        folder = experiment.run_folder(arms[0], seeds[0])
        folder.mkdir(parents=True)
        (folder / "resolved_config.yaml").write_text("data: {}\ntrainer: {}\n")
        (folder / "metrics.jsonl").write_text(json.dumps({"step": 1, "timing_s/step": 2.0}) + "\n")
        time.sleep(60)

    monkeypatch.setattr(slices, "run_experiment", begins_and_waits)
    monkeypatch.setattr(slices, "LEAST_SECONDS", 0.5)
    (tmp_path / "questions").mkdir()
    machine = slices.Machine(
        experiment=replace(Experiment.load(EXPERIMENT), folder=tmp_path / "work"),
        questions=tmp_path / "questions",
        output=tmp_path / "out",
        commit="c1",
        deadline=time.monotonic() + 1.0,
    )
    assert slices.run_slices(machine) == "adversary with seed 0: the time was over"
    [run] = read_rows(machine.results)
    assert run.state == "cut after step 1: the time was over"
    with tarfile.open(tmp_path / "out" / f"{run.started.run}.tar.xz") as archive:
        assert f"{run.started.run}/metrics.jsonl" in archive.getnames()


def test_both_files_have_arms_of_the_same_rules():
    assert {*FIRST, *LATER} == set(Experiment.load(EXPERIMENT).arms)
    card, rehearsal = (Experiment.load(file) for file in (EXPERIMENT, EXPERIMENT.with_name("card") / "rehearsal.yaml"))
    sizes = "policies.test.actor.ppo_mini_batch_size"
    for name, arm in card.arms.items():
        kept = [override for override in arm.overrides if not override.startswith(sizes)]
        assert kept == [override for override in rehearsal.arms[name].overrides if not override.startswith(sizes)]


def test_the_kept_results_can_be_read_and_drawn():
    assert isinstance(write_tables(KEPT / RESULTS, Experiment.load(EXPERIMENT).seeds), str)
