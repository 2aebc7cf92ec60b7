"""Each study still runs: a tiny input through its real entry point."""

import json

import pytest

from studies import evalplus_agreement, judging_waits, reward_ranking
from studies.command_line import run_study
from studies.judge_benchmark import __main__ as judge_benchmark, bench

pytestmark = pytest.mark.nightly
REFERENCE = "def f(items):\n    total = 0\n    for item in items[:3]:\n        total += item\n    return total\n"
TEST = """
def check(f):
    inputs = [[[1, 2, 3, 4]], [[]], [[5]], [[-1, 7]]]
    results = [6, 0, 5, 6]
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(f(*inp), exp, 0)
"""
FORGED = "class Any:\n    def __eq__(self, other):\n        return True\n\n\ndef f(items):\n    return Any()\n"


def test_the_reward_ranks_258_of_261_pairs_right(capsys):
    assert run_study(reward_ranking.app, [], name="reward_ranking") == 0
    printed = capsys.readouterr().out
    assert "in 258 of 261 pairs of one question; 3 wrong, 0 ties" in printed
    assert "R_C = 1: 79 of 105 correct programs, 0 of 276 incorrect ones" in printed


@pytest.fixture
def evalplus_file(tmp_path):
    path = tmp_path / "evalplus.jsonl"
    info = {"question_id": "MBPP/8", "function_name": "f", "imports": ""}
    one = {"problem": "def f(items): ...", "GT_code": REFERENCE, "test": TEST, "extra_info": info}
    other = one | {"extra_info": info | {"question_id": "MBPP/9"}}
    path.write_text(json.dumps(one) + "\n" + json.dumps(other) + "\n")
    return path


def compare(file, tmp_path, *words):
    words = [str(file), *words, "--workers", "1", "--output", str(tmp_path / "out")]
    return run_study(evalplus_agreement.app, words, name="evalplus_agreement")


def test_programs_made_from_references_are_compared_with_evalplus(evalplus_file, tmp_path, capsys):
    pytest.importorskip("evalplus.eval")
    pytest.importorskip("cosmic_ray")
    assert compare(evalplus_file, tmp_path, "--samples", "10") == 0
    assert "| all " in capsys.readouterr().out
    rows = [json.loads(line) for line in (tmp_path / "out" / "samples.jsonl").open()]
    assert sorted(row["item"] for row in rows) == list(range(10))
    assert {row["passes"] for row in rows} == {True, False}
    assert not any("program" in row for row in rows)


def test_a_models_programs_are_compared_and_each_difference_is_listed(evalplus_file, tmp_path, capsys):
    pytest.importorskip("evalplus.eval")
    programs = tmp_path / "samples.jsonl"
    samples = [("Mbpp/8", REFERENCE), ("Mbpp/9", "def f(items):\n    return sum(items)"), ("Mbpp/9", FORGED)]
    programs.write_text("".join(json.dumps({"task_id": name, "solution": text}) + "\n" for name, text in samples))
    assert compare(evalplus_file, tmp_path, "--programs", str(programs)) == 0
    assert "- MBPP/9, response : ours unencodable" in capsys.readouterr().out


def test_the_judge_is_measured_beside_other_ways(monkeypatch, capsys):
    monkeypatch.setattr(judge_benchmark, "QUICK", bench.Size(rounds=1, questions_per_round=1, step_questions=1))
    assert run_study(judge_benchmark.app, ["bench", "--quick"], name="judge_benchmark") == 0
    assert "ratio_vs_one_script" in capsys.readouterr().out


def test_corpora_are_judged(tmp_path, capsys):
    honest = {"id": "a", "gt": "def f(x): return x", "code": "def f(x): return x", "tests": ["assert f(1) == 1"]}
    path = tmp_path / "programs.json"
    path.write_text(json.dumps([honest | {"honest": 1}, honest | {"id": "b", "honest": {"pass": 0, "valid": 1}}]))
    assert run_study(judge_benchmark.app, ["corpora", str(path)], name="judge_benchmark") == 1
    assert "['programs.json/b']" in capsys.readouterr().out


def test_a_recorded_steps_judging_is_replayed(tmp_path, capsys):
    question = {"id": "q", "prompt": "Double it.", "reference": "def f(x):\n    return 2 * x"}
    (tmp_path / "questions.jsonl").write_text(json.dumps(question))
    suites = [{"response": "```python\nassert f(3) == 6\n```", "span": [0.0, 0.2]}]
    row = {"question": "q", "source": "def f(x):\n    return x + x", "suites": suites, "verdict": None}
    (tmp_path / "train.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row | {"source": None}))
    words = [str(tmp_path / "train.jsonl"), "--questions", str(tmp_path / "questions.jsonl")]
    assert run_study(judging_waits.app, [*words, "--limit", "load_cpu_seconds=2"], name="judging_waits") == 0
    assert "train.jsonl: 1 programs; last suite after 0.2 s" in capsys.readouterr().out
    (tmp_path / "questions.jsonl").write_text(
        json.dumps(question | {"tests": ["assert f(1) == 2", "assert f(0) == 0"]})
    )
    (tmp_path / "val.jsonl").write_text(json.dumps(row | {"kind": "greedy", "source": "def f(x):\n    while x: pass"}))
    words[0] = str(tmp_path / "val.jsonl")
    assert run_study(judging_waits.app, [*words, "--hidden"], name="judging_waits") == 0
    assert capsys.readouterr().out.count("1 programs fail") == 2
