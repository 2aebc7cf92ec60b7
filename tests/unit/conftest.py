"""Run folders as a run writes them, made by hand so that every number is known."""

import contextlib
import json
from pathlib import Path

import pytest
import yaml

from code_a1_recipe.jobs.confinement import Confinement
from code_a1_recipe.jobs.jsonl_store import JsonlStore
from code_a1_recipe.micro_world.world import draw_questions, write_rows
from code_a1_recipe.runs.reader import rollout_of
from code_a1_recipe.runs.rollout_record import VERSION, RolloutRecord, encode_records
from sandbox import Judge, LocalRunner, SandboxUnavailableError

QUESTIONS = draw_questions(seed=0, num_questions=6)


@pytest.fixture(scope="session")
def runner():
    """A sandbox of two programs at once, for the tests that neither break it nor need limits of their own."""
    with LocalRunner(num_workers=2) as shared:
        yield shared


@pytest.fixture
def judge_all(runner):
    def answer(requests):
        judge = Judge(runner)
        return [judge.judge(request) for request in requests]

    return answer


@pytest.fixture
def one_judge(monkeypatch, judge_all):
    """A command's judge processes are this one; ``outages`` of its first answers are none."""

    class OneJudge:
        outages = 0
        asked = 0

        def judge_all(self, requests):
            self.asked += 1
            if self.asked <= self.outages:
                return [SandboxUnavailableError("no room")] * len(list(requests))
            return judge_all(requests)

    judge = OneJudge()
    monkeypatch.setattr(Confinement, "judges", lambda self, num_workers: contextlib.nullcontext(judge))
    return judge


@pytest.fixture
def interrupted_after(monkeypatch):
    """``with interrupted_after(num_rows):`` a command is interrupted once it has stored so many rows."""

    @contextlib.contextmanager
    def interrupt(num_rows):
        append = JsonlStore.append

        def append_and_stop(store, row):
            found = append(store, row)
            if len(store) == num_rows:
                raise KeyboardInterrupt
            return found

        with monkeypatch.context() as patched:
            patched.setattr(JsonlStore, "append", append_and_stop)
            yield

    return interrupt


def case(outcome="passed", *, call="f(1)", answer="2", right=True):
    return {
        "call": call,
        "reference_value": answer,
        "expected": answer if right else "7",
        "expected_correct": right,
        "outcome": outcome,
        "key": call,
    }


def suite(*cases, valid=1.0, rejections=(), **changes):
    verdict = {"cases": cases, "rejections": [{"text": text, "reason": "no_call"} for text in rejections]}
    reward = {"total": valid / 2, "parts": {}, "terms": {"valid": valid}}
    return {
        "response": "", "response_tokens": 3, "prompt_tokens": 4, "cached_tokens": 0, "extraction_failure": "",
        "reward": reward, "verdict": verdict, "span": None,
    } | changes  # fmt: skip


def loaded(*history, is_loaded=True):
    return {"loaded": is_loaded, "load_error": "", "history": history, "cpu_seconds": 0.0}


def rollout(**fields):
    """A record with these fields; the others say that nothing happened."""
    nothing = dict.fromkeys(RolloutRecord.__struct_fields__) | {
        "v": VERSION, "index": 0, "step": 1, "question": "", "data_source": "", "kind": "sampled", "candidate": 0,
        "response": "", "response_tokens": 3, "prompt_tokens": 4,
        "extraction_failure": "", "is_too_long_to_test": False, "outage": "", "selected": False, "suites": (),
    }  # fmt: skip
    return rollout_of(nothing | fields, "this test")


def record(index, *, solved=True, reward=1.0, **changes):
    hidden = {"cases": [case(), case("passed" if solved else "wrong_value")], "rejections": []}
    fields = {
        "index": index,
        "question": QUESTIONS[index].id,
        "data_source": "micro",
        "source": "def f(x): pass",
        "verdict": loaded(),
        "reward": None if reward is None else {"total": reward, "parts": {}, "terms": {}},
        "hidden_tests": None if solved is None else hidden,
    }
    return rollout(**fields | changes)


def write_run(folder: Path, *, validation, training=None, metrics=None):
    """``validation`` and ``training``: records by step."""
    (folder / "rollouts").mkdir(parents=True)
    data = folder / "questions.jsonl"
    write_rows(QUESTIONS, data)
    config = {
        "data": {"train_files": str(data), "val_files": str(data), "adapter": "auto", "columns": {}},
        "trainer": {},
        "sandbox": {"num_workers": 1, "programs_per_worker": 1, "judge_timeout_seconds": 60.0, "max_outage_rate": 0.5},
    }
    (folder / "resolved_config.yaml").write_text(yaml.safe_dump(config))
    rows = metrics or [{"step": step, "timing_s/step": 2.0} for step in sorted(training or {1: []})]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for kind, by_step in (("val", validation), ("train", training or {})):
        for step, records in by_step.items():
            (folder / "rollouts" / f"{kind}_{step:06d}.jsonl").write_bytes(encode_records(records))
    return folder


@pytest.fixture
def run_folder(tmp_path):
    """Six held-out questions, of which two are solved at step 0 and five at step 2; two training steps."""

    def validation(num_solved, kills):
        found = []
        for index in range(6):
            outcome = "wrong_value" if index < kills else "passed"
            buggy = suite(case(), case(outcome, call="f(2)"), valid=0.5 + kills / 10)
            found += [
                record(index, solved=index < num_solved),
                record(index, kind="greedy", solved=index < num_solved + 1, reward=None),
                record(index, kind="buggy_program", solved=None, suites=[buggy]),
            ]
        return found

    equal = {"time_frac/episodes": 0.5, "time_frac/other": 0.5, "test/reward": 0.4, "code/pass@1": 0.5}
    caught = suite(case(), case("wrong_value", call="f(3)", answer="4"), rejections=["assert g(1) == 2"])
    training = {
        1: [record(0, solved=True), record(1, solved=False, reward=0.5, suites=[caught])],
        2: [record(0, step=2, solved=False, suites=[suite(case())]), record(1, step=2, solved=True)],
    }
    metrics = [
        {"step": 0, "val/code/pass@1": 2 / 6},
        {"step": 1, "timing_s/step": 2.0, "code/reward": 0.5, "test/valid": 0.5, "book/cases": 3, **equal},
        {"step": 2, "timing_s/step": 4.0, "code/reward": 0.7, "test/valid": 0.6, "book/cases": 4, **equal,
         "val/code/pass@1": 5 / 6},
    ]  # fmt: skip
    return write_run(
        tmp_path / "run", validation={0: validation(2, 1), 2: validation(5, 3)}, training=training, metrics=metrics
    )
