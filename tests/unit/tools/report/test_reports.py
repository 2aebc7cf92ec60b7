"""Reports and rollouts of odd, damaged and hostile runs."""

import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text

from code_a1_recipe.cli.app import main
from code_a1_recipe.files import portable
from code_a1_recipe.tools.report.question_view import outcome_of, pick_episodes, program_lines

from ...conftest import case, loaded, record, suite, write_run


def test_what_a_terminal_would_obey_is_escaped(tmp_path, capsys):
    evil = "def f(x):\n    '\x1b]0;owned\x07\x1b[2J\r\u202e\x00\ud800'"
    forged = suite(case(call="f('\x1b[0m')"), rejections=["a\nstep 99  fake  solved (right), reward 1.000"])
    run = write_run(tmp_path / "run", validation={}, training={1: [record(0, source=evil, suites=[forged])]})
    assert main(["data", "inspect", str(run), "--outcome", "solved"]) == 0
    printed = capsys.readouterr().out
    assert not set(printed) & set("\x1b\x07\r\u202e\x00\ud800")
    assert r"\x1b]0;owned\x07\x1b[2J\r\u202e\x00?" in printed
    assert r"f('\x1b[0m')" in printed
    assert not [line for line in printed.splitlines() if line.startswith("step 99")]
    assert main(["report", str(run)]) == 0


@pytest.mark.parametrize("key", ["given_tests", "pooled_tests", "history"])
def test_a_program_that_met_no_suite_is_judged_by_the_tests_it_met(key):
    def with_cases(cases):
        met = {"verdict": loaded(*cases)} if key == "history" else {key: {"cases": cases, "rejections": []}}
        return record(0, solved=False, **met)

    assert outcome_of(with_cases([case("wrong_value")])) == "detected"
    assert outcome_of(with_cases([case()])) == "undetected"
    assert outcome_of(with_cases([])) == "untested"
    shown = Text.from_ansi("\n".join(program_lines(with_cases([case("wrong_value")])))).plain
    names = {"given_tests": "given tests", "pooled_tests": "pooled tests", "history": "replayed from the Mistake Book"}
    assert f"  {names[key]}\n    x assert f(1) == 2  correct; broke the program" in shown


def test_samples_are_each_of_another_question():
    caught = [
        record(index, candidate=n, solved=False, suites=[suite(case("died"))]) for n, index in enumerate((0, 0, 1, 2))
    ]
    assert pick_episodes([record(3), *caught], outcome="detected", limit=2) == [caught[0], caught[2]]


def test_a_buggy_program_is_known_to_be_incorrect():
    programs = [record(0, kind="buggy_program", solved=None, suites=[suite(one)]) for one in (case(), case("died"))]
    assert [outcome_of(program) for program in programs] == ["undetected", "detected"]
    assert outcome_of(record(0, solved=None)) == "unknown"


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("metrics.jsonl", b"\xff\n", "line 1 is not JSON"),
        ("metrics.jsonl", b"[1, 2]\n", "line 1: Expected `object`, got `array`"),
        ("metrics.jsonl", b'{"step": "one"}\n', "line 1: must have an integer 'step', got 'one'"),
        ("metrics.jsonl", b'{"step": ' + b"[" * 100_000 + b"\n", "line 1 is not JSON"),
        ("rollouts/train_000002.jsonl", b'{"step": 2, "index": 0}\n', "no rollout record of format version"),
        ("resolved_config.yaml", b"data: {}\n", "must have a block 'trainer' of keys, got None"),
        ("resolved_config.yaml", b"- a\n", "must be a mapping of keys"),
    ],
)
def test_a_damaged_file_of_a_run_is_named(run_folder, capsys, file, text, words):
    (run_folder / file).write_bytes(text)
    assert main(["report", str(run_folder)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert file in error


def test_what_is_no_rollout_and_no_number_is_passed_over(run_folder):
    (run_folder / "rollouts" / "train_backup.jsonl").write_text("?")
    with (run_folder / "metrics.jsonl").open("a") as handle:
        handle.write('{"step": 3, "code/reward": "high"}\n')
    assert main(["report", str(run_folder)]) == 0


def test_a_run_that_only_begins_has_no_step_yet(run_folder, capsys):
    (run_folder / "metrics.jsonl").unlink()
    assert main(["report", str(run_folder)]) == 2
    assert "has no step yet" in capsys.readouterr().err


def test_a_run_of_one_step_shows_its_points(tmp_path, capsys):
    row = {"step": 1, "timing_s/step": 2.0, "time_frac/episodes": 0.5, "time_frac/other": 0.5, "code/reward": 0.5}
    run = write_run(tmp_path / "run", validation={}, training={1: [record(0)]}, metrics=[row])
    assert main(["report", str(run)]) == 0
    assert "step 1 of 1, " in (run / "report" / "index.html").read_text()


def test_a_reader_that_closes_its_pipe_ends_the_command_without_a_traceback(run_folder):
    command = [sys.executable, "-m", "code_a1_recipe", "report", str(run_folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        message = process.stderr.read()
    assert (process.returncode, message) == (1, "")


def test_the_report_of_a_run_shows_what_a_reader_wants(run_folder, capsys):
    assert main(["report", str(run_folder)]) == 0
    page = (run_folder / "report" / "index.html").read_text()
    for words in (
        "Before and after", "+0.500", "assert f(3) == 4", "Commands and versions",
        "Incorrect programs and the tests that detected them", "Incorrect programs that no test of their reward broke",
    ):  # fmt: skip
        assert words in page
    assert f"report: {run_folder}/report/index.html" in capsys.readouterr().out


def test_a_page_never_runs_what_a_model_wrote(tmp_path):
    evil = record(0, solved=False, source="<script>alert(1)</script>")
    run = write_run(tmp_path / "run", validation={}, training={1: [evil]})
    assert main(["report", str(run)]) == 0
    assert "<script>alert" not in (run / "report" / "index.html").read_text()


def test_results_are_passed_on_without_the_folders_of_their_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = f"code-a1 run_dir={tmp_path}/outputs/a model={Path.home()}/.cache/b /elsewhere"
    assert portable(text) == "code-a1 run_dir=outputs/a model=~/.cache/b /elsewhere"


def test_rollouts_of_an_outcome_may_be_of_all_questions_that_begin_so(run_folder, capsys):
    assert main(["data", "inspect", str(run_folder), "--question", "micro-", "--outcome", "undetected"]) == 0
    assert "1 of 1 that match, of 2 at step 2" in capsys.readouterr().out
