"""``sandbox.runner`` and the keys that go with it: what is refused before anything starts, what a judge is given."""

from dataclasses import replace

import pytest

from code_a1_recipe.compose import compose_config
from code_a1_recipe.judge_worker import JudgeWorker
from code_a1_recipe.preflight import check_run
from code_a1_recipe.runners import RUNNERS, check_runner, check_service, find_runner
from code_a1_recipe.settings import SandboxSettings, SettingsError
from code_a1_recipe.value_checks import check_settings
from sandbox import Answer, AnswerKind, JudgeRequest, Limits, ProgramResult

SETTINGS = SandboxSettings(num_workers=1, programs_per_worker=3, judge_timeout_seconds=60.0, max_outage_share=0.5)


def composed(*overrides):
    return check_settings(compose_config("cpu", ["run_dir=outputs/x", *overrides])).sandbox


def checked(**keys):
    """What `check_settings` does with the block ``sandbox``, without the rest of the configuration."""
    sizes = {"num_workers": 1, "programs_per_worker": 3, "judge_timeout_seconds": 60.0, "max_outage_share": 0.5}
    settings = SandboxSettings.from_mapping(sizes | keys, where="sandbox")
    check_runner(settings)
    return settings


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"runner": "docker"}, "sandbox.runner: unknown name 'docker'; known: fusion, local, ray"),
        ({"runner": 5}, "sandbox.runner must be a name, got 5"),
        ({"runner": "fusion"}, "needs the address of the service: sandbox.url=http://host:port"),
        ({"url": "http://h"}, "set sandbox.runner=fusion or leave sandbox.url out"),
        ({"runner": "ray", "url": "http://h"}, "sandbox.url belongs to sandbox.runner=fusion"),
        ({"url": 8080}, "sandbox.url must be a text or null, got 8080"),
        ({"tier": 3}, "sandbox.tier must be 0 to 2, got 3; a remote service is sandbox.runner=fusion"),
        ({"tier": -1}, "sandbox.tier must be 0 to 2, got -1"),
        ({"tier": "high"}, "sandbox.tier must be an integer, got 'high'"),
        ({"allow_missing": ["selinux"]}, "sandbox.allow_missing must be a list of names among ['landlock'"),
        ({"allow_missing": "landlock"}, "sandbox.allow_missing must be a list of names among ['landlock'"),
        ({"runner": "fusion", "url": "http://h", "tier": 1}, "sandbox.tier is about confinement on our own nodes"),
        (
            {"runner": "fusion", "url": "http://h", "allow_missing": ["seccomp"]},
            "sandbox.allow_missing is about confinement on our own nodes",
        ),
    ],
)
def test_keys_that_cannot_work_together_are_refused(keys, words):
    with pytest.raises(SettingsError) as caught:
        checked(**keys)
    assert words in str(caught.value)


def test_judges_with_their_own_local_pools_are_the_default():
    settings = composed()
    assert (settings.runner, settings.url, settings.tier, settings.allow_missing) == ("local", None, 0, ())
    assert RUNNERS["local"].cpus_per_judge(SETTINGS) == 3


def test_a_contradiction_is_found_when_the_whole_configuration_is_checked():
    with pytest.raises(SettingsError, match="needs the address of the service"):
        composed("sandbox.runner=fusion")


def test_every_runner_can_be_chosen():
    assert checked(runner="ray", tier=1).runner == "ray"
    assert checked(runner="fusion", url="http://host:8080").url == "http://host:8080"
    assert checked(allow_missing=["landlock"]).allow_missing == ("landlock",)


@pytest.mark.parametrize(
    ("url", "words"),
    [("http://127.0.0.1:9", "ConnectionRefusedError"), ("somewhere", "url must be http")],
)
def test_a_service_that_does_not_answer_is_refused_with_the_cure(url, words):
    with pytest.raises(SettingsError) as caught:
        check_service(replace(SETTINGS, runner="fusion", url=url))
    assert f"sandbox.url={url!r} cannot judge" in str(caught.value)
    assert words in str(caught.value)
    assert "start the service, correct the address, or use sandbox.runner=local" in str(caught.value)


def test_a_service_that_does_not_answer_is_refused_before_anything_starts(tmp_path):
    keys = [f"run_dir={tmp_path / 'run'}", "micro=null", "sandbox.runner=fusion", "sandbox.url=http://127.0.0.1:9"]
    with pytest.raises(SettingsError, match=r"sandbox.url='http://127.0.0.1:9' cannot judge"):
        check_run(compose_config("cpu", keys))
    assert not (tmp_path / "run").exists()


def test_no_service_is_asked_where_none_is_used():
    check_service(SETTINGS)


class RecordingRunner:
    limits = Limits()
    closed = False

    def run(self, program, *, lane):
        answers = tuple(Answer(kind=AnswerKind.VALUE, value=b"i2;") for _ in program.calls)
        return ProgramResult(loaded=True, load_error="", answers=answers, cpu_seconds=0.0, wall_seconds=0.0)

    def close(self):
        self.closed = True


def test_a_judge_runs_its_programs_where_the_settings_say(monkeypatch):
    made = RecordingRunner()
    monkeypatch.setitem(RUNNERS, "ray", replace(find_runner("ray"), make=lambda settings: made))
    judge = JudgeWorker(replace(SETTINGS, runner="ray"), seed=1)
    verdict = judge.judge(
        JudgeRequest(
            question_id="q",
            reference="def f(x): return 2",
            candidate="def f(x): return 3",
            suites=(("assert f(1) == 2",),),
        )
    )
    assert verdict.suites[0].cases[0].outcome.value == "passed"
    judge.close()
    assert made.closed


def test_local_pools_get_the_tier_and_the_protections_that_may_be_missing(monkeypatch):
    given = {}
    monkeypatch.setattr("code_a1_recipe.runners.LocalRunner", lambda **options: given.update(options))
    find_runner("local").make(SETTINGS)
    assert given == {"num_workers": 3, "limits": SETTINGS.limits}
    find_runner("local").make(replace(SETTINGS, tier=1, allow_missing=("landlock",)))
    assert (given["tier"], given["allow_missing"]) == (1, ("landlock",))
