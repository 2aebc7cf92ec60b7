"""``code-a1 data prepare --base-model``: a scripted model behind a real server, and the real judge."""

import re
from collections import Counter

import pytest

from code_a1_recipe.data.reader import iter_rows
from code_a1_recipe.jobs.jsonl_store import JsonlStore

from ..evaluate.stand_in_endpoint import StandInEndpoint
from .conftest import card_in, row

NAMES = ("alpha", "bravo2", "charlie", "delta")
NUM_SOLVED = {"alpha": 0, "bravo2": 1, "charlie": 2, "delta": 4}
"""Of 4 programs that the scripted model writes."""
ROWS = [row(name) for name in NAMES]


def program(name, *, is_right):
    return f"```python\ndef {name}(x):\n    return x + {len(name) if is_right else -1}\n```"


class ScriptedModel(StandInEndpoint):
    """Its first responses to a question are right, as many as ``NUM_SOLVED`` says."""

    def __init__(self):
        super().__init__(self._respond)
        self.asked = Counter()

    def _respond(self, messages, seed):
        name = re.search(r"function (\w+), which", messages[-1]["content"])[1]
        self.asked[name] += 1
        return program(name, is_right=self.asked[name] <= NUM_SOLVED[name])


@pytest.fixture
def model():
    with ScriptedModel() as started:
        yield started


@pytest.fixture
def rate(run, model):
    """Run the command with the scripted model; its status and what it wrote to stdout and stderr."""

    def command(*arguments, **options):
        named = ["--base-endpoint", model.url, "--base-endpoint-model", "stand-in", "--samples", "4"]
        return run(*arguments, *named, **options)

    return command


def table_of(path):
    return {line["id"]: line for line in iter_rows(path)}


def test_questions_that_are_solved_sometimes_stay_bounds_included(rate, write, dropped, model, tmp_path, kept):
    status, out, _ = rate(write(*ROWS), "--keep", "0.25", "0.5")
    assert status == 0
    rows = table_of(tmp_path / "out.parquet")
    assert {name: line["base_pass_rate"] for name, line in rows.items()} == {"bravo2": 0.25, "charlie": 0.5}
    assert {(line["base_samples"], line["base_model"]) for line in rows.values()} == {(4, "stand-in")}
    assert kept() == ["bravo2", "charlie"], "training reads the file with its further columns"
    assert {name: (line["reason"], line["detail"]) for name, line in dropped().items()} == {
        "alpha": ("too_hard", "0 of 4 programs solve it, the first failure: wrong_value: alpha(1)"),
        "delta": ("too_easy", "4 of 4 programs solve it"),
    }
    shown = "solves them: 0/4: 1, 1/4: 1, 2/4: 1, 4/4: 1; --keep 0.25 0.5"
    assert shown in out
    card = card_in(tmp_path)
    assert f"{shown}.\n" in card
    assert "| too_easy | 1 |" in card
    assert {(request["temperature"], request["top_p"]) for request in model.requests} == {(1.0, 1.0)}, "as in training"
    assert len({(request["seed"], str(request["messages"])) for request in model.requests}) == 16


def test_what_goes_for_another_reason_is_not_sampled(rate, write, dropped, model):
    bad = row("echo", tests=["assert echo(1) == 77"])
    again = row("foxtrot", prompt=ROWS[1]["prompt"])
    rate(write(*ROWS, bad, again))
    assert dict(model.asked) == dict.fromkeys(NAMES, 4)
    assert {name: line["reason"] for name, line in dropped().items()} == {
        "echo": "reference_fails",
        "foxtrot": "near_duplicate",
    }


def test_a_question_is_solved_when_all_its_tests_hold_and_not_without_a_program(rate, write, model, tmp_path):
    responses = {
        "one": "```python\ndef one(x):\n    return 4\n```",  # right in the first test only
        "two": "I cannot write programs.",
        "three": "```python\ndef another(x):\n    return x + 5\n```",
    }
    rows = [row(name, tests=[f"assert {name}({n}) == {n + len(name)}" for n in range(1, 20)]) for name in responses]
    model._answer = lambda messages, seed: next(text for name, text in responses.items() if name in str(messages))
    rate(write(*rows))
    assert {line["base_pass_rate"] for line in table_of(tmp_path / "out.parquet").values()} == {0.0}


@pytest.mark.parametrize("num_rows", [3, 9])
def test_a_killed_command_repeats_neither_responses_nor_verdicts(rate, write, model, judge, monkeypatch, num_rows):
    path, append, written = write(*ROWS), JsonlStore.append, []

    def append_or_stop(self, line):
        if self.path.parent.name == "out.parquet.base":
            if len(written) == 16 + num_rows:
                raise KeyboardInterrupt
            written.append(line)
        return append(self, line)

    monkeypatch.setattr(JsonlStore, "append", append_or_stop)
    assert rate(path)[0] == 130
    monkeypatch.setattr(JsonlStore, "append", append)
    model.requests.clear()
    judge.num_requests = 0
    assert rate(path)[0] == 0
    assert model.requests == []
    assert 0 < judge.num_requests <= 8, "equal programs of a question are judged once"
    judge.num_requests = 0
    assert rate(path, "--keep", "0", "0.5", "--overwrite")[0] == 0, "another choice asks nobody again"
    assert (model.requests, judge.num_requests) == ([], 0)


def test_a_changed_test_is_judged_anew(rate, write, model, tmp_path):
    rate(write(*ROWS))
    changed = row("delta", tests=["assert delta(1) == 6", "assert delta(10 ** 3) == 1005"])
    model.requests.clear()
    rate(write(*ROWS[:3], changed), "--overwrite")
    assert model.requests == []
    assert len({line["question"] for line in iter_rows(tmp_path / "out.parquet.base" / "verdicts.jsonl")}) == 5


def test_an_outage_is_no_verdict_and_is_tried_again(rate, write, judge, model, dropped, kept):
    path = write(*ROWS)
    judge.down_for = "return x + -1"
    status, _, err = rate(path)
    assert (status, "3 rows could not be judged" in err) == (1, True)
    assert kept() == ["delta"]
    assert {line["reason"] for line in dropped().values()} == {"outage"}
    judge.down_for = ""
    model.requests.clear()
    assert rate(path)[0] == 0
    assert model.requests == []
    assert len(kept()) == 4


def test_when_no_question_is_left_the_rates_and_a_way_out_are_told(rate, write, tmp_path, kept):
    status, out, err = rate(write(ROWS[0], ROWS[3]), "--keep", "0.05", "0.95")
    assert "solves them: 0/4: 1, 4/4: 1; --keep 0.05 0.95" in out
    assert status == 1
    assert "no row is left" in err
    assert "widen --keep, raise --samples" in err
    assert kept() == []
    assert (tmp_path / "out.parquet.card.md").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--keep 0.05 0.95", "are settings for rating questions by a model"),
        ("--base-temperature 0.5", "are settings for rating questions by a model"),
        ("--base-model {short} --keep 0.9 0.1", "0 <= LOW <= HIGH <= 1, got 0.9 0.1"),
        ("--base-model {short} --keep nan 1", "got nan 1"),
        ("--base-model {short} --prompt polite", "--prompt must be one of chat_v2"),
        ("--base-model {unknown}", "/unknown cannot be loaded"),
        ("--base-model {short} --base-max-tokens 2000", "less than --base-max-prompt-tokens 4096 + "),
        ("--base-model /no/such/model", "--base-model='/no/such/model' is no folder here"),
        ("--base-model {empty}", "neither a model (no config.json) nor a run"),
    ],
)
def test_bad_input_is_refused_before_any_work(run, write, judge, tmp_path, arguments, words):
    config = {"short": '{"max_position_embeddings": 5000}', "unknown": '{"model_type": "none of those known"}'}
    places = {name: tmp_path / name for name in ("empty", *config)}
    for name, place in places.items():
        place.mkdir()
        if name in config:
            (place / "config.json").write_text(config[name])
    status, out, err = run(write(*ROWS), *arguments.format(**places).split())
    assert (status, out, judge.num_requests) == (2, "", 0)
    assert words in " ".join(err.replace("│", " ").split())
    assert "Traceback" not in err
    assert not list(tmp_path.glob("out.parquet*"))
