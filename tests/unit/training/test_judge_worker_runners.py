"""``sandbox.runner`` and the keys that go with it: what is refused before anything starts, what a judge is given."""

from types import SimpleNamespace

import pytest

from code_a1_recipe.algorithm.settings import SandboxSettings
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import SettingsError
from code_a1_recipe.training import judge_worker
from code_a1_recipe.training.judge_worker import JudgePool, JudgeWorker
from code_a1_recipe.training.preflight import START_RULES
from code_a1_recipe.training.runners import cpus_per_judge, make_runner, service_answers
from sandbox import CallResult, CallStatus, JudgeRequest, Limits, ProgramResult

SETTINGS = SandboxSettings(num_workers=1, programs_per_worker=3, judge_timeout_seconds=60.0, max_outage_rate=0.5)


def composed(*keys):
    return read_config("cpu", ["run_dir=outputs/x", *(f"sandbox.{key}" for key in keys)]).sandbox


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["runner=docker"], "sandbox.runner must be one of fusion, local, got 'docker'"),
        (["runner=5"], "sandbox.runner must be a text, got 5"),
        (["runner=fusion"], "sandbox.url must be the address of the service with sandbox.runner=fusion, got None"),
        (["url=http://h"], "sandbox.url must be null with sandbox.runner=local, got 'http://h'"),
        (["url=http://h"], "it belongs to sandbox.runner=fusion"),
        (["url=8080"], "sandbox.url must be a text or null, got 8080"),
        (["tier=2"], "sandbox.tier must be at most 1, got 2"),
        (["tier=-1"], "sandbox.tier must be at least 0, got -1"),
        (["tier=high"], "sandbox.tier must be an integer, got 'high'"),
        (["allow_missing=[selinux]"], "sandbox.allow_missing must be one of landlock, seccomp, got 'selinux'"),
        (["allow_missing=landlock"], "sandbox.allow_missing must be a list, got 'landlock'"),
        (["runner=fusion", "url=http://h", "tier=1"], "sandbox.tier must be left out with sandbox.runner=fusion"),
        (
            ["runner=fusion", "url=http://h", "allow_missing=[seccomp]"],
            "sandbox.allow_missing must be left out with sandbox.runner=fusion",
        ),
    ],
)
def test_keys_that_cannot_work_together_are_refused(keys, words):
    with pytest.raises(SettingsError) as caught:
        composed(*keys)
    assert words in str(caught.value)


def test_judges_with_their_own_local_pools_are_the_default():
    settings = composed()
    assert (settings.runner, settings.url, settings.tier, settings.allow_missing) == ("local", None, 0, ())
    assert cpus_per_judge(SETTINGS) == 3


def test_every_runner_can_be_chosen():
    assert composed("tier=1").runner == "local"
    assert composed("runner=fusion", "url=http://host:8080").url == "http://host:8080"
    assert composed("allow_missing=[landlock]").allow_missing == ("landlock",)


@pytest.mark.parametrize(
    ("url", "words"), [("http://127.0.0.1:9", "ConnectionRefusedError"), ("somewhere", "url must be http")]
)
def test_a_service_that_does_not_answer_is_refused_with_the_cure(url, words):
    settings = SETTINGS.model_copy(update={"runner": "fusion", "url": url})
    (problem,) = service_answers(SimpleNamespace(sandbox=settings))
    assert f"sandbox.url={url!r} cannot judge" in problem
    assert words in problem
    assert "start the service, correct the address, or use sandbox.runner=local" in problem


def test_a_service_that_does_not_answer_is_refused_before_anything_starts(tmp_path):
    keys = [f"run_dir={tmp_path / 'run'}", "micro=null", "sandbox.runner=fusion", "sandbox.url=http://127.0.0.1:9"]
    with pytest.raises(SettingsError, match=r"sandbox.url='http://127.0.0.1:9' cannot judge"):
        read_config("cpu", keys, rules=START_RULES)
    assert not (tmp_path / "run").exists()


def test_no_service_is_asked_where_none_is_used():
    assert list(service_answers(SimpleNamespace(sandbox=SETTINGS))) == []


class RecordingRunner:
    limits = Limits()
    closed = False

    def run(self, program, *, role):
        answers = tuple(CallResult(status=CallStatus.VALUE, value=b"i2;") for _ in program.calls)
        return ProgramResult(loaded=True, load_error="", results=answers, cpu_seconds=0.0, wall_seconds=0.0)

    def close(self):
        self.closed = True


def test_a_judge_runs_its_programs_where_the_settings_say(monkeypatch):
    made = RecordingRunner()
    monkeypatch.setattr("code_a1_recipe.training.runners.SandboxFusionRunner", lambda url, **options: made)
    judge = JudgeWorker(SETTINGS.model_copy(update={"runner": "fusion"}), seed=1)
    program = "def f(x): return 2"
    suites = (("assert f(1) == 2",),)
    verdict = judge.judge(JudgeRequest(question_id="q", reference=program, candidate=program, suites=suites))
    assert verdict.suites[0].cases[0].outcome.value == "passed"
    judge.close()
    assert made.closed


def test_every_judge_is_ended_whatever_another_one_answers(monkeypatch):
    ended = []

    def get(answer, **_):
        raise RuntimeError(answer)

    ray = SimpleNamespace(get=get, wait=lambda answers, **_: (answers, []), kill=ended.append)
    monkeypatch.setattr(judge_worker, "ray", ray)
    judges = [SimpleNamespace(close=SimpleNamespace(remote=lambda: "lost")) for _ in range(3)]
    JudgePool(judges).close()
    assert ended == judges


def test_local_pools_get_the_tier_and_the_protections_that_may_be_missing(monkeypatch):
    given = {}
    monkeypatch.setattr("code_a1_recipe.training.runners.LocalRunner", lambda **options: given.update(options))
    make_runner(SETTINGS)
    assert given == {"num_workers": 3, "limits": SETTINGS.limits, "tier": 0, "allow_missing": ()}
    make_runner(SETTINGS.model_copy(update={"tier": 1, "allow_missing": ("landlock",)}))
    assert (given["tier"], given["allow_missing"]) == (1, ("landlock",))
