"""``code-a1 data inspect``: what it shows of a run and of a data set, and what it refuses."""

import io
import json

import pytest

from code_a1_recipe.algorithm.mistake_book import BookUpdate, FailedCase, MistakeBook
from code_a1_recipe.cli.app import main
from code_a1_recipe.files import json_lines
from code_a1_recipe.jobs.terminal import echo, paint
from code_a1_recipe.runs.rollout_record import encode_records

from ...conftest import case, loaded, rollout, suite as a_suite

HARD = {
    "id": "hard-1",
    "prompt": "Add one.\nIn f.",
    "reference": "def f(x):\n    return x + 1",
    "entry_points": ["f"],
    "prelude": "import math",
    "tests": [f"assert f({x}) == {x + 1}" for x in range(3)],
    "golden_tests": ["assert f(9) == 10"],
    "buggy_programs": ["def f(x):\n    return x"],
    "data_source": "mine",
}
EASY = {"id": "hard-2", "prompt": "Same.", "reference": "def g(x):\n    return x", "tests": []}


def suite(*cases, rejected=()):
    parts = {"validity": 0.5, "adversarial": 0.0}
    return a_suite(*cases, rejections=rejected, reward={"total": 0.5, "parts": parts, "terms": {}})


def record(question="hard-1", *, solved=True, **changes):
    hidden = [case(), case("passed" if solved else "raised", call="f(2)", answer="3")]
    reward = {"total": 0.5, "parts": {"history": 0.25, "new": 0.25}, "terms": {"num_suites": 2.0}}
    fields = {"question": question, "source": "def f(x):\n\n    return x + 1", "verdict": loaded(), "reward": reward}
    return rollout(**fields | {"hidden_tests": {"cases": hidden, "rejections": []}} | changes)


CAUGHT = suite(case("wrong_value"), case("passed", call="f(5)", answer="6", right=False), rejected=["assert f(x) == 1"])
RIGHT = suite(case())
RECORDS = [
    record(step=1, suites=[RIGHT]),
    record("hard-2", step=1),
    record(step=3, solved=False, suites=[CAUGHT, RIGHT]),
    record(step=3, candidate=1, suites=[RIGHT]),
    record(step=3, candidate=2, outage="SandboxUnavailableError: gone", verdict=None, reward=None, hidden_tests=None),
]


@pytest.fixture
def run_folder(tmp_path):
    folder = tmp_path / "run"
    (folder / "rollouts").mkdir(parents=True)
    (tmp_path / "q.jsonl").write_text(json_lines([HARD, EASY]))
    config = {"data": {"train_files": str(tmp_path / "q.jsonl"), "val_files": None}, "trainer": {}}
    (folder / "resolved_config.yaml").write_text(json.dumps(config))
    (folder / "metrics.jsonl").write_text('{"step": 3}\n')
    for one in RECORDS:
        with (folder / "rollouts" / f"train_{one.step:06d}.jsonl").open("ab") as handle:
            handle.write(encode_records([one]))
    (folder / "rollouts" / "val_000002.jsonl").write_bytes(encode_records([record(step=2, kind="greedy", reward=None)]))
    book = MistakeBook()
    for count, call in ((1, "f(7)"), (3, "f(1)")):
        book.update("hard-1", BookUpdate(failed=[FailedCase(id=call, call=call, answer="2")] * count))
    book.save(folder / "mistake_book.json")
    return folder


@pytest.fixture
def show(capsys):
    def run(*arguments):
        status = main(["data", "inspect", *map(str, arguments)])
        written = capsys.readouterr()
        assert status == 0, written.err
        return written.out

    return run


@pytest.fixture
def refuse(capsys):
    def run(*arguments):
        assert main(["data", "inspect", *map(str, arguments)]) == 2
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        ("--limit 2", "2 of 3 that match, of 3 at step 3"),
        ("--step 1", "2 of 2 that match, of 2 at step 1"),
        ("--validation", "1 of 1 that match, of 1 at step 2"),
        ("--outcome detected", "1 of 1 that match, of 3 at step 3"),
        ("--outcome solved --step 1 --limit 1", "1 of 2 that match, of 2 at step 1"),
        ("--outcome solved --step 1 --question hard-2", "1 of 1 that match, of 1 at step 1"),
        ("--outcome solved --validation", "1 of 1 that match, of 1 at step 2"),
    ],
)
def test_programs_may_be_of_an_outcome_a_step_and_a_question_and_are_limited(show, run_folder, arguments, last):
    assert show(run_folder, *arguments.split()).endswith(f"\n\n{last}\n")


def test_programs_of_an_outcome_are_shown_with_their_questions(show, refuse, run_folder):
    text = show(run_folder, "--outcome", "detected")
    assert text.startswith("question hard-1\n  Add one.\n  In f.\ncandidate 0, sampled, step 3: detected (")
    assert text.count("candidate ") == 1
    assert show(run_folder, "--limit", 2).startswith("question hard-1\n")
    text = show(run_folder, "--outcome", "solved", "--step", 1, "--question", "hard-2")
    assert text.startswith("question hard-2\n  Same.\n")
    assert "detected" in refuse(run_folder, "--outcome", "detectd")


def test_a_question_of_a_run_is_shown_with_all_that_is_known(show, run_folder):
    text = show(run_folder, "--question", "hard-1")
    for piece in (
        "question hard-1  (mine)\n  Add one.\n  In f.\n",
        "reference  (entry points: f)\n    def f(x):\n        return x + 1\n",
        "Mistake Book  2 cases, with failures minus passed replays\n    3 x  f(1) == 2\n    1 x  f(7) == 2\n",
        "candidate 0, sampled, step 3: detected (",
        "  reward 0.500 = history 0.250 + new 0.250  (num_suites 2)\n    def f(x):\n\n        return x + 1\n",
        "  suite 0: reward 0.500 = validity 0.500 + adversarial 0.000\n"
        "    x assert f(1) == 2  correct; broke the program: wrong_value\n"
        "      assert f(5) == 7  incorrect assertion, the reference returns 6; passed\n"
        "      assert f(x) == 1  no valid case: no_call\n",
        "  hidden tests: 1 of 2 passed\n    x assert f(2) == 3  correct; broke the program: raised\n",
        "candidate 2, sampled, step 3: outage (",
        "  outage: SandboxUnavailableError: gone\n",
    ):
        assert piece in text
    assert "step 1:" not in text, "programs are those of its last step"
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("--step 3", "candidate 1, sampled, step 3: solved"),
        ("--step 1", "candidate 0, sampled, step 1"),
        ("--validation", "candidate 0, greedy, step 2"),
    ],
)
def test_a_step_can_be_chosen(show, run_folder, arguments, shown):
    assert shown in show(run_folder, "--question", "hard-1", *arguments.split())


def test_a_question_whose_file_is_gone_is_still_shown(run_folder, tmp_path, capsys):
    (tmp_path / "q.jsonl").unlink()
    assert main(["data", "inspect", str(run_folder), "--question", "hard-1"]) == 0
    written = capsys.readouterr()
    assert "question hard-1: its file does not exist any more" in written.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--question hard", "--question hard: 2 questions of its rollouts have ids that begin so: hard-1, hard-2"),
        (
            "--question soft",
            "0 questions of its rollouts have ids that begin so: leave --question out",
        ),
        ("--question hard-2 --step 3", "--step 3: question hard-2 was met in 1"),
        ("--step 9", "has rollouts of steps 1 to 3"),
    ],
)
def test_what_is_not_there_is_refused_with_what_there_is(refuse, run_folder, arguments, words):
    assert words in refuse(run_folder, *arguments.split())


def test_a_file_is_summed_up_and_its_questions_listed(show, run_folder, tmp_path):
    text = show(tmp_path / "q.jsonl")
    assert "2 questions, read as 'native'" in text
    assert "tests: 0 to 3; 1 questions without tests" in text
    assert [line.replace("|", " ").split() for line in text.splitlines()[-4:-2]] == [
        ["hard-1", "3", "1", "1", "2"],
        ["hard-2", "0", "0", "0", "2"],
    ]


def test_a_question_of_a_file_is_shown(show, run_folder, tmp_path):
    text = show(tmp_path / "q.jsonl", "--question", "hard-1", "--limit", 2)
    assert "prelude\n    import math\n" in text
    assert "3 tests, the first 2\n    assert f(0) == 1\n    assert f(1) == 2\n1 golden tests\n" in text
    assert text.endswith("buggy program 0\n    def f(x):\n        return x\n")


def test_options_of_a_run_are_refused_for_a_file(refuse, run_folder, tmp_path):
    for arguments in (["--step", 1], ["--outcome", "solved"], ["--validation"]):
        assert f"{arguments[0]} belongs to a run, but" in refuse(tmp_path / "q.jsonl", *arguments)
    assert "no such file or folder" in refuse(tmp_path / "gone.jsonl")
    assert "holds no run" in refuse(tmp_path)


@pytest.mark.parametrize(
    ("is_terminal", "kind", "no_color", "shown"),
    [
        (True, "xterm", None, "\x1b[31mx\x1b[0m\n"),
        (False, "xterm", None, "x\n"),
        (True, "dumb", None, "x\n"),
        (True, "xterm", "1", "x\n"),
    ],
)
def test_colours_only_on_a_terminal_and_not_against_the_users_wish(monkeypatch, is_terminal, kind, no_color, shown):
    stdout = io.StringIO()
    stdout.isatty = lambda: is_terminal
    monkeypatch.setattr("sys.stdout", stdout)
    monkeypatch.setenv("TERM", kind)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    echo(paint("bad", "x"))
    assert stdout.getvalue() == shown
