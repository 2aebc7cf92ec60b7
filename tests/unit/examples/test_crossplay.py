"""Cross-play with scripted models and the real sandbox: who meets whom, what counts, and what is taken up again."""

import asyncio
import json
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from code_a1_recipe.algorithm.episode import EpisodeRunner
from code_a1_recipe.algorithm.episode_types import CandidateResult, Response
from code_a1_recipe.algorithm.mistake_book import MistakeBook
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.algorithm.sampling import SamplingParameters
from code_a1_recipe.algorithm.tasks import tasks_of
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.config.run_config import RunConfig
from code_a1_recipe.errors import InputError, OutageError, OutputError, SettingsError
from code_a1_recipe.stats.estimates import Estimate
from examples import recorded_pair
from examples.crossplay import __main__ as command_line, matches, report
from examples.crossplay.figure import draw_crossplay
from examples.crossplay.matches import CrossPlay, Result, match_result, play
from examples.crossplay.options import CrossPlayOptions
from examples.crossplay.report import Findings, rating_table, signs, win_table
from sandbox import CaseOutcome, Judge, LocalRunner, SandboxUnavailableError

# Two questions with f(x) = x + 1 and f(x) = 2 * x. The Code LLM of step 0 answers x + 1 to both, the one of step 20 is
# right. The Test LLM of step 0 asks f(1), where both functions agree; the one of step 20 asks f(3).
QUESTIONS = (
    Question(id="plus", prompt="plus", reference="def f(x): return x + 1"),
    Question(id="double", prompt="double", reference="def f(x): return 2 * x"),
)
PLUS, DOUBLE = (question.reference for question in QUESTIONS)
PROGRAMS = {("code", "0"): {"plus": PLUS, "double": PLUS}, ("code", "20"): {"plus": PLUS, "double": DOUBLE}}
SUITES = {("test", "0"): "assert f(1) == 2", ("test", "20"): "assert f(3) == 4"}


@dataclass
class Model:
    """Answers by role and step, and notes what it is asked."""

    world: "World"
    policy: str
    step: str

    @property
    def fingerprint(self):
        return f"{self.policy} {self.step}"

    async def open(self, parameters):
        assert self.world.num_open == 0, "two engines at once"
        self.world.num_open += 1
        self.world.opened.append((self.policy, self.step))
        return self

    async def sample(self, messages, *, seed, session):
        self.world.seeds.setdefault((self.policy, self.step), set()).add((session, seed))
        if self.world.samples_left == 0:
            raise OutageError("the vLLM engine has died")
        self.world.samples_left -= 1
        prompt = messages[-1]["content"]
        question = session.split("/")[0]
        is_test_prompt = "/" in session
        if is_test_prompt:
            self.world.test_prompts.append(prompt)
            text = SUITES.get((self.policy, self.step), "assert f(3) == 0")
        else:
            text = self.world.programs[self.policy, self.step][question]
        return Response(prompt_ids=(1,), token_ids=(2,), log_probs=(), text=text, policy_version=0)

    async def close(self):
        self.world.num_open -= 1


@dataclass
class World:
    """A run whose models are scripted."""

    folder: Path
    settings: RunConfig
    programs: dict = field(default_factory=lambda: {key: dict(row) for key, row in PROGRAMS.items()})
    opened: list = field(default_factory=list)
    seeds: dict = field(default_factory=dict)
    test_prompts: list = field(default_factory=list)
    samples_left: int = -1
    num_open: int = 0
    outages: set = field(default_factory=set)
    num_judged: int = 0
    tester = recorded_pair.RecordedPair.tester

    @property
    def records(self):
        return SimpleNamespace(folder=self.folder / "run")

    def held_out(self, limit=None):
        return list(QUESTIONS[:limit])

    def sampling(self, policy):
        return SamplingParameters(
            temperature=1.0, top_p=1.0, top_k=-1, max_prompt_tokens=9, max_response_tokens=len(policy)
        )

    def model(self, policy, step, *, work_folder, stored_only=False):
        return Model(self, policy, step)

    def cross(self, **changes):
        values = {"pair": self, "questions": self.held_out(), "steps": ["0", "20"]}
        values |= {name: changes.pop(name) for name in values.keys() & changes.keys()}
        sizes = {"candidates": 2, "suites": 1} | changes
        return CrossPlay(**values, options=CrossPlayOptions(run=self.folder, output=self.folder / "out", **sizes))

    def rows(self):
        return [json.loads(line) for line in (self.folder / "out" / "matches.jsonl").read_text().splitlines()]


def settings_with(*overrides):
    return read_config("cpu", overrides)


@pytest.fixture(scope="module")
def cpu_settings():
    return settings_with()


@pytest.fixture(scope="module")
def runner():
    with LocalRunner() as started:
        yield started


@pytest.fixture
def world(tmp_path, cpu_settings, runner, monkeypatch):
    """Models and judge are local to the test; the judge's programs run in the real sandbox."""
    made = World(folder=tmp_path, settings=cpu_settings)

    @contextmanager
    def start(settings, *, seed):
        judge = Judge(runner, seed=seed)

        async def judge_one(request):
            made.num_judged += 1
            if request.candidate in made.outages:
                raise SandboxUnavailableError("no room")
            return judge.judge(request)

        yield SimpleNamespace(judge=judge_one)

    monkeypatch.setattr(matches, "LocalAsyncJudge", SimpleNamespace(start=start))
    return made


def counts(array):
    """``[i][j]`` sums over questions."""
    return array.sum(axis=2).astype(int).tolist()


# ------------------------------ what a match is ------------------------------


def judged(make_verdict, suite, **changes):
    response = Response(prompt_ids=(), token_ids=(), log_probs=(), text="", policy_version=0)
    verdict = make_verdict(suite, loaded=changes.pop("loaded", True))
    return CandidateResult(**({"response": response, "source": "def f(): ...", "verdict": verdict} | changes))


@pytest.mark.parametrize(
    ("suite", "changes", "expected"),
    [
        ({"num_valid": 3}, {}, Result.HELD),
        ({"num_valid": 3, "num_failed": 1}, {}, Result.DETECTED),
        ({"num_valid": 3, "num_failed": 3, "num_expected_incorrect": 2}, {}, Result.DETECTED),
        ({"num_valid": 3, "num_failed": 3, "num_expected_incorrect": 3}, {}, Result.BROKE),
        ({"num_valid": 3, "num_expected_incorrect": 3}, {}, Result.HELD),
        ({"num_rejected": 2}, {}, Result.NO_VALID_CASE),
        ({"num_valid": 1, "num_failed": 1, "outcome": CaseOutcome.NOT_LOADED}, {"loaded": False}, Result.NOT_LOADED),
        ({}, {"source": None}, Result.NO_PROGRAM),
        ({}, {"is_too_long_to_test": True}, Result.TEST_PROMPT_TOO_LONG),
        ({}, {"outage": "down", "verdict": None}, Result.OUTAGE),
        ({}, {"outage": "down", "source": None}, Result.OUTAGE),
    ],
)
def test_what_comes_of_a_match(make_suite, make_verdict, suite, changes, expected):
    assert match_result(judged(make_verdict, make_suite(**suite), **changes), 0)[0] is expected


def test_a_match_counts_its_cases(make_suite, make_verdict):
    suite = make_suite(4, num_failed=3, num_expected_incorrect=2, num_rejected=5)
    result, numbers = match_result(judged(make_verdict, suite), 0)
    assert (result, numbers) == (Result.DETECTED, {"valid": 4, "failed": 3, "detected": 2, "rejected": 5})


# ------------------------------ the matrix ------------------------------


def test_every_code_step_meets_every_test_step(world):
    found = play(world.cross(), win="broke")
    # Two programs on each of two questions; only f(3) of step 20 tells x + 1 from 2 * x.
    assert counts(found.played) == [[4, 4], [4, 4]]
    assert counts(found.wins) == [[4, 2], [4, 4]]
    assert found.wins[0, 1].tolist() == [2, 0]
    assert found.outages == []


def test_a_claim_that_is_wrong_breaks_but_does_not_catch(world):
    # f(3) == 4 is what the buggy program answers: the reference says 6.
    play(world.cross(), win="broke")
    found = play(world.cross(), win="detected")
    assert found.results[0][1] == {Result.HELD: 2, Result.BROKE: 2}
    assert counts(found.wins) == [[4, 4], [4, 4]]


def test_one_engine_is_open_at_a_time_and_each_is_opened_once(world):
    play(world.cross(), win="broke")
    assert world.opened == [("code", "0"), ("code", "20"), ("test", "0"), ("test", "20")]
    assert world.num_open == 0


def test_suites_are_written_for_the_very_program(world):
    play(world.cross(), win="broke")
    assert len(world.test_prompts) == 2 * 2 * 2 * 2
    assert sum("x + 1" in prompt for prompt in world.test_prompts) == 12
    assert sum("2 * x" in prompt for prompt in world.test_prompts) == 4


def test_programs_that_do_not_load_and_responses_without_one_are_left_out(world):
    world.programs["code", "0"] = {"plus": "def f(x): return x + 1\nraise ValueError", "double": "def f(x"}
    found = play(world.cross(), win="broke")
    assert counts(found.played) == [[0, 0], [4, 4]]
    assert counts(found.wins) == [[0, 0], [4, 4]]
    assert found.results[0][0] == {Result.NOT_LOADED: 2, Result.NO_PROGRAM: 2}


def test_more_suites_are_more_matches(world):
    found = play(world.cross(candidates=1, suites=3), win="broke")
    assert counts(found.played) == [[6, 6], [6, 6]]


def test_identical_programs_are_matches_of_their_own_whatever_training_shared_or_pooled(world):
    changes = {
        "episode": world.settings.episode.model_copy(update={"share_suites": True}),
        "rewards": world.settings.rewards.model_copy(update={"code_tests": "pooled"}),
    }
    world.settings = world.settings.model_copy(update=changes)
    assert counts(play(world.cross(), win="broke").played) == [[4, 4], [4, 4]]
    assert (len(world.test_prompts), world.num_judged) == (16, 16)


def test_steps_that_meet_themselves_draw_as_the_runs_validation_did(world):
    counts = {"num_candidates": 2, "num_suites": 2, "greedy": False}
    validation = world.settings.validation.model_copy(update=counts)
    settings = world.settings.model_copy(update={"validation": validation})
    world.settings = settings
    play(world.cross(suites=2), win="broke")
    cross_seeds, world.seeds = world.seeds, {}

    async def nothing(request):
        raise SandboxUnavailableError("not needed")

    tasks = tasks_of(QUESTIONS, settings=settings, book=MistakeBook(), step=20, started_at=time.time(), validate=True)
    own = EpisodeRunner(
        code=Model(world, "code", "20"),
        test=Model(world, "test", "20"),
        judge=SimpleNamespace(judge=nothing),
        episode=settings.episode,
        rewards=settings.rewards,
        prompts=settings.prompts,
        judge_timeout_seconds=5,
    )
    for task in tasks:
        asyncio.run(own.run(task))
    assert cross_seeds["code", "20"] == world.seeds["code", "20"]
    assert world.seeds["test", "20"] < cross_seeds["test", "20"]


def test_in_a_run_with_one_model_it_plays_both_roles(world):
    world.settings = settings_with("arm=self_play")
    found = play(world.cross(), win="broke")
    assert world.opened == [("code", "0"), ("code", "20"), ("code", "0"), ("code", "20")]
    # It always asks f(3), without a look at the program.
    assert counts(found.wins) == [[2, 2], [4, 4]]
    assert not any("return" in prompt for prompt in world.test_prompts)


def test_a_run_without_a_test_llm_is_refused(world):
    world.settings = settings_with("arm=golden")
    with pytest.raises(SettingsError, match=r"has no Test LLM.*code_tests=golden.*arm=code_a1"):
        world.cross()


def test_a_run_without_held_out_questions_is_refused(world):
    with pytest.raises(SettingsError, match="no held-out questions"):
        world.cross(questions=[])


# ------------------------------ stops and repeats ------------------------------


def test_a_repeated_command_asks_no_model_and_no_judge(world):
    first = play(world.cross(), win="broke")
    opened, judged_before = list(world.opened), world.num_judged
    second = play(world.cross(), win="broke")
    assert (world.opened, world.num_judged) == (opened, judged_before)
    assert counts(second.wins) == counts(first.wins)


@pytest.mark.parametrize("samples", [3, 11])
def test_what_was_done_before_a_stop_is_kept(world, samples):
    world.samples_left = samples
    with pytest.raises(OutageError, match="has died"):
        play(world.cross(), win="broke")
    assert world.num_open == 0
    stored = len((world.folder / "out" / "responses.jsonl").read_text().splitlines())
    world.samples_left = 24 - stored  # 8 programs and 16 suites in all
    assert counts(play(world.cross(), win="broke").wins) == [[4, 2], [4, 4]]
    assert world.samples_left == 0


def test_more_steps_candidates_and_suites_add_to_what_is_there(world):
    play(world.cross(steps=["20"], candidates=1), win="broke")
    before = world.rows()
    found = play(world.cross(candidates=2, suites=2), win="broke")
    assert counts(found.played) == [[8, 8], [8, 8]]
    assert world.rows()[: len(before)] == before
    assert len({row["key"] for row in world.rows()}) == len(world.rows()) == 32
    fewer = play(world.cross(questions=QUESTIONS[:1], candidates=1), win="broke")
    assert counts(fewer.played) == [[1, 1], [1, 1]]


def test_an_outage_is_left_out_and_judged_again_by_the_next_command(world):
    world.outages = {DOUBLE}
    found = play(world.cross(), win="broke")
    assert counts(found.played) == [[4, 4], [2, 2]]
    assert found.results[1][1] == {Result.HELD: 2, Result.OUTAGE: 2}
    assert found.outages == ["SandboxUnavailableError: no room"]
    world.outages, world.opened = set(), []
    again = play(world.cross(), win="broke")
    assert counts(again.played) == [[4, 4], [4, 4]]
    assert (again.outages, world.opened) == ([], [])


def test_matches_of_other_settings_are_refused_by_name(world):
    play(world.cross(), win="broke")
    data = world.settings.data.model_copy(update={"seed": world.settings.seed + 1})
    world.settings = world.settings.model_copy(update={"data": data})
    with pytest.raises(OutputError, match="rows of other settings: seed was"):
        play(world.cross(), win="broke")


def test_judge_only_starts_no_model(world):
    with pytest.raises(InputError, match="leave --judge-only out"):
        play(world.cross(judge_only=True), win="broke")
    assert world.opened == []


# ------------------------------ what is shown ------------------------------


def findings_of(world, **changes):
    return Findings.of(play(world.cross(**changes), win="broke"), steps=["0", "20"], win="broke")


def test_the_tables_show_win_rates_and_what_was_left_out(world):
    world.programs["code", "20"]["plus"] = "no program"
    findings = findings_of(world)
    table = win_table(findings)
    assert table.columns == ("Code LLM", "Test LLM step 0", "Test LLM step 20", "left out")
    assert table.rows == (
        ("step 0", "100.0 [100.0, 100.0]", "50.0 [0.0, 100.0]", "0.0%"),
        ("step 20", "100.0 [100.0, 100.0]", "100.0 [100.0, 100.0]", "50.0%"),
    )
    assert "(0 of 12 matches)" in table.note
    first, second, third, fourth = rating_table(findings).rows
    assert first == ("Code LLM step 0", "1000", "")
    assert second[2].startswith("+")
    assert third[::2] == ("Test LLM step 0", "")
    assert fourth[0] == "Test LLM step 20"


def test_changes_are_those_of_each_policy_against_the_other(world):
    world.programs["code", "20"]["plus"] = "no program"
    found = findings_of(world).changes
    differences = {role: {one.opponent: one.difference.value for one in found[role]} for role in found}
    # Code LLM: 4 of 4 and 2 of 4, then 2 of 2 and 2 of 2; Test LLM: none of 4 and none of 2, then 2 of 4 and none of 2.
    assert differences == {"code": {0: 0.0, 1: 0.5}, "test": {0: 0.5, 1: 0.0}}


def test_a_step_that_forgot_is_named(world):
    world.programs["code", "0"], world.programs["code", "20"] = (
        world.programs["code", "20"],
        {"plus": "def f(x): return 7", "double": "def f(x): return 7"},
    )
    lines = signs(findings_of(world))
    assert lines[0] == (
        "Code LLM: does step 20 do at least as well as every earlier step, against every earlier Test LLM? no: in 0 of "
        "1 comparisons; significantly worse in 1"
    )
    assert "    step 0 -> 20 against Test LLM step 20: -100.0 [-100.0, -100.0] points" in lines
    assert lines[1].startswith("  forgetting: 2 of 2 comparisons")
    assert "  cycling: 0 such drops are followed by a significant rise" in lines


def test_cells_without_a_match_are_drawn_and_written(world):
    world.programs["code", "0"] = dict.fromkeys(("plus", "double"), "no program")
    findings = findings_of(world)
    assert win_table(findings).rows[0][1:] == ("–", "–", "100.0%")
    assert rating_table(findings).rows[0][1] == "–"
    figure = draw_crossplay(findings.steps, findings.rates, findings.ratings)
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert shown == ["–", "–", "100%\n100 to 100", "100%\n100 to 100"]


def test_points_show_no_negative_zero():
    points = report._points
    assert points(Estimate(value=107.0, low=-0.4, high=253.0, num_values=5), signed=True) == "+107 [+0, +253]"
    assert points(Estimate(value=-0.3, low=-12.0, high=0.2, num_values=5)) == "0 [-12, 0]"
    assert points(Estimate(value=-0.3, low=-0.3, high=-0.3, num_values=5)) == "0"
    assert points(Estimate(value=-10.0, low=-10.0, high=-10.0, num_values=5), signed=True) == "-10"


# ------------------------------ the command ------------------------------


@pytest.fixture
def command(world, monkeypatch):
    """``command(*words)`` -> exit status, on the scripted run."""
    for step in (20,):
        (world.records.folder / "checkpoints" / f"global_step_{step}").mkdir(parents=True)
    monkeypatch.setattr(recorded_pair.RecordedPair, "open", lambda folder: world)
    output = world.folder / "out"
    size = ("--candidates", "2")
    return lambda *words: command_line.main([str(world.records.folder), "--output", str(output), *size, *words])


def test_the_command_writes_all_files(command, world, capsys):
    assert command() == 0
    shown = capsys.readouterr().out
    assert "| step 0   | 100.0 [100.0, 100.0] | 50.0 [0.0, 100.0]" in shown
    assert "forgetting: 0 of 2" in shown
    names = {path.name for path in (world.folder / "out").iterdir()}
    assert {"crossplay.png", "crossplay.json", "table.md", "table.csv", "table.html", "ratings.md"} <= names
    written = json.loads((world.folder / "out" / "crossplay.json").read_text())
    assert [(cell["wins"], cell["matches"]) for cell in written["cells"]] == [(4, 4), (2, 4), (4, 4), (4, 4)]
    assert written["cells"][1]["results"] == {"broke": 2, "held": 2}
    assert written["ratings"]["code"][0]["rating"] == {"value": 1000.0, "low": 1000.0, "high": 1000.0}
    assert len(written["changes"]) == 4


def test_the_command_ends_with_1_where_outages_are_left(command, world, capsys):
    world.outages = {DOUBLE}
    assert command() == 1
    assert "outages are left, the first one: SandboxUnavailableError: no room" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--steps", "0", "--steps", "30"], "has no checkpoint of step 30; it has 0, 20"),
        (["--steps", "best"], "has no checkpoint of step best; it has 0, 20"),
    ],
)
def test_the_command_refuses_steps_that_were_not_saved(command, capsys, words, message):
    assert command(*words) == 2
    assert message in capsys.readouterr().err


def test_the_command_refuses_a_folder_that_holds_no_run(tmp_path, capsys):
    assert command_line.main([str(tmp_path), "--output", str(tmp_path / "out")]) == 2
    assert "holds no run" in capsys.readouterr().err


def test_the_command_says_how_to_go_on(command, world, capsys):
    world.samples_left = 5
    assert command() == 1
    assert re.search(r"error: the vLLM engine has died\n.*repeat the command to resume", capsys.readouterr().err)
    world.samples_left = -1
    assert command("--steps", "20", "--steps", "0", "--steps", "20") == 0


def test_an_interrupted_command_says_how_to_go_on(command, monkeypatch, capsys):
    def interrupted(cross, *, win):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "play", interrupted)
    assert command() == 130
    assert "repeat the command to resume" in capsys.readouterr().err


def test_judge_only_without_responses_is_refused(command, capsys):
    assert command("--judge-only") == 2
    assert "leave --judge-only out" in capsys.readouterr().err


def test_help_tells_what_it_is_for(capsys):
    assert command_line.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "Let all saved steps of a run's Code LLM meet all saved steps of its Test LLM" in shown
    assert "--win" in shown
