"""Run folders as a run writes them, made by hand so that every number is known."""

import json
from pathlib import Path

import pytest
import yaml

from code_a1_recipe.micro.world import draw_questions, write_rows

QUESTIONS = draw_questions(seed=0, num_questions=6)


def case(outcome="passed", *, call="f(1)", answer="2", right=True):
    return {
        "call": call,
        "answer": answer,
        "claimed": answer if right else "7",
        "claimed_right": right,
        "outcome": outcome,
        "key": call,
    }


def suite(*cases, valid=1.0, rejections=()):
    return {
        "response": "",
        "response_tokens": 3,
        "refusal": "",
        "reward": {"total": valid / 2, "parts": {}, "terms": {"valid": valid}},
        "verdict": {"cases": list(cases), "rejections": [{"text": text, "reason": "no_call"} for text in rejections]},
    }


def record(index, *, step=1, kind="sampled", candidate=0, solved=True, reward=1.0, suites=(), source="def f(x): pass"):
    outcome = "passed" if solved else "wrong_value"
    return {
        "index": index,
        "step": step,
        "question": QUESTIONS[index].id,
        "data_source": "micro",
        "kind": kind,
        "candidate": candidate,
        "response": "",
        "response_tokens": 3,
        "source": source,
        "refusal": "",
        "outage": "",
        "verdict": {"loaded": True, "load_error": "", "history": [], "cpu_seconds": 0.0},
        "reward": None if reward is None else {"total": reward, "parts": {}, "terms": {}},
        "given_tests": None,
        "pooled_tests": None,
        "hidden_tests": None if solved is None else {"cases": [case(), case(outcome)], "rejections": []},
        "selected": False,
        "suites": list(suites),
    }


def write_run(folder: Path, *, validation, training=None, metrics=None):
    """``validation`` and ``training``: records by step."""
    (folder / "rollouts").mkdir(parents=True)
    data = folder / "questions.jsonl"
    write_rows(QUESTIONS, data)
    config = {
        "data": {"train_files": str(data), "val_files": str(data), "adapter": "auto", "columns": {}},
        "trainer": {},
    }
    (folder / "resolved_config.yaml").write_text(yaml.safe_dump(config))
    rows = metrics or [{"step": step, "timing_s/step": 2.0} for step in sorted(training or {1: []})]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for kind, by_step in (("val", validation), ("train", training or {})):
        for step, records in by_step.items():
            lines = "".join(json.dumps(one) + "\n" for one in records)
            (folder / "rollouts" / f"{kind}_{step:06d}.jsonl").write_text(lines)
    return folder


@pytest.fixture
def run_folder(tmp_path):
    """Six held-out questions, of which two are solved at step 0 and five at step 2; two training steps."""

    def validation(num_solved, kills):
        found = []
        for index in range(6):
            found.append(record(index, solved=index < num_solved))
            found.append(record(index, kind="greedy", solved=index < num_solved + 1, reward=None))
            outcome = "wrong_value" if index < kills else "passed"
            probe = suite(case(), case(outcome, call="f(2)"), valid=0.5 + kills / 10)
            found.append(record(index, kind="probe", solved=None, suites=[probe]))
        return found

    caught = suite(case(), case("wrong_value", call="f(3)", answer="4"), rejections=["assert g(1) == 2"])
    training = {
        1: [record(0, solved=True), record(1, solved=False, reward=0.5, suites=[caught])],
        2: [record(0, step=2, solved=False, suites=[suite(case())]), record(1, step=2, solved=True)],
    }
    metrics = [
        {"step": 0, "val/code/pass@1": 2 / 6},
        {"step": 1, "timing_s/step": 2.0, "time_share/episodes": 0.5, "time_share/other": 0.5, "code/reward": 0.5,
         "test/reward": 0.4, "test/valid": 0.5, "book/cases": 3, "code/pass@1": 0.5},
        {"step": 2, "timing_s/step": 4.0, "time_share/episodes": 0.5, "time_share/other": 0.5, "code/reward": 0.7,
         "test/reward": 0.4, "test/valid": 0.6, "book/cases": 4, "code/pass@1": 0.5, "val/code/pass@1": 5 / 6},
    ]  # fmt: skip
    return write_run(
        tmp_path / "run", validation={0: validation(2, 1), 2: validation(5, 3)}, training=training, metrics=metrics
    )
