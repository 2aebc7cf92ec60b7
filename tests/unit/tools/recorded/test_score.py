"""``code-a1 score``: what it writes, refuses and takes up again."""

import asyncio
import contextlib
import subprocess
import sys
import threading
from functools import cache
from itertools import cycle

import pyarrow
import pyarrow.parquet
import pytest

from code_a1_recipe.algorithm.episode import EpisodeRunner
from code_a1_recipe.algorithm.episode_types import EpisodeTask, Response
from code_a1_recipe.algorithm.prompts import PromptSettings
from code_a1_recipe.algorithm.rewards import RewardSettings
from code_a1_recipe.algorithm.settings import EpisodeSettings
from code_a1_recipe.cli.app import main
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.data.reader import iter_rows, load_questions
from code_a1_recipe.files import json_lines
from code_a1_recipe.jobs.confinement import Confinement
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.runs.rollout_record import encode_records, episode_records
from reward_fns.verl_entry import compute_score
from sandbox import Judge, SandboxUnavailableError

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
TEST_ROW = {"question": "double", "candidate": "def double(x): return x + 2", "response": list(SUITES)}


class OneJudge:
    """Judges here, since processes take long to start; the first ``num_outages`` requests meet an outage."""

    def __init__(self, runner):
        self.runner, self.num_outages, self.num_asked = runner, 0, 0
        self.lock = threading.Lock()

    def judge_all(self, requests):
        judge = Judge(self.runner, seed=5)
        with self.lock:
            for request in requests:
                self.num_asked += 1
                is_down = self.num_asked <= self.num_outages
                yield SandboxUnavailableError("no room") if is_down else judge.judge(request)


@pytest.fixture(autouse=True)
def judge(monkeypatch, runner):
    judge = OneJudge(runner)
    monkeypatch.setattr(Confinement, "judges", lambda self, num_workers, *, seed: contextlib.nullcontext(judge))
    return judge


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text(json_lines([QUESTION]))
    return path


@pytest.fixture
def run_score(questions, tmp_path):
    """``run_score(row, ..., options=[])`` -> exit status; rows are in ``scored()``."""

    def run(*rows, options=()):
        path = tmp_path / "rollouts.jsonl"
        path.write_text(json_lines(rows))
        output = ["--output", str(tmp_path / "scored.jsonl")]
        return main(["score", str(path), "--questions", str(questions), *output, "--workers", "2", *options])

    return run


def rows_of(path):
    return list(iter_rows(path))


@pytest.fixture
def score_again(tmp_path):
    """The rows that the command makes of a run, or of some of its files."""

    def run(source, *options):
        output = tmp_path / "scored.jsonl"
        assert main(["score", str(source), "--output", str(output), *options]) == 0
        return rows_of(output)

    return run


def without_times(value):
    """The value with every measured time left out."""
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key != "cpu_seconds"}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


# ------------------------------ a run's own rollouts ------------------------------


class Scripted:
    """A sampler that gives prepared texts in turn."""

    def __init__(self, texts):
        self.texts = cycle(texts)

    async def sample(self, messages, *, seed, session):
        text = next(self.texts)
        return Response(prompt_ids=(1,), token_ids=(2, 3), log_probs=(-0.1, -0.1), text=text, policy_version=1)


class LocalJudge:
    def __init__(self, runner):
        self.local = Judge(runner, seed=5)

    async def judge(self, request):
        return self.local.judge(request)


@cache
def configuration():
    overrides = ["rewards.alpha=0.25", "rewards.adversarial=figure", "episode.cases_per_suite=3", "data.seed=5"]
    overrides += ["sandbox.limits.total_seconds=20.0", "data.train_files=QUESTIONS", "data.val_files=[QUESTIONS]"]
    return read_config("cpu", overrides).to_yaml()


@pytest.fixture
def recorded_run(tmp_path, questions, runner):
    """A run folder with one training step and one validation, recorded by the recipe's own code."""
    folder = RunFolder(tmp_path / "run")
    folder.root.mkdir(parents=True)
    folder.resolved_config.write_text(configuration().replace("QUESTIONS", str(questions)))
    (question,) = load_questions(questions)
    episodes = EpisodeRunner(
        code_llm=Scripted(PROGRAMS),
        test_llm=Scripted(SUITES),
        judge=LocalJudge(runner),
        settings=EpisodeSettings(num_candidates=4, num_suites=3, cases_per_suite=3, num_workers=1),
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


def recorded_rows(run):
    return [row for path in sorted((run / "rollouts").glob("*.jsonl")) for row in rows_of(path)]


def test_a_runs_rollouts_scored_again_get_the_verdicts_and_rewards_they_had(recorded_run, score_again):
    recorded, scored = recorded_rows(recorded_run), score_again(recorded_run)
    assert len(scored) == len(recorded) == 8
    assert any(row["verdict"]["history"] for row in recorded)
    assert any(suite["reward"]["total"] > 0 for row in recorded for suite in row["suites"])
    for old, new in zip(recorded, scored, strict=True):
        for added in ("item", "file", "row"):
            new.pop(added)
        assert without_times(new) == without_times(old)


def test_another_alpha_moves_the_test_rewards_alone(recorded_run, score_again):
    scored = score_again(recorded_run / "rollouts", "--alpha", "1")
    for old, new in zip(recorded_rows(recorded_run), scored, strict=True):
        assert new["reward"] == old["reward"]
        for old_suite, new_suite in zip(old["suites"], new["suites"], strict=True):
            terms = old_suite["reward"]["terms"]
            assert new_suite["reward"]["total"] == pytest.approx(terms["loaded"] * terms["valid"], abs=1e-6)


def test_a_program_lost_to_an_outage_meets_the_replays_of_its_siblings(recorded_run, score_again):
    path = recorded_run / "rollouts" / "train_000001.jsonl"
    first, second, *_ = rows_of(path)
    path.write_text(json_lines([first, second | {"outage": "lost", "verdict": None, "reward": None}]))
    _, scored = score_again(path)
    assert without_times(scored["verdict"]) == without_times(second["verdict"])
    assert scored["reward"] == second["reward"]


# ------------------------------ rows of one's own ------------------------------


def test_rows_of_ones_own_get_the_rewards_of_a_verl_job(run_score, tmp_path, capsys):
    programs = {"question": "double", "response": list(PROGRAMS)}
    own_tests = {"question": "double", "tests": ["assert double(2) == 4"], "response": LUCKY}
    assert run_score(programs, TEST_ROW, own_tests, options=["--cases", "3", "--alpha", "0.75"]) == 0
    *code, suites, lucky = rows_of(tmp_path / "scored.jsonl")
    truth = {"reference": REFERENCE, "tests": QUESTION["tests"]}
    assert [row["reward"]["total"] for row in code] == [compute_score("", text, truth)["score"] for text in PROGRAMS]
    assert [row["extraction_failure"] for row in code] == ["", "", "no_code", ""]
    assert [(row["row"], row["response"]) for row in code] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    truth["candidate"] = TEST_ROW["candidate"]
    for text, suite in zip(SUITES, suites["suites"], strict=True):
        expected = compute_score("", text, truth, {"role": "test"}, num_cases=3, alpha=0.75)
        assert suite["reward"]["total"] == expected["score"]
    assert lucky["reward"]["total"] == 1.0
    said = capsys.readouterr().out
    assert "6 programs judged" in said
    assert "programs: mean reward 0.5000 of 5, 1 extraction failures" in said
    assert "of 3, 1 extraction failures" in said


def test_parquet_is_read_as_well(questions, tmp_path, score_again):
    rows = [{"question": "double", "response": [text], "candidate": None} for text in (RIGHT, LUCKY)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rollouts.parquet")
    scored = score_again(tmp_path / "rollouts.parquet", "--questions", str(questions))
    assert [row["reward"]["total"] for row in scored] == [1.0, 0.5]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"question": "triple", "response": RIGHT}, "column 'question': 'triple' is not among the 1 questions"),
        ({"response": RIGHT}, "column 'question'"),
        ({"question": "double"}, "column 'response': must be a string, got nothing"),
        ({"question": "double", "response": []}, "column 'response': must not be an empty list"),
        ({"question": "double", "response": [1]}, "column 'response': must hold strings only, got int"),
        (TEST_ROW | {"candidate": 3}, "column 'candidate': must be a string, got int"),
        ({"question": "double", "response": RIGHT, "tests": []}, "column 'tests': question 'double' has none"),
    ],
)
def test_a_bad_row_is_refused_with_its_place(row, words, run_score, tmp_path, capsys):
    assert run_score({"question": "double", "response": RIGHT}, row) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "rollouts.jsonl: row 1" in said
    assert not (tmp_path / "scored.jsonl").exists()


def test_bad_settings_are_refused(run_score, capsys):
    assert run_score(TEST_ROW, options=["--alpha", "1.5"]) == 2
    assert "rewards.alpha must be at most 1, got 1.5" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["missing", "empty folder", "empty file", "no json"])
def test_inputs_without_rows_are_refused(kind, tmp_path, capsys):
    path = tmp_path / "rollouts.jsonl"
    if kind == "empty folder":
        path.mkdir()
    elif kind != "missing":
        path.write_text("" if kind == "empty file" else "{")
    assert main(["score", str(path), "--output", str(tmp_path / "out.jsonl")]) == 2
    assert str(path) in capsys.readouterr().err


# ------------------------------ outages, and work that is resumed ------------------------------

MANY = ({"question": "double", "response": [RIGHT, LUCKY, "no"]}, *[TEST_ROW] * 3)


def test_an_outage_is_a_row_without_a_reward_until_the_command_is_repeated(run_score, judge, tmp_path, capsys):
    judge.num_outages = 1000
    assert run_score(*MANY) == 1
    assert "6 programs met an outage" in capsys.readouterr().err
    assert {row["reward"] for row in rows_of(tmp_path / "scored.jsonl")} == {None}
    judge.num_outages = 0
    assert run_score(*MANY) == 0
    assert None not in [row["reward"] for row in rows_of(tmp_path / "scored.jsonl")]


def test_an_episode_is_rewarded_as_a_whole_when_a_killed_command_is_repeated(run_score, judge, tmp_path):
    output = tmp_path / "scored.jsonl"
    assert run_score(*MANY) == 0
    whole = rows_of(output)
    lines = output.read_text().splitlines(keepends=True)
    # As a kill leaves it: in the order of judging, the last line torn.
    output.write_text(lines[4] + lines[0] + lines[2][: len(lines[2]) // 2])
    judge.num_asked = 0
    assert run_score(*MANY) == 0
    assert judge.num_asked == 5  # the three programs of the first row, and two of the others
    assert without_times(rows_of(output)) == without_times(whole)


def test_a_finished_output_is_not_judged_again_and_holds_one_setting(run_score, tmp_path, monkeypatch, capsys):
    assert run_score(*MANY) == 0
    before = (tmp_path / "scored.jsonl").read_bytes()
    monkeypatch.setattr(Confinement, "judges", None)
    assert run_score(*MANY) == 0
    assert run_score(*MANY, options=["--alpha", "0.7"]) == 2
    assert "alpha was 0.5, now is 0.7" in capsys.readouterr().err
    assert run_score(TEST_ROW) == 2
    assert "files was" in capsys.readouterr().err
    assert (tmp_path / "scored.jsonl").read_bytes() == before


def test_scoring_loads_no_torch_ray_or_verl(run_score, questions, tmp_path):
    assert run_score(*MANY) == 0
    script = (
        "import sys; from code_a1_recipe.tools.recorded.score import ScoreOptions, score; from pathlib import Path;"
        "source, output, questions = map(Path, sys.argv[1:]);"
        "score(ScoreOptions(source=source, output=output, questions=(questions,)));"
        "print([name for name in ('torch', 'ray', 'verl', 'vllm', 'transformers') if name in sys.modules])"
    )
    files = [str(tmp_path / "rollouts.jsonl"), str(tmp_path / "again.jsonl"), str(questions)]
    done = subprocess.run(
        [sys.executable, "-c", script, *files], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


SET_LEVEL = """
from reward_fns import Breakdown


def share(question):
    judged = sum(one.verdict is not None for one in question.candidates)
    return [one.verdict and Breakdown(parts={"share": 1 / judged}) for one in question.candidates]
"""


def test_a_runs_own_reward_function_sees_all_programs_of_an_episode(recorded_run, tmp_path, score_again):
    (tmp_path / "mine.py").write_text(SET_LEVEL)
    config = recorded_run / "resolved_config.yaml"
    own = f"name: share\n    path: {tmp_path / 'mine.py'}"
    config.write_text(config.read_text().replace("name: pass_rate\n    path: null", own))
    scored = score_again(recorded_run / "rollouts" / "train_000001.jsonl")
    assert [row["reward"]["parts"] for row in scored] == [{"share": 1 / 4}] * 4


def test_a_reward_made_of_other_tests_is_refused(recorded_run, tmp_path, capsys):
    config = recorded_run / "resolved_config.yaml"
    config.write_text(config.read_text().replace("code_tests: suites", "code_tests: golden"))
    assert main(["score", str(recorded_run), "--output", str(tmp_path / "scored.jsonl")]) == 2
    assert "rewards.code_tests=golden" in capsys.readouterr().err
