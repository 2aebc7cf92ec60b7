"""The step of the trainer on stand-ins for servers, workers and updates: what happens, in which order, to whom."""

import math
import re
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from ray.exceptions import ActorDiedError
from verl.trainer.ppo.v1.trainer_base import PPOTrainer

from code_a1_recipe.algorithm.mistake_book import BookUpdate, FailedCase, MistakeBook
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import OutageError
from code_a1_recipe.extensions import extensions_of
from code_a1_recipe.runs import metrics as runs_metrics
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.runs.metrics import check_served_weights
from code_a1_recipe.training import step as step_module, trainer as trainer_module
from code_a1_recipe.training.checkpoint.keeper import TrainState
from code_a1_recipe.training.episode_worker import EpisodeReport
from code_a1_recipe.training.lifecycle.signals import SignalHandler
from code_a1_recipe.verl_plugin.trajectories import StoredRows
from reward_fns import JudgedCandidate, QuestionVerdicts, find_reward, reward_code

README = Path(trainer_module.__file__).parents[1] / "algorithm" / "README.md"
QUESTIONS = [Question(id=f"q{number}", prompt="p", reference="def f(x): return x") for number in range(2)]


class Policy:
    def __init__(self, name, log):
        self.name, self.log = name, log

    def sleep(self):
        self.log.append(f"{self.name} sleeps")

    def update(self, rows, *, step, epoch):
        self.log.append(f"{self.name} updates on {' '.join(rows.keys)} at step {step} of epoch {epoch}")
        return {"actor/loss": 0.5}

    def leave_out(self, rows, *, step):
        self.discard(rows)
        return {}

    def discard(self, rows):
        self.log.append(f"{self.name} discards {' '.join(rows.keys)}")

    def sync_weights(self, step):
        self.log.append(f"{self.name} wakes with the weights of step {step}")


class Episodes:
    """Ends the episodes in reverse order."""

    def __init__(self, log, *, rows=True):
        self.log, self.rows, self.tasks = log, rows, []

    def run(self, tasks, *, validate, while_waiting):
        tasks = list(tasks)
        self.tasks += tasks
        self.log.append("episodes")
        for task in reversed(tasks):
            yield report(task, rows=self.rows)


class Book(MistakeBook):
    log: list

    def update(self, *arguments, **changes):
        self.log.append("Mistake Book")
        return super().update(*arguments, **changes)


def report(task, *, rows):
    name = task.question.id
    failed = FailedCase(id="f(1)", call="f(1)", answer="1")
    return EpisodeReport(
        index=task.index,
        question_id=name,
        grpo_rows={
            policy: StoredRows(keys=(f"{policy}-{name}",), tags=({},)) if rows else StoredRows()
            for policy in ("code", "test")
        },
        book_update=BookUpdate(failed=(failed, failed)),
        found={"focus": 2},
        has_spread=name != "q1",
        accumulator={"code/reward": (0.5, 1)},
        busy={"generate": (), "judge": ()},
        records=b"",
        outage="",
    )


def lines_with(log, word):
    return [line for line in log if word in line]


def replace_method(monkeypatch, owner, name, error):
    """Let a method raise ``error``."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(owner, name, fail)


@pytest.fixture
def make_trainer(tmp_path, monkeypatch):
    monkeypatch.setattr(step_module, "step_marker", lambda step: f"marker {step}")
    monkeypatch.setattr(trainer_module.random_states, "capture", lambda: "states")

    def make(*overrides, step=3, rows=True):
        config = read_config("cpu", [f"run_dir={tmp_path}", *overrides])
        log = []
        trainer = object.__new__(trainer_module.CodeA1Trainer)
        trainer.config, trainer.settings = config.for_verl(), config
        trainer.run_folder, trainer.book = RunFolder(tmp_path), Book()
        trainer.book.log = log
        trainer.extensions = extensions_of(config)
        trainer.policies = {name: Policy(name, log) for name in trainer.settings.policy_names}
        trainer.episodes = Episodes(log, rows=rows)
        trainer.finished = TrainState(step=step - 1, data=None)
        trainer.signals = SignalHandler(leave_within_seconds=math.inf, show=log.append)
        trainer.train_dataloader_it = iter([{"question": QUESTIONS}])
        trainer.train_dataloader = SimpleNamespace(state_dict=lambda: "order")
        trainer.train_dataset = SimpleNamespace(questions=QUESTIONS)
        trainer.global_steps, trainer.steps_per_epoch = step, 2
        trainer.curr_step_profile = False
        trainer.timing_raw = {}
        monkeypatch.setattr(trainer.run_folder, "show", log.append)
        return trainer, log

    return make


def test_a_step_is_the_papers_rules_in_their_order(make_trainer):
    trainer, log = make_trainer()
    metrics, timing = {}, {}
    assert trainer.step(metrics, timing) == "marker 3"
    assert log == [
        "episodes",
        "code sleeps",
        "test sleeps",
        "Mistake Book",
        "Mistake Book",
        "code updates on code-q0 code-q1 at step 3 of epoch 1",
        "test updates on test-q0 test-q1 at step 3 of epoch 1",
    ]
    assert {entry.call: entry.frequency for entry in trainer.book.entries("q1")} == {"f(1)": 2}
    assert (metrics["book/cases"], metrics["book/questions"], metrics["book/added"]) == (2, 2, 2)
    assert (metrics["code/reward"], metrics["test/actor/loss"]) == (0.5, 0.5)
    assert set(timing) == {"episodes", "update_code", "update_test"}
    finished = trainer.finished
    assert (finished.step, finished.data, finished.random_states) == (3, "order", "states")
    assert finished.row["training/epoch"] == 1


@pytest.mark.parametrize(("rounds", "left_out"), [(0, []), (1, ["q1"]), (9, ["q1"])])
def test_questions_without_spread_give_way_to_others(make_trainer, rounds, left_out):
    trainer, log = make_trainer(f"episode.max_refills={rounds}")
    other = Question(id="spread", prompt="p", reference="def f(x): return x")
    trainer.train_dataset.questions = [*QUESTIONS, other]
    metrics = {}
    trainer.step(metrics, {})
    kept = ["q0", "spread"] if rounds else ["q0", "q1"]
    assert metrics["episode/refilled_questions"] == len(left_out)
    assert [task.index for task in trainer.episodes.tasks] == list(range(2 + len(left_out)))
    for name in ("code", "test"):
        assert lines_with(log, f"{name} discards") == [f"{name} discards {name}-{question}" for question in left_out]
        assert f"{name} updates on {name}-{kept[0]} {name}-{kept[1]} at step 3 of epoch 1" in log
    assert log.count("Mistake Book") == len(trainer.episodes.tasks)  # what was seen of q1 is kept


def test_servers_wake_in_turn_after_a_step(make_trainer):
    trainer, log = make_trainer()
    trainer.on_step_end()
    assert log == [f"{name} wakes with the weights of step 3" for name in ("code", "test")]


def test_policies_with_cards_of_their_own_update_at_the_same_time(make_trainer, monkeypatch):
    pools = [f"pools.{name}.n_gpus_per_node=1" for name in ("code", "test")]
    trainer, _ = make_trainer("layout=separate", *pools)
    together = threading.Barrier(2)
    for policy in trainer.policies.values():
        monkeypatch.setattr(policy, "update", lambda rows, **at: {"actor/met": together.wait(10)})
    metrics = {}
    trainer.step(metrics, {})
    assert sorted(metrics[f"{name}/actor/met"] for name in ("code", "test")) == [0, 1]


@pytest.mark.parametrize("error", [OutageError("did not answer"), ActorDiedError(), ValueError("of an engine")])
def test_a_server_that_is_lost_while_weights_come_lets_the_step_be_saved(make_trainer, monkeypatch, error):
    trainer, log = make_trainer()
    monkeypatch.setattr(trainer, "_save_and_tell", lambda: "step 2 is saved")
    replace_method(monkeypatch, trainer.policies["code"], "sync_weights", error)
    with pytest.raises(type(error)):
        trainer.on_step_end()
    assert log == ["step 2 is saved"]  # and the other policy's servers were left asleep


def test_why_the_finished_step_cannot_be_saved_is_said_beside_what_ended_the_run(make_trainer, monkeypatch):
    trainer, log = make_trainer()
    replace_method(monkeypatch, trainer, "_save_and_tell", ActorDiedError())
    replace_method(monkeypatch, trainer.episodes, "run", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        trainer.step({}, {})
    assert lines_with(log, "not saved: a process of the run was lost")


def test_a_loop_of_verls_that_prepares_steps_ahead_submits_no_second_batch(make_trainer, monkeypatch):
    def fit(self, agent_loop_manager):
        """As a loop that overlaps steps might: the next batch is asked for before the step ends."""
        self.prepare_step()
        for _ in range(2):
            assert self.step({}, {}) == f"marker {self.global_steps}"
            prepared.append(self.prepare_step())
            self.global_steps += 1

    def prepare_step(self):
        self.submitted.append(next(self.train_dataloader_it))
        return {"prepared": 1.0}

    prepared = []
    monkeypatch.setattr(PPOTrainer, "fit", fit)
    monkeypatch.setattr(PPOTrainer, "prepare_step", prepare_step, raising=False)
    trainer, log = make_trainer()
    trainer.submitted = []
    trainer.train_dataloader_it = iter([{"question": QUESTIONS[:1]}, {"question": QUESTIONS[1:]}, "a third batch"])
    trainer.fit(None)
    assert (trainer.submitted, prepared) == ([], [{}, {}])
    assert lines_with(log, "code updates") == [
        "code updates on code-q0 at step 3 of epoch 1",
        "code updates on code-q1 at step 4 of epoch 1",
    ]
    assert next(trainer.train_dataloader_it) == "a third batch"  # nothing was drawn ahead


def test_what_the_book_holds_is_replayed_in_the_next_step(make_trainer):
    trainer, _ = make_trainer()
    trainer.step({}, {})
    assert [task.history for task in trainer.episodes.tasks] == [(), ()]
    trainer.global_steps, trainer.train_dataloader_it = 4, iter([{"question": QUESTIONS}])
    trainer.step({}, {})
    assert [task.history for task in trainer.episodes.tasks[2:]] == [("f(1)",), ("f(1)",)]


@pytest.mark.parametrize(
    ("overrides", "step", "updated"),
    [
        ([], 1, ["code", "test"]),
        (["schedule.test_every=2"], 1, ["code"]),
        (["schedule.test_every=2"], 2, ["code", "test"]),
        (["schedule.test_every=0"], 2, ["code"]),
    ],
)
def test_the_updates_alternate_as_the_schedule_says_and_other_rows_are_dropped(make_trainer, overrides, step, updated):
    trainer, log = make_trainer(*overrides, step=step)
    trainer.step({}, {})
    assert [line.split()[0] for line in lines_with(log, "updates")] == updated
    dropped = [f"{name} discards {name}-q0 {name}-q1" for name in ("code", "test") if name not in updated]
    assert lines_with(log, "discards") == dropped


def test_after_an_error_of_one_update_the_other_does_not_begin(make_trainer, monkeypatch):
    trainer, log = make_trainer()
    replace_method(monkeypatch, trainer.policies["code"], "update", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        trainer.step({}, {})
    assert not any(thread.name.startswith("judge-loop") for thread in threading.enumerate())  # it would never end
    assert not lines_with(log, "test updates")


def test_a_difference_that_is_no_number_stops_the_run_too():
    with pytest.raises(OutageError):
        check_served_weights({"code/rollout_log_probs_diff_worst": math.nan}, limit=0.1, step=1)


def test_servers_with_other_weights_that_the_mean_difference_hides_are_reported(monkeypatch):
    told = []  # not by `caplog`, for some imports of verl change what the root logger hears
    monkeypatch.setattr(runs_metrics.logger, "warning", lambda text, *values: told.append(text % values))
    for step, correlation in enumerate((0.99, math.nan, 0.028)):
        metrics = {"code/rollout_log_probs_diff_worst": 3e-4, "code/rollout_actor_probs_pearson_corr": correlation}
        check_served_weights(metrics, limit=0.1, step=step)
    (warning,) = told
    assert warning.startswith("step 2: code/rollout_actor_probs_pearson_corr is 0.028 (1 with equal weights)")


def test_servers_end_their_profile_with_the_episodes(make_trainer):
    trainer, log = make_trainer()
    trainer.curr_step_profile = True
    for name, policy in trainer.policies.items():
        policy.llm_server_manager = SimpleNamespace(stop_profile=lambda name=name: log.append(f"{name} profiled"))
    trainer.step({}, {})
    assert log[:5] == ["episodes", "code profiled", "test profiled", "code sleeps", "test sleeps"]


def test_without_rows_nobody_updates(make_trainer):
    trainer, log = make_trainer(rows=False)
    trainer.step({}, {})
    assert not lines_with(log, "updates")


def test_without_the_mistake_book_nothing_is_remembered(make_trainer):
    trainer, log = make_trainer("mistake_book.enabled=false")
    metrics = {}
    trainer.step(metrics, {})
    assert "Mistake Book" not in log
    assert (metrics["book/cases"], metrics["book/added"]) == (0, 0)


def test_the_questions_begin_again_when_an_epoch_is_over(make_trainer):
    trainer, _ = make_trainer()
    trainer.train_dataloader_it = iter([])
    trainer.train_dataloader = [{"question": QUESTIONS}]
    assert trainer._next_questions() == QUESTIONS


def test_a_run_goes_on_after_the_step_of_its_checkpoint(make_trainer, monkeypatch):
    trainer, _ = make_trainer()
    resumed = TrainState(step=2, data="order", extensions={"hindsight": [], "gone": 1}), MistakeBook()
    keeper = SimpleNamespace(resume=lambda **_: resumed, continue_records=lambda *_, **__: False)
    monkeypatch.setattr(trainer_module, "CheckpointKeeper", lambda *_, **__: keeper)
    monkeypatch.setattr(trainer_module, "run_identity", lambda *_: {})
    trainer.total_training_steps = 4
    trainer._load_checkpoint()
    assert (trainer.global_steps, trainer.finished) == (2, resumed[0])


def code_of_the_readme(name):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (source,) = [block for block in blocks if f"class {name}" in block or f"def {name}" in block]
    return source


def test_the_replay_rule_of_the_readme_replays_the_newest_cases(make_trainer, tmp_path):
    (tmp_path / "newest.py").write_text(code_of_the_readme("Newest"))
    trainer, _ = make_trainer(f"extensions=[{{path: {tmp_path}/newest.py, name: Newest, kwargs: {{limit: 1}}}}]")
    for number in (2, 1):
        call = f"f({number})"
        trainer.book.update("q0", BookUpdate(failed=[FailedCase(id=call, call=call, answer="1")] * number))
    trainer.step({}, {})
    assert [task.history for task in trainer.episodes.tasks] == [("f(1)",), ()]


def test_the_reward_of_the_readme_pays_for_short_responses(tmp_path, make_suite, make_verdict):
    (tmp_path / "short.py").write_text(code_of_the_readme("short"))
    short = find_reward("code", "short", path=str(tmp_path / "short.py"), kwargs={"bonus": 0.2})
    verdict = make_verdict(make_suite(2, num_failed=1))
    judged = [JudgedCandidate(source="", verdict=verdict, response_tokens=tokens) for tokens in (0, 100)]
    lost = JudgedCandidate(source="", verdict=None)
    rewards = reward_code(short, QuestionVerdicts(question_id="q", num_cases=2, candidates=(*judged, lost)))
    assert [reward and reward.total for reward in rewards] == [pytest.approx(0.7), pytest.approx(0.6), None]


def test_the_extension_of_the_readme_changes_tasks_learns_from_steps_and_keeps_its_state(make_trainer, tmp_path):
    (tmp_path / "focus.py").write_text(code_of_the_readme("Focus"))
    own = f"extensions=[{{path: {tmp_path}/focus.py, name: Focus, kwargs: {{share: 0.5}}}}]"
    trainer, _ = make_trainer(own)
    failed = [FailedCase(id=f"f({number})", call=f"f({number})", answer="1") for number in range(4)]
    trainer.book.update("q0", BookUpdate(failed=failed))
    metrics = {}
    trainer.step(metrics, {})
    assert [task.history for task in trainer.episodes.tasks] == [("f(0)", "f(1)"), ()]
    assert (metrics["focus/programs"], trainer.finished.extensions) == (4, {"focus": 4})
    trainer.extensions[0].after_step([3])
    assert trainer.finished.extensions == {"focus": 4}  # of the finished step
