"""``eval code``, ``eval test`` and ``select`` from the command line: a scripted endpoint, the real judge."""

import pytest

from code_a1_recipe.cli.app import main
from code_a1_recipe.data.reader import iter_rows
from code_a1_recipe.files import json_lines
from code_a1_recipe.tools.evaluate.results import Results

from .stand_in_endpoint import StandInEndpoint

RIGHT = "def double(x):\n    return 2 * x\n"
SQUARE = "def double(x):\n    return x * x\n"
QUESTIONS = [
    {
        "id": "double",
        "prompt": "Write double(x).",
        "reference": RIGHT,
        "entry_points": ["double"],
        "tests": ["assert double(3) == 6", "assert double(-1) == -2"],
        "buggy_programs": [SQUARE],
        "data_source": "mine",
    },
    {
        "id": "sign",
        "prompt": "Write sign(x).",
        "reference": "def sign(x):\n    if x > 0:\n        return 1\n    return -1 if x < 0 else 0\n",
        "entry_points": ["sign"],
        "tests": ["assert sign(3) == 1", "assert sign(0) == 0", "assert sign(-7) == -1"],
        "data_source": "mine",
    },
]
RAISING = {**QUESTIONS[0], "id": "raising", "tests": ["assert double(None) == 5"]}
SIGN_WRONG = "def sign(x):\n    return 1 if x >= 0 else -1\n"


def command(name):
    return lambda words: main([*name.split(), *words])


eval_code, eval_test, select = command("eval code"), command("eval test"), command("select")


def fenced(source):
    return f"Here it is.\n```python\n{source}\n```\n"


def code_answers(messages, seed):
    """Of ``double`` half the programs are right, of ``sign`` none; one response holds no program."""
    if "double(x)" in messages[-1]["content"]:
        return fenced(RIGHT if seed % 2 else SQUARE)
    return fenced(SIGN_WRONG) if seed % 3 else "I do not know."


def test_answers(messages, seed):
    if "double(x)" in messages[-1]["content"]:
        return fenced("assert double(3) == 6\nassert double(2) == 4\nassert double(1) == 3")
    return fenced("assert sign(5) == 1\nassert sign(0) == 0\nassert sign(-5) == -1")


test_answers.__test__ = False


def answers(messages, seed):
    """Both models behind one endpoint, told apart by what they are asked for."""
    return (test_answers if "assert" in messages[-1]["content"] else code_answers)(messages, seed)


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text(json_lines(QUESTIONS))
    return path


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def words(questions, output):
    """What follows the name of a command that asks a server."""
    return lambda server, *more: [str(questions), "--output", str(output), *server.words, *more]


def test_a_code_llm_is_sampled_judged_and_summarised(words, output, capsys):
    with StandInEndpoint(code_answers) as server:
        assert eval_code(words(server, "--samples", "6")) == 0
    parts = Results.load(output).parts
    rows = list(iter_rows(output / "verdicts.jsonl"))
    right = sum(row["passed"] for row in rows if row["question"] == "double")
    assert 0 < right < 6
    assert parts["pass@1"]["double"][0] == pytest.approx(right / 6)
    assert parts["pass@1"]["sign"] == [0.0, 1.0]
    assert {name for name in parts if name.startswith("pass")} == {"pass@1", "pass@5", "pass@6"}
    assert {row["reason"] for row in rows if row["question"] == "sign"} <= {
        "wrong_value: sign(0)",
        "no program: no_code",
    }
    assert {row["reason"] for row in rows if row["question"] == "double" and not row["passed"]} == {
        "wrong_value: double(3)"
    }
    assert "| pass@1 (avg@6)" in capsys.readouterr().out
    assert "| pass@1 (avg@6)" in (output / "table.md").read_text()


def test_sampling_needs_no_sandbox_and_judging_no_model_and_nothing_is_done_twice(words, output, capsys, monkeypatch):
    registry = "code_a1_recipe.tools.evaluate.benchmarks.registry"
    with StandInEndpoint(code_answers) as server, monkeypatch.context() as without_sandbox:
        without_sandbox.setattr(f"{registry}.JudgeProcesses", None)
        without_sandbox.setattr(f"{registry}.LocalRunner", None)
        first = words(server, "--samples", "4")
        assert eval_code([*first, "--sample-only"]) == 0
        assert not (output / "verdicts.jsonl").exists()
        assert len(server.requests) == 8
    assert eval_code([*first, "--judge-only"]) == 0  # the server is gone
    verdicts = (output / "verdicts.jsonl").read_bytes()
    assert eval_code([*first, "--judge-only"]) == 0
    assert (output / "verdicts.jsonl").read_bytes() == verdicts
    capsys.readouterr()
    assert eval_code([*first[:-1], "5", "--judge-only"]) == 2
    assert "lacks a response" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("num_kept", "more", "told"),
    [(1, [], "holds rows of other settings: files was"), (2, ["--columns", "tests=strict"], "columns was {}")],
)
def test_verdicts_of_other_questions_or_columns_are_not_taken_up(words, questions, capsys, num_kept, more, told):
    rows = [{**row, "strict": row["tests"]} for row in QUESTIONS]
    questions.write_text(json_lines(rows))
    with StandInEndpoint(code_answers) as server:
        asked = words(server)
        assert eval_code(asked) == 0
        questions.write_text(json_lines(rows[:num_kept]))
        assert eval_code([*asked, *more]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "more", "told"),
    [
        ({}, "--prompt nowhere.txt", "cannot be read"),
        ({}, "--prompt nobody", "--prompt must be one of"),
        ({}, "--adapter leetcode", "needs the columns"),
        ({"tests": []}, "", "give it a column 'tests'"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_anything_is_asked(words, questions, capsys, changes, more, told):
    questions.write_text(json_lines([QUESTIONS[0] | changes]))
    with StandInEndpoint(code_answers) as server:
        assert eval_code(words(server, *more.split())) == 2
    assert told in capsys.readouterr().err
    assert server.requests == []


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("eval code {} --references --samples 2", "leave the model out"),
        ("eval code {} --references --model a/b", "leave the model out"),
        ("eval test {} --own-tests --model a/b", "leave the model out"),
        ("eval test {} --own-tests --sample-only", "leave the model out, and --samples and --sample-only"),
        ("eval code {} --split both --model a/b", "complete, instruct"),
        ("eval test nowhere.jsonl --own-tests", "cannot be read"),
        ("eval test {} --model a/b --tests 0", "'--tests'"),
        ("eval test {} --model a/b --max-mutants -1", "'--max-mutants'"),
        ("select {} --endpoint http://x --endpoint-model m", "name the Test LLM"),
    ],
)
def test_options_that_do_not_go_together_are_refused(questions, output, capsys, asked, told):
    assert main([*asked.format(questions).split(), "--output", str(output)]) == 2
    assert told in capsys.readouterr().err
    assert not output.exists()


def test_references_are_judged_without_a_model_and_what_fails_is_listed(questions, output, capsys):
    odd = {**QUESTIONS[1], "id": "odd", "reference": QUESTIONS[1]["reference"] + "\nimport os\nos._exit(1)\n"}
    wrong = {**QUESTIONS[0], "id": "wrong", "tests": ["assert double(3) == 6", "assert double(2) == 5"]}
    questions.write_text(json_lines([*QUESTIONS, odd, wrong, RAISING]))
    assert eval_code([str(questions), "--references", "--output", str(output)]) == 1
    shown = capsys.readouterr().out
    for told in (
        "odd: not loaded", "wrong: incorrect assertion: double(2) is 4, not 5", "raising: reference_raised"
    ):  # fmt: skip
        assert f"does not pass: {told}" in shown
    found = {name: right for name, (right, _) in Results.load(output).parts["pass@1"].items()}
    assert found == {"double": 1.0, "sign": 1.0, "odd": 0.0, "wrong": 0.0, "raising": 0.0}


def test_a_problem_whose_reference_confirms_no_test_is_left_out_and_passes_nobody(words, questions, output):
    questions.write_text(json_lines([RAISING, QUESTIONS[1]]))
    with StandInEndpoint(lambda messages, seed: fenced("def zzz():\n    pass")) as server:
        assert eval_code(words(server)) == 0
    results = Results.load(output)
    assert results.parts["pass@1"] == {"sign": [0.0, 1.0]}
    assert results.counts["problems left out because their reference confirms no test"] == 1


def test_a_test_llm_is_measured_by_correct_assertions_coverage_and_kills(words, output, capsys):
    with StandInEndpoint(test_answers) as server:
        asked = words(server, "--tests", "3")
        assert eval_test(asked) == 0
        number = len(server.requests)
        assert eval_test(asked) == 0
        assert len(server.requests) == number == 2
    parts = Results.load(output).parts
    assert parts["pass@3"] == {"double": [2.0, 3.0], "sign": [3.0, 3.0]}
    assert parts["pass@1"] == {"double": [1.0, 1.0], "sign": [1.0, 1.0]}
    assert parts["line_cov@3"]["sign"][0] == parts["line_cov@3"]["sign"][1]
    assert parts["line_cov@1"]["sign"][0] < parts["line_cov@1"]["sign"][1]
    # One incorrect assertion: the function fails the baseline of three tests, and counts nothing under the other rule.
    assert parts["mut@3"]["double"] == [0.0, 0.0]
    assert parts["mut_all@3"]["double"] == [0.0, 1.0]
    assert Results.load(output).products["mul@3"] == ["pass@3", "mut@3"]
    assert "mul@3" in capsys.readouterr().out


def test_the_questions_own_tests_are_a_baseline_without_a_model(questions, output, capsys):
    assert eval_test([str(questions), "--own-tests", "--tests", "3", "--output", str(output)]) == 0
    parts = Results.load(output).parts
    assert parts["pass@2"] == {"double": [2.0, 2.0], "sign": [2.0, 2.0]}
    assert parts["pass@1"] == {"double": [1.0, 1.0], "sign": [1.0, 1.0]}
    assert parts["mut_killable@2"]["double"][0] == 1.0
    assert "the questions' own tests" in capsys.readouterr().out


def select_words(words, server):
    test_model = ["--test-endpoint", server.url, "--test-endpoint-model", "stand-in"]
    return words(server, "--samples", "6", "--suites", "4", "--tests", "3", *test_model)


def test_select_compares_all_rules_and_writes_the_chosen_programs(words, output, capsys):
    with StandInEndpoint(answers) as server:
        asked = select_words(words, server)
        assert select(asked) == 0
        number = len(server.requests)
        assert select(asked) == 0
        assert len(server.requests) == number
    shown = capsys.readouterr().out
    for rule in ("random", "pass_count", "codet", "mbr_exec", "oracle"):
        assert f"| {rule} " in shown
    chosen = list(iter_rows(output / "selected.jsonl"))
    assert {row["question"] for row in chosen} == {"double", "sign"}
    assert next(row for row in chosen if row["question"] == "double")["program"].strip() == RIGHT.strip()


def test_a_choice_is_never_that_of_other_tests(words, questions, capsys):
    row = {**QUESTIONS[0], "strict": ["assert double(3) == 7"]}
    questions.write_text(json_lines([row]))
    with StandInEndpoint(answers) as server:
        asked = select_words(words, server)
        assert select(asked) == 0
        first = capsys.readouterr().out
        reference = ["--columns", "tests=strict", "--columns", "reference=reference2"]
        questions.write_text(json_lines([row | {"reference2": SQUARE}]))
        assert select([*asked, *reference]) == 0
        second = capsys.readouterr().out
    assert "100.0 [100.0, 100.0]" in first
    assert first != second


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("out", "is a file; name a folder"),
        ("out/results.json", "holds 'results.json', which this command did not write"),
    ],
)
def test_files_of_somebody_else_are_left_alone(words, output, capsys, name, told):
    file = output.parent / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("my notes")
    with StandInEndpoint(code_answers) as server:
        assert eval_code(words(server)) == 2
    assert told in capsys.readouterr().err
    assert (server.requests, file.read_text()) == ([], "my notes")
