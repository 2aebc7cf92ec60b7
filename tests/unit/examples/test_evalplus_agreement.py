"""The comparison with EvalPlus's own judge: its programs, its report, and the command on a small file."""

import ast
import importlib.metadata
import json

import pytest

from code_a1_recipe.evaluation.benchmarks.evalplus import Comparison, EvalPlusProblem
from examples.evalplus_agreement import __main__ as evalplus_agreement
from examples.evalplus_agreement.opinions import Opinions, TheirVerdict, ask_evalplus, why_they_differ
from examples.evalplus_agreement.report import agreement_table, class_table, write_report
from examples.evalplus_agreement.samples import KINDS, RESHAPES, make_samples, plan_samples, rename_locals
from sandbox import CaseOutcome, encode

REFERENCE = '''import re

LIMIT = 3


def f(items):
    """Sum of the first items."""
    total = 0
    for index, item in enumerate(items):
        if index < LIMIT:
            total += item
    return total
'''
TEST = """
def check(f):
    inputs = [[[1, 2, 3, 4]], [[]], [[5]], [[-1, 7]]]
    results = [6, 0, 5, 6]
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(f(*inp), exp, 0)
"""


def problem(**changes) -> EvalPlusProblem:
    fields = {
        "id": "MBPP/8",
        "dataset": "mbpp",
        "entry_point": "f",
        "prompt": "",
        "reference": REFERENCE,
        "calls": ("f([1, 2, 3, 4])", "f([])", "f([5])"),
        "expected": (encode(6), encode(0), encode(5)),
        "comparison": Comparison.VALUE,
        "atol": 0.0,
        "reference_cpu_seconds": (0.0, 0.0, 0.0),
    }
    return EvalPlusProblem(**(fields | changes))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "evalplus.jsonl"
    info = {"question_id": "MBPP/8", "function_name": "f", "imports": ""}
    one = {"problem": "def f(items): ...", "GT_code": REFERENCE, "test": TEST, "extra_info": info}
    other = {**one, "extra_info": {**info, "question_id": "MBPP/9"}}
    path.write_text(json.dumps(one) + "\n" + json.dumps(other) + "\n")
    return path


def test_the_plan_takes_every_problem_in_turn_and_more_samples_only_add_to_it():
    plans = plan_samples(7, 21, seed=1)
    assert sorted(plan.problem for plan in plans[:7]) == sorted(plan.problem for plan in plans[7:14]) == list(range(7))
    assert plan_samples(7, 10, seed=1) == plans[:10]
    assert plan_samples(7, 21, seed=2) != plans
    assert {plan.kind for plan in plan_samples(7, 200, seed=1)} == set(KINDS) - {"response"}


def test_renaming_touches_local_variables_only():
    renamed = rename_locals(REFERENCE)
    assert "total_renamed += item_renamed" in renamed
    assert "index_renamed < LIMIT" in renamed
    assert "def f(items):" in renamed
    scope: dict = {}
    exec(renamed, scope)  # our own text
    assert scope["f"]([1, 2, 3, 4]) == 6


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    y = x\n    return locals()['y']",
        "y = 1\ndef f(x):\n    global y\n    y = x\n    return y",
        "def f(x):\n    def g(y=2):\n        return y\n    y = 3\n    return g(y=y)",
        "def f(x):\n    try:\n        1 / 0\n    except ZeroDivisionError as y:\n        z = str(y)\n    return z",
        "def f(x):\n    match x:\n        case [y, *z]:\n            return y\n        case y:\n            return y",
    ],
)
def test_renaming_leaves_alone_what_could_be_heard_outside(source):
    scope: dict = {}
    before: dict = {}
    exec(rename_locals(source), scope)
    exec(source, before)
    assert scope["f"](5) == before["f"](5)


def test_samples_are_made_as_planned_and_all_of_them_parse():
    pytest.importorskip("cosmic_ray")
    plans = plan_samples(1, 60, seed=0)
    samples = make_samples(plans, problem())
    assert [sample.item for sample in samples] == list(range(60))
    assert [sample.kind for sample in samples] == [plan.kind for plan in plans]
    for sample in samples:
        ast.parse(sample.program)
        assert (sample.program == REFERENCE) is (sample.kind == "reference")
    assert make_samples(plans, problem()) == samples


def test_a_reference_without_mutants_is_reshaped_instead():
    pytest.importorskip("cosmic_ray")
    plain = problem(reference="def f(items):\n    return sum(items)\n")
    plans = [plan for plan in plan_samples(1, 60, seed=0) if plan.kind == "mutant"]
    samples = make_samples(plans, plain)
    assert {sample.kind for sample in samples} == {"reshaped"}
    # of those for any result, and for integers
    assert {sample.detail for sample in samples} <= {
        name for name, (types, _) in RESHAPES.items() if not types or "int" in types.split()
    }


def row(item, *, kind="mutant", ours=True, theirs="pass", outage="", **changes):
    outcome = "passed" if ours else "wrong_value"
    differs = ours != (theirs == "pass") and not outage
    return {
        "item": item,
        "id": "MBPP/8",
        "kind": kind,
        "detail": "AddNot",
        "outage": outage,
        "ours": {"passed": ours, "outcome": outcome, "failed_call": None, "detail": "x"},
        "theirs": {"status": theirs, "failed_call": 0},
        "class": "time limit" if differs else "",
        **({"program": "def f(): pass", "calls": ["f(1)"]} if differs else {}),
        **changes,
    }


ROWS = [
    row(0),
    row(1, ours=False, theirs="fail"),
    row(2, theirs="timeout"),
    row(3, kind="reference"),
    row(4, ours=False),
    {"item": 5, "id": "MBPP/9", "kind": "mutant", "detail": "", "outage": "no answer"},
]


def test_the_counts_are_those_of_the_rows_and_outages_are_no_verdicts():
    table = agreement_table(ROWS)
    assert table.rows == (
        ("reference", "1", "1", "0", "0", "0", "100.00 %"),
        ("mutant", "4", "1", "1", "1", "1", "50.00 %"),
        ("all", "5", "2", "1", "1", "1", "60.00 %"),
    )
    assert table.note == "1 programs met an outage of the sandbox and are not counted."
    assert [line[:3] for line in class_table(ROWS).rows] == [("time limit", "1", "1")]


def test_the_report_lists_each_difference_with_its_program(tmp_path):
    write_report(tmp_path, ROWS, settings={"seed": 0})
    text = (tmp_path / "agreement.md").read_text()
    assert "**MBPP/8**, sample 2 (mutant AddNot): ours *passed* x, EvalPlus *timeout* at f(1)" in text
    assert "    def f(): pass" in text
    assert [json.loads(line)["item"] for line in (tmp_path / "differences.jsonl").open()] == [2, 4]


def test_no_rows_give_a_table_all_the_same():
    assert agreement_table([]).rows == (("all", "0", "0", "0", "0", "0", "–"),)


@pytest.fixture(scope="module")
def ask():
    pytest.importorskip("evalplus.eval")
    with Opinions.start_theirs(1) as runner:
        yield lambda program, **changes: ask_evalplus(problem(**changes), program, runner=runner)


def test_evalplus_is_asked_with_the_same_inputs_and_answers(ask):
    assert ask(REFERENCE) == TheirVerdict(status="pass", failed_call=None)
    assert ask("def f(items): return sum(items)") == TheirVerdict(status="fail", failed_call=0)
    assert ask("def f(items): return items[0] and 6") == TheirVerdict(status="fail", failed_call=1)
    assert ask("def f(items) return 6") == TheirVerdict(status="fail", failed_call=None)


def test_what_a_model_wrote_runs_confined_in_evalpluss_judge_too(ask, tmp_path):
    outside = tmp_path / "escaped"
    program = f"import io\nio.open({str(outside)!r}, 'w').write('x')\n{REFERENCE}"
    assert ask(program) == TheirVerdict(status="fail", failed_call=None)
    assert not outside.exists()
    assert ask("import os\nos._exit(0)") == TheirVerdict(status="timeout", failed_call=None)
    assert ask("def f(items):\n    while True:\n        pass") == TheirVerdict(status="fail", failed_call=0)


def test_evalplus_fails_every_program_for_the_root_problem(ask):
    """If this turns red, the difference that the judge's docstring lists has gone."""
    changes = {
        "id": "HumanEval/32",
        "dataset": "humaneval",
        "entry_point": "find_zero",
        "calls": ("find_zero([1, 2])",),
        "expected": (encode(-0.5),),
        "comparison": Comparison.ROOT,
        "atol": 1e-4,
        "reference_cpu_seconds": (0.0,),
    }
    assert ask("def find_zero(xs): return -xs[0] / xs[1]", **changes).status == "fail"


@pytest.mark.parametrize(
    ("outcome", "detail", "reason"),
    [
        (CaseOutcome.TIMED_OUT, "more than 2 s of CPU time", "time limit"),
        (CaseOutcome.UNENCODABLE, "generator", "unencodable"),
        (CaseOutcome.RAISED, "MemoryError: ", "memory"),
        (CaseOutcome.RAISED, "RecursionError: maximum depth", "recursion"),
        (CaseOutcome.RAISED, "PermissionError: [Errno 13]", "confinement"),
        (CaseOutcome.WRONG_VALUE, "", "unexplained"),
    ],
)
def test_a_difference_is_named_after_what_our_judge_saw(outcome, detail, reason):
    assert why_they_differ(outcome, detail) == reason


def test_the_command_compares_goes_on_and_refuses_other_settings(file, tmp_path, capsys):
    pytest.importorskip("evalplus.eval")
    pytest.importorskip("cosmic_ray")
    out = tmp_path / "out"
    command = [str(file), "--samples", "10", "--workers", "1", "--output", str(out)]
    assert evalplus_agreement.main(command) == 0
    assert "only EvalPlus passes" in capsys.readouterr().out
    rows = [json.loads(line) for line in (out / "samples.jsonl").open()]
    assert [found["item"] for found in rows] == list(range(10))
    assert [found["class"] for found in rows] == [""] * 10
    assert {found["ours"]["passed"] for found in rows} == {True, False}

    longer = [*command[:2], "14", *command[3:]]
    assert evalplus_agreement.main(longer) == 0
    assert [json.loads(line) for line in (out / "samples.jsonl").open()][:10] == rows  # seconds included: not again
    assert "| all       | 14 " in capsys.readouterr().out

    capsys.readouterr()
    assert evalplus_agreement.main([*command, "--seed", "1"]) == 2
    assert "seed was 0, now is 1" in capsys.readouterr().err


def test_a_models_programs_are_compared_one_by_one_and_each_difference_is_named(file, tmp_path, capsys):
    pytest.importorskip("evalplus.eval")
    forged = "class Any:\n    def __eq__(self, other):\n        return True\n\n\ndef f(items):\n    return Any()\n"
    samples = [("Mbpp/8", REFERENCE), ("Mbpp/9", "def f(items):\n    return sum(items)"), ("Mbpp/9", forged)]
    programs = tmp_path / "samples.jsonl"
    programs.write_text("".join(json.dumps({"task_id": name, "solution": text}) + "\n" for name, text in samples))
    command = [str(file), "--programs", str(programs), "--workers", "1", "--output", str(tmp_path / "out")]
    assert evalplus_agreement.main(command) == 0
    assert "| response | 3      | 1         | 1         | 0 " in capsys.readouterr().out
    (different,) = [json.loads(line) for line in (tmp_path / "out" / "differences.jsonl").open()]
    assert (different["id"], different["item"], different["class"]) == ("MBPP/9", 2, "unencodable")
    assert "**MBPP/9**, sample 2 (response)" in (tmp_path / "out" / "agreement.md").read_text()

    programs.write_text(json.dumps({"task_id": "Mbpp/7", "solution": REFERENCE}) + "\n")
    assert evalplus_agreement.main([*command[:-1], str(tmp_path / "other")]) == 2
    assert (
        "row 0 must have a text 'solution' and as 'task_id' a problem of FILE, got 'MBPP/7'" in capsys.readouterr().err
    )


def test_what_cannot_work_is_refused_before_any_work(file, tmp_path, capsys, monkeypatch):
    out = ["--output", str(tmp_path / "out")]
    assert evalplus_agreement.main([str(tmp_path / "none.parquet"), *out]) == 2
    assert "cannot be read" in capsys.readouterr().err

    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(evalplus_agreement, "version", absent)
    assert evalplus_agreement.main([str(file), *out]) == 2
    error = capsys.readouterr().err
    assert error == (
        "error: the comparison needs the package evalplus, which is not installed: pip install --no-deps "
        "evalplus==0.3.1 tree-sitter==0.26.1 tree-sitter-python==0.25.0\n"
    )
    assert not (tmp_path / "out").exists()
