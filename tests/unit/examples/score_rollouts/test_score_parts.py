"""Outages, order and the output file of ``python -m examples.score_rollouts``, without a sandbox."""

import json
import threading
from dataclasses import replace

import pytest

from code_a1_recipe.algorithm.rewards import RewardChoice, RewardSettings
from code_a1_recipe.data.reader import question_table
from code_a1_recipe.errors import OutageError, OutputError
from code_a1_recipe.jobs.jsonl_store import JsonlStore
from code_a1_recipe.jobs.judge_loop import MAX_OUTAGES_IN_A_ROW
from examples.score_rollouts.command import judge_items
from examples.score_rollouts.input import Item, read_items
from examples.score_rollouts.rows import ITEMS_TOGETHER, Scorer, in_pieces
from examples.score_rollouts.summary import Summary
from sandbox import SandboxUnavailableError

REWARDS = RewardSettings(alpha=0.5, adversarial="release", nonprintable_penalty=False)


@pytest.fixture
def items(tmp_path) -> list[Item]:
    """Three code items of one question."""
    path = tmp_path / "rollouts.jsonl"
    row = {
        "id": "q",
        "reference": "def f(x): return x",
        "tests": ["assert f(1) == 1"],
        "response": "def f(x): return x",
    }
    path.write_text((json.dumps(row) + "\n") * 3)
    return read_items([path], question_table([]))


class FlakyJudge:
    """Out of order for the first ``num_outages`` requests, then gives one verdict."""

    def __init__(self, verdict, *, num_outages):
        self.verdict = verdict
        self.num_left = num_outages
        self.lock = threading.Lock()

    def judge_all(self, requests):
        with self.lock:
            num_lost = min(self.num_left, len(requests))
            self.num_left -= num_lost
        return [SandboxUnavailableError("no answer")] * num_lost + [self.verdict] * (len(requests) - num_lost)


@pytest.fixture
def scored(tmp_path):
    """Score items with a judge as the command does; the rows in the order of the items."""

    def score(items, judge, *, scorer=None, done=()):
        scorer = scorer or Scorer(rewards=REWARDS, num_cases=4)
        with JsonlStore(tmp_path / "scored.jsonl", settings={}) as store:
            for item in done:
                store.append({"item": item})
            judge_items(items, store, scorer, judge.judge_all, num_threads=2)
            return list(store.rows())

    return score


def test_an_outage_is_tried_again_and_leaves_no_trace(items, scored, make_suite, make_verdict):
    rows = scored(items, FlakyJudge(make_verdict(make_suite(1)), num_outages=2))
    assert sorted(row["item"] for row in rows) == [0, 1, 2]
    assert {row["outage"] for row in rows} == {""}
    assert {row["reward"]["total"] for row in rows} == {1.0}


def test_an_outage_that_lasts_is_a_row_without_a_reward(items, scored, make_suite, make_verdict):
    rows = scored(items, FlakyJudge(make_verdict(make_suite(1)), num_outages=5))
    lost = [row for row in rows if row["outage"]]
    assert len(rows) == 3
    assert [row["reward"] for row in lost] == [None, None]
    assert "no answer" in lost[0]["outage"]


def test_a_sandbox_that_is_down_stops_the_run(items, scored, make_suite, make_verdict):
    many = [replace(items[0], index=index, episode=(index,)) for index in range(ITEMS_TOGETHER * MAX_OUTAGES_IN_A_ROW)]
    judge = FlakyJudge(make_verdict(make_suite(1)), num_outages=len(many))
    with pytest.raises(OutageError, match=f"{MAX_OUTAGES_IN_A_ROW} items in a row"):
        scored(many, judge)


def test_items_of_one_question_go_to_the_judge_together(items):
    other = replace(items[1], question=replace(items[1].question, id="other"))
    pieces = in_pieces([items[0], other, items[2]])
    assert [[item.index for item in piece] for piece in pieces] == [[0, 2], [1]]


SET_LEVEL = """
from reward_fns import Breakdown


def share(question):
    judged = sum(one.verdict is not None for one in question.candidates)
    return [one.verdict and Breakdown(parts={"share": 1 / judged}) for one in question.candidates]
"""


@pytest.fixture
def set_level(items, tmp_path):
    """Items of one episode, and a scorer whose reward is one over the candidates that were judged."""
    (tmp_path / "mine.py").write_text(SET_LEVEL)
    rewards = REWARDS.replaced(where="rewards", code=RewardChoice(name="share", path=str(tmp_path / "mine.py")))
    together = [replace(item, role="recorded code", episode=("one",)) for item in items]
    return together, Scorer(rewards=rewards, num_cases=4)


@pytest.mark.parametrize(("num_outages", "done", "wanted"), [(0, (), 3), (2, (), 3), (0, (1,), 2)])
def test_an_episode_is_rewarded_as_a_whole_also_after_an_outage_or_a_stop(
    set_level, scored, make_suite, make_verdict, num_outages, done, wanted
):
    items, scorer = set_level
    judge = FlakyJudge(make_verdict(make_suite(1)), num_outages=num_outages)
    rows = [row for row in scored(items, judge, scorer=scorer, done=done) if "reward" in row]
    assert [row["reward"]["parts"] for row in rows] == [{"share": 1 / 3}] * wanted
    assert {row["item"] for row in rows} == {0, 1, 2} - set(done)


def test_outages_count_apart_from_every_mean(items, scored, make_suite, make_verdict):
    rows = scored(items, FlakyJudge(make_verdict(make_suite(1)), num_outages=5))
    summary = Summary(rows)
    assert (summary.num_rows, summary.num_outages, summary.values["code"]["reward"]) == (3, 2, [1.0])
    assert "3 items, 2 of them outages" in summary.text()


# ------------------------------ the file ------------------------------

SETTINGS = {"alpha": 0.5}


def row(item: int, outage: str = "") -> dict:
    return {"item": item, "outage": outage}


def test_rows_end_in_the_order_of_their_items(tmp_path):
    with JsonlStore(tmp_path / "out.jsonl", settings=SETTINGS) as output:
        for item in (2, 0, 1):
            output.append(row(item))
        output.sort()
        output.append(row(3))
        assert [entry["item"] for entry in output.rows()] == [0, 1, 2, 3]
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["item"] for line in lines] == [0, 1, 2, 3]


def test_rows_of_outages_are_left_out_when_the_file_is_taken_up(tmp_path):
    with JsonlStore(tmp_path / "out.jsonl", settings=SETTINGS) as output:
        output.append(row(0))
        output.append(row(1, outage="down"))
    with JsonlStore(tmp_path / "out.jsonl", settings=SETTINGS) as output:
        assert output.done == {0}
        output.append(row(1))
        output.sort()
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [row(0), row(1)]


@pytest.mark.parametrize("cut", range(1, 27))
def test_a_last_line_that_was_cut_off_is_removed_wherever_it_was_cut(tmp_path, cut):
    path = tmp_path / "out.jsonl"
    with JsonlStore(path, settings=SETTINGS) as output:
        output.append(row(0))
        whole = path.read_bytes()
        output.append(row(1))
    path.write_bytes(path.read_bytes()[: len(whole) + cut])
    with JsonlStore(path, settings=SETTINGS) as output:
        assert output.done == {0} if cut < len(whole) else {0, 1}
        assert output.num_repaired == (cut < len(whole))


def test_two_processes_do_not_write_one_file(tmp_path):
    with (
        JsonlStore(tmp_path / "out.jsonl", settings=SETTINGS),
        pytest.raises(OutputError, match="being written by another process"),
    ):
        JsonlStore(tmp_path / "out.jsonl", settings=SETTINGS)


@pytest.mark.parametrize("content", ["hello\n", '{"item": "x"}\n', "[1]\n"])
def test_a_file_of_something_else_is_left_alone(tmp_path, content):
    path = tmp_path / "out.jsonl"
    path.write_text(content)
    with pytest.raises(OutputError, match="not as an output that can"):
        JsonlStore(path, settings=SETTINGS)
    (tmp_path / "out.jsonl.settings.json").write_text(json.dumps(SETTINGS))
    with pytest.raises(OutputError, match="line 1 is no row of this command"):
        JsonlStore(path, settings=SETTINGS)
    assert path.read_text() == content


def test_an_output_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "folder").write_text("a file, in truth")
    with pytest.raises(OutputError, match="cannot be written"):
        JsonlStore(tmp_path / "folder" / "out.jsonl", settings=SETTINGS)
