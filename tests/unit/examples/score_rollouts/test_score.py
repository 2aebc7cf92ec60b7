"""``python -m examples.score_rollouts`` with the real judge: what it writes, refuses and takes up again."""

import asyncio
import contextlib
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from code_a1_recipe.algorithm.episode import EpisodeRunner
from code_a1_recipe.algorithm.episode_types import EpisodeTask, Response
from code_a1_recipe.algorithm.prompts import PromptSettings
from code_a1_recipe.algorithm.rewards import RewardSettings
from code_a1_recipe.algorithm.settings import EpisodeSettings
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.data.reader import load_questions
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.runs.rollout_record import encode_records, episode_records
from examples.score_rollouts import command as score
from examples.score_rollouts.__main__ import main
from reward_fns.verl_entry import compute_score
from sandbox import Judge, LocalRunner

REFERENCE = "def double(x):\n    return 2 * x"
QUESTION = {
    "id": "double",
    "prompt": "double(x)",
    "reference": REFERENCE,
    "tests": ["assert double(2) == 4", "assert double(3) == 6"],
}
RIGHT = "```python\ndef double(x):\n    return x + x\n```"
LUCKY = "```python\ndef double(x):\n    return x + 2\n```"
PROGRAMS = (RIGHT, LUCKY, "I do not know.", "```python\ndef double(x\n```")
SUITES = (
    "```python\nassert double(1) == 2\nassert double(2) == 5\nassert double(1) == 2\n```",
    "assert double(5) == 10\nassert double(y) == 1",
    "no tests",
)
HISTORY = ("double(7)", "double(2)")


@pytest.fixture(scope="module")
def runner():
    with LocalRunner() as started:
        yield started


class OneJudge:
    """Judges here, with a runner that is there already: starting processes takes longer than most tests."""

    def __init__(self, runner):
        self.runner = runner

    def judge_all(self, requests):
        judge = Judge(self.runner, seed=5)
        return [judge.judge(request) for request in requests]


@pytest.fixture(autouse=True)
def one_judge_for_all(monkeypatch, runner):
    judges = contextlib.nullcontext(OneJudge(runner))
    monkeypatch.setattr(score.Confinement, "judges", lambda self, num_workers, *, seed: judges)


@pytest.fixture
def questions(tmp_path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps(QUESTION) + "\n")
    return path


@pytest.fixture
def write_rows(tmp_path):
    """``write_rows(row, ...)`` -> a file of rollouts."""

    def write(*rows: dict, name: str = "rollouts.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_times(value):
    """The value with every measured time left out."""
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key != "cpu_seconds"}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


# ------------------------------ a run's own rollouts ------------------------------


class Scripted:
    """A sampler that gives prepared texts in turn."""

    def __init__(self, texts):
        self.texts = texts
        self.count = 0

    async def sample(self, messages, *, seed, session):
        text = self.texts[self.count % len(self.texts)]
        self.count += 1
        return Response(prompt_ids=(1,), token_ids=(2, 3), log_probs=(-0.1, -0.1), text=text, policy_version=1)


class AsyncLocalJudge:
    def __init__(self, judge):
        self.judge_now = judge.judge

    async def judge(self, request):
        return self.judge_now(request)


@cache
def configuration() -> str:
    overrides = ["rewards.alpha=0.25", "rewards.adversarial=figure", "episode.cases_per_suite=3", "data.seed=5"]
    overrides += ["sandbox.limits.total_seconds=20.0", "data.train_files=QUESTIONS", "data.val_files=[QUESTIONS]"]
    return read_config("cpu", overrides).to_yaml()


def write_config(folder: Path, questions: Path) -> None:
    (folder / "resolved_config.yaml").write_text(configuration().replace("QUESTIONS", str(questions)))


@pytest.fixture
def recorded_run(tmp_path, questions, runner) -> Path:
    """A run folder with one training step and one validation, recorded by the recipe's own code."""
    folder = RunFolder(tmp_path / "run")
    folder.root.mkdir(parents=True)
    write_config(folder.root, questions)
    (question,) = load_questions(questions)
    episodes = EpisodeRunner(
        code=Scripted(PROGRAMS),
        test=Scripted(SUITES),
        judge=AsyncLocalJudge(Judge(runner, seed=5)),
        episode=EpisodeSettings(num_candidates=4, num_suites=3, cases_per_suite=3, num_workers=1),
        rewards=RewardSettings(alpha=0.25, adversarial="figure", nonprintable_penalty=False),
        prompts=PromptSettings(name="micro"),
        judge_timeout_seconds=60,
    )
    for validate in (False, True):
        task = EpisodeTask(
            question=question,
            history=() if validate else HISTORY,
            step=1,
            seed=0,
            num_candidates=4,
            num_suites=3,
            with_hidden_tests=validate,
        )
        episode = asyncio.run(episodes.run(task))
        with folder.rollout_log(1, validation=validate) as write:
            write(encode_records(episode_records(episode, selected=(1,))))
    return folder.root


def recorded_rows(run: Path) -> list[dict]:
    return [row for path in sorted((run / "rollouts").glob("*.jsonl")) for row in rows_of(path)]


def test_a_runs_rollouts_scored_again_get_the_verdicts_and_rewards_they_had(recorded_run, tmp_path):
    output = tmp_path / "scored.jsonl"
    assert main([str(recorded_run), "--output", str(output)]) == 0
    recorded = recorded_rows(recorded_run)
    scored = rows_of(output)
    assert len(scored) == len(recorded) == 8
    assert any(row["verdict"]["history"] for row in recorded)
    assert any(suite["reward"]["total"] > 0 for row in recorded for suite in row["suites"])
    for old, new in zip(recorded, scored, strict=True):
        for added in ("item", "file", "row"):
            new.pop(added)
        assert without_times(new) == without_times(old)


def test_another_alpha_moves_the_test_rewards_alone(recorded_run, tmp_path):
    output = tmp_path / "scored.jsonl"
    assert main([str(recorded_run / "rollouts"), "--output", str(output), "--alpha", "1"]) == 0
    for old, new in zip(recorded_rows(recorded_run), rows_of(output), strict=True):
        assert new["reward"] == old["reward"]
        for old_suite, new_suite in zip(old["suites"], new["suites"], strict=True):
            terms = old_suite["reward"]["terms"]
            assert new_suite["reward"]["total"] == pytest.approx(terms["loaded"] * terms["valid"], abs=1e-6)


def test_a_program_lost_to_an_outage_meets_the_replays_of_its_siblings(recorded_run, tmp_path):
    path = recorded_run / "rollouts" / "train_000001.jsonl"
    rows = rows_of(path)
    lost = {**rows[1], "outage": "lost", "verdict": None, "reward": None}
    path.write_text("".join(json.dumps(row) + "\n" for row in (rows[0], lost)))
    output = tmp_path / "scored.jsonl"
    assert main([str(path), "--output", str(output)]) == 0
    assert without_times(rows_of(output)[1]["verdict"]) == without_times(rows[1]["verdict"])
    assert rows_of(output)[1]["reward"] == rows[1]["reward"]


def test_rollouts_of_two_runs_are_not_mixed(recorded_run, tmp_path, questions, capsys):
    other = tmp_path / "other"
    (other / "rollouts").mkdir(parents=True)
    write_config(other, questions)
    assert main([str(recorded_run), str(other), "--output", str(tmp_path / "scored.jsonl")]) == 2
    assert "belong to 2 runs" in capsys.readouterr().err


# ------------------------------ flat rows ------------------------------


def test_flat_rows_get_the_rewards_of_a_verl_job(questions, write_rows, tmp_path):
    rollouts = write_rows(
        {"question": "double", "responses": list(PROGRAMS)},
        {"question": "double", "role": "test", "candidate": "def double(x): return x + 2", "response": SUITES[0]},
        {"reference": REFERENCE, "tests": ["assert double(0) == 0"], "response": LUCKY, "history": ["double(2)"]},
    )
    output = tmp_path / "scored.jsonl"
    options = ["--questions", str(questions), "--output", str(output), "--cases", "3", "--alpha", "0.75"]
    assert main([str(rollouts), *options]) == 0
    *code, suite, inline = rows_of(output)
    truth = {"reference": REFERENCE, "tests": QUESTION["tests"]}
    assert [row["reward"]["total"] for row in code] == [compute_score("", text, truth)["score"] for text in PROGRAMS]
    assert [row["extraction_failure"] for row in code] == ["", "", "no_code", ""]
    assert [(row["row"], row["response"]) for row in code] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    truth["candidate"] = "def double(x): return x + 2"
    expected = compute_score("", SUITES[0], truth, {"role": "test"}, num_cases=3, alpha=0.75)
    assert suite["reward"]["total"] == expected["score"]
    assert inline["reward"]["total"] == 0.5  # the replay passes, the test does not


def test_parquet_is_read_as_well(questions, tmp_path):
    table = pyarrow.Table.from_pylist(
        [
            {"question": "double", "response": RIGHT, "candidate": None, "responses": None},
            {"question": "double", "response": None, "candidate": None, "responses": [LUCKY]},
        ]
    )
    pyarrow.parquet.write_table(table, tmp_path / "rollouts.parquet")
    output = tmp_path / "scored.jsonl"
    arguments = [str(tmp_path / "rollouts.parquet"), "--questions", str(questions), "--output", str(output)]
    assert main(arguments) == 0
    assert [row["reward"]["total"] for row in rows_of(output)] == [1.0, 0.5]


def test_the_summary_counts_what_was_found(questions, write_rows, tmp_path, capsys):
    rollouts = write_rows(
        {"question": "double", "responses": [RIGHT, "nothing"]},
        {"question": "double", "candidate": "def double(x): return x + 2", "responses": list(SUITES)},
    )
    arguments = ["--questions", str(questions), "--output", str(tmp_path / "out.jsonl"), "--cases", "3"]
    assert main([str(rollouts), *arguments]) == 0
    said = capsys.readouterr().out
    assert "5 items, 0 of them outages" in said
    assert "code: 2 responses, reward 0.5000, loaded 0.5000, reward 1 0.5000" in said
    assert "test: 3 responses, reward 0.2222, valid 0.2222, adv 0.2222, broke the program 0.6667" in said
    assert "extraction failures: 2 (code no_code 1, test no_asserts 1)" in said
    assert "rejected asserts: 2 (duplicate 1, argument_not_literal 1)" in said


# ------------------------------ refused before any work ------------------------------

TEST_ROW = {"question": "double", "role": "test", "candidate": "def double(x): return x", "response": SUITES[0]}


@pytest.mark.parametrize(
    ("row", "options", "words"),
    [
        ({"question": "triple", "response": RIGHT}, [], "column 'question': 'triple' is not among the 1 questions"),
        ({"response": RIGHT}, [], "'question': is missing, and so is 'reference'"),
        ({"question": "double"}, [], "column 'response': give either 'response', a text, or 'responses'"),
        ({"question": "double", "response": RIGHT, "responses": [RIGHT]}, [], "give either 'response'"),
        ({"question": "double", "response": 3}, [], "column 'response': must be a string, got int"),
        ({"question": "double", "responses": [1]}, [], "column 'responses': must hold strings only, got int"),
        ({"question": "double", "responses": []}, [], "column 'responses': must not be empty"),
        ({"question": "double", "response": RIGHT, "role": "tests"}, [], "must be one of code, test, got 'tests'"),
        ({"question": "double", "response": RIGHT, "role": "test"}, [], "column 'candidate': is missing"),
        (TEST_ROW, ["--role", "code"], "column 'role': is 'test', but --role=code was asked for"),
        (TEST_ROW | {"candidate": 3}, [], "column 'candidate': must be a string, got int"),
        (TEST_ROW | {"history": "f(1)"}, [], "column 'history': must be a list of strings"),
        ({"reference": REFERENCE, "response": RIGHT}, [], "column 'tests': question"),
        ({"reference": "def f(:", "response": RIGHT}, [], "column 'reference': must be Python 3"),
    ],
)
def test_a_bad_row_is_refused_with_its_place(row, options, words, questions, write_rows, tmp_path, capsys):
    rollouts = write_rows({"question": "double", "response": RIGHT}, row)
    output = tmp_path / "out.jsonl"
    assert main([str(rollouts), "--questions", str(questions), "--output", str(output), *options]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "rollouts.jsonl: row 1" in said
    assert not output.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--alpha", "1.5"], "rewards.alpha must be at most 1, got 1.5"),
        (["--limits", "totl_seconds=3"], "unknown keys under --limits: ['totl_seconds']"),
        (["--limits", "total_seconds=-3"], "total_seconds must be a positive finite number"),
    ],
)
def test_bad_settings_are_refused(options, words, questions, write_rows, tmp_path, capsys):
    rollouts = write_rows({"question": "double", "response": RIGHT})
    arguments = [str(rollouts), "--questions", str(questions), "--output", str(tmp_path / "out.jsonl")]
    assert main([*arguments, *options]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["missing", "empty folder", "empty file", "no json"])
def test_inputs_without_rows_are_refused(kind, tmp_path, capsys):
    path = tmp_path / "rollouts.jsonl"
    if kind == "empty folder":
        path.mkdir()
    elif kind != "missing":
        path.write_text("" if kind == "empty file" else "{")
    assert main([str(path), "--output", str(tmp_path / "out.jsonl")]) == 2
    assert str(path) in capsys.readouterr().err


def test_one_id_for_two_questions_is_refused(questions, write_rows, tmp_path, capsys):
    other = write_rows(QUESTION | {"reference": "def double(x): return 3 * x"}, name="other.jsonl")
    rollouts = write_rows({"question": "double", "response": RIGHT})
    options = ["--questions", str(questions), "--questions", str(other), "--output", str(tmp_path / "out.jsonl")]
    assert main([str(rollouts), *options]) == 2
    assert "id 'double' stands for another question" in capsys.readouterr().err


# ------------------------------ taken up again ------------------------------


@pytest.fixture
def many(questions, write_rows, tmp_path):
    """Six items and the command line that scores them into ``out.jsonl``."""
    rollouts = write_rows({"question": "double", "responses": [RIGHT, LUCKY, "no"]}, TEST_ROW, TEST_ROW, TEST_ROW)
    return [str(rollouts), "--questions", str(questions), "--output", str(tmp_path / "out.jsonl")]


def test_a_run_that_was_killed_goes_on_where_it_stopped(many, tmp_path, monkeypatch):
    output = tmp_path / "out.jsonl"
    assert main(many) == 0
    whole = rows_of(output)
    lines = output.read_text().splitlines(keepends=True)
    # As a kill leaves it: in the order of judging, the last line torn.
    output.write_text(lines[4] + lines[0] + lines[2][: len(lines[2]) // 2])
    scored = []
    original = score.Scorer.requests
    monkeypatch.setattr(score.Scorer, "requests", lambda self, item: scored.append(item.index) or original(self, item))
    assert main(many) == 0
    assert sorted(scored) == [1, 2, 3, 5]
    assert without_times(rows_of(output)) == without_times(whole)


def test_a_finished_run_is_not_judged_again(many, tmp_path, monkeypatch):
    assert main(many) == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    monkeypatch.setattr(score.Confinement, "judges", None)
    assert main(many) == 0
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_other_settings_do_not_go_on_in_the_same_file(many, tmp_path, capsys):
    assert main(many) == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    assert main([*many, "--alpha", "0.7"]) == 2
    assert "alpha was 0.5, now is 0.7" in capsys.readouterr().err
    Path(many[0]).write_text(json.dumps(TEST_ROW) + "\n")
    assert main(many) == 2
    assert "inputs was" in capsys.readouterr().err
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_scoring_loads_no_torch_ray_or_verl(many):
    script = (
        "import sys; from examples.score_rollouts.__main__ import main; status = main(sys.argv[1:]);"
        "print([name for name in ('torch', 'ray', 'verl', 'vllm', 'transformers') if name in sys.modules], status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *many], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.splitlines()[-1] == "[] 0", done.stderr
