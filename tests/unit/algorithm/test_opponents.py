"""Opponents: who enters the pool, who leaves it, and who is drawn."""

import asyncio
import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.algorithm.mistake_book import BookUpdate, MistakeBook
from code_a1_recipe.algorithm.opponents import (
    Opponent,
    OpponentPool,
    Opponents,
    OpponentSettings,
    PoolSettings,
    collect_opponents,
)
from code_a1_recipe.runs.metrics import accumulate_episode
from code_a1_recipe.runs.rollout_record import episode_records
from code_a1_recipe.training.trajectories import code_trajectories, test_trajectories as suite_trajectories
from sandbox import CaseOutcome, CaseResult

from .test_episode import PROGRAMS, ScriptedJudge, ScriptedSampler, runner, task


def settings(*, code=0.5, test=0.5, most=3, **changes):
    pools = {"code": PoolSettings(share=code, max_per_question=most), "test": PoolSettings(share=test)}
    return OpponentSettings(**pools, **changes)


def old(text, generation=0):
    return Opponent(texts=(text,), generation=generation)


def drawn(pool, step, *, seed=3):
    return pool.draw("q", step=step, num_candidates=4, num_suites=4, seed=seed)


def pool_of(*programs, **changes):
    pool = OpponentPool(settings(**changes))
    pool.update("q", Opponents(programs=programs))
    return pool


# ------------------------------ the pool ------------------------------


def test_a_share_of_the_own_number_is_drawn_rounded_up_and_as_often_as_there_are_any():
    assert [PoolSettings(share=share).num_drawn(8) for share in (0.0, 0.1, 0.25, 1.0)] == [0, 1, 2, 8]
    assert {one.texts[0] for one in drawn(pool_of(old("a")), 1).programs} == {"a"}
    assert drawn(pool_of(old("a"), code=0.0), 1).programs == ()


def test_a_full_pool_loses_the_oldest_of_the_generation_with_most_of_them():
    pool = pool_of(old("a", 0), old("b", 0), old("c", 1), old("d", 1))
    assert {one.texts[0] for one in drawn(pool, 11, seed=0).programs} <= {"b", "c", "d"}
    assert [one["texts"] for one in pool.state()["programs"]["q"]] == [("b",), ("c",), ("d",)]
    pool.update("q", Opponents(programs=(old("e", 1),)))
    assert [one["texts"] for one in pool.state()["programs"]["q"]] == [("b",), ("d",), ("e",)]
    pool.update("q", Opponents(programs=(old("f", 2), old("g", 3))))
    assert [one["texts"] for one in pool.state()["programs"]["q"]] == [("e",), ("f",), ("g",)]


def test_a_text_that_is_there_keeps_its_generation():
    assert pool_of(old("a", 0), old("a", 4)).state()["programs"]["q"] == [{"texts": ("a",), "generation": 0}]


def test_draws_depend_on_seed_step_and_question_alone():
    pool = pool_of(*map(old, "abc"))
    assert drawn(pool, 5) == drawn(pool, 5)
    assert len({tuple(one.texts for one in drawn(pool, step).programs) for step in range(1, 40)}) > 3


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 5)), max_size=30), st.integers(1, 4))
def test_a_pool_is_bounded_and_a_restored_one_goes_on_alike(items, most):
    pool = OpponentPool(settings(most=most))
    for text, generation in items:
        pool.update("q", Opponents(programs=(old(text, generation),)))
    assert sum(map(len, pool.state()["programs"].values())) <= most
    again = OpponentPool(settings(most=most))
    again.restore(json.loads(json.dumps(pool.state())))
    for one in (pool, again):
        one.update("q", Opponents(programs=(old("new", 6),)))
    assert json.dumps(again.state()) == json.dumps(pool.state())
    assert drawn(again, 7) == drawn(pool, 7)


def test_the_pool_is_saved_with_the_mistake_book(tmp_path):
    book = MistakeBook()
    update = Opponents(suites=(Opponent(texts=("assert f(1) == 1", "assert f(2) == 2"), generation=1),))
    book.update("q", BookUpdate(opponents=update))
    book.save(tmp_path / "book.json")
    assert MistakeBook.load(tmp_path / "book.json") == book
    assert book != MistakeBook()


def test_every_generation_is_met_alike_however_many_it_left():
    pool = pool_of(old("a", 0), *(old(text, 1) for text in "bcdefg"), code=0.25, most=8)
    met = Counter(drawn(pool, step).programs[0].texts[0] for step in range(1, 2000))
    assert 900 < met["a"] < 1100
    assert min(met.values()) > 100


def test_the_metrics_are_the_sizes():
    assert pool_of(old("a")).metrics() == {"opponents/programs": 1.0, "opponents/suites": 0.0}
    assert OpponentPool().metrics() == {}


# ------------------------------ an episode with opponents ------------------------------

OLD = "def f(x): return 9"


class ReplayingJudge(ScriptedJudge):
    """Replays fail as well, but for ``f(8)``."""

    async def judge(self, request):
        verdict = await super().judge(request)
        outcomes = {call: CaseOutcome.PASSED if call == "f(8)" else CaseOutcome.WRONG_VALUE for call in request.history}
        shape = {"reference_value": "1", "expected": "1", "expected_correct": True}
        history = tuple(CaseResult(call=call, outcome=outcome, **shape) for call, outcome in outcomes.items())
        return replace(verdict, history=history)


def played():
    log: list[str] = []
    code, test = ScriptedSampler("code", PROGRAMS, log), ScriptedSampler("test", ["assert f(1) == 1"], log)
    judge = ReplayingJudge(log)
    suites = (Opponent(texts=("f(7)", "f(8)"), generation=2), Opponent(texts=("f(8)",), generation=3))
    met = Opponents(generation=4, programs=(old(OLD, 1),), suites=suites)
    one = task(opponents=met, history=("f(5)", *met.calls))
    return asyncio.run(runner(code, test, judge).run(one)), judge, test


def test_suites_are_written_for_earlier_programs_and_the_calls_of_earlier_suites_are_replayed():
    episode, judge, test = played()
    asked = {request.candidate: request for request in judge.requests}
    assert [asked[source].suites for source in (*PROGRAMS, OLD)] == [(("assert f(1) == 1",),) * 2] * 3
    assert [asked[source].history for source in (*PROGRAMS, OLD)] == [("f(5)", "f(7)", "f(8)")] * 3
    assert OLD in "".join(test.prompts)
    assert episode.victims[0].reward is None
    assert [candidate.reward.total for candidate in episode.candidates] == pytest.approx([1 / 6, 1 / 6])


def test_earlier_programs_train_the_test_llm_and_not_the_code_llm():
    episode, _, _ = played()
    assert [len(row) for row in episode.suite_rewards_CS()] == [2, 2, 2]
    rows = suite_trajectories(episode, selected=(0, 2), group="s1q0")
    assert [(row.group, row.member) for row in rows] == [("s1q0c0", 0), ("s1q0c0", 1), ("s1q0c2", 0), ("s1q0c2", 1)]
    assert len(code_trajectories(episode, group="s1q0")) == 2


def test_broken_programs_and_the_suites_that_broke_them_enter():
    update = collect_opponents(played()[0])
    assert [one.texts for one in update.programs] == [(PROGRAMS[0],), (PROGRAMS[1],)]
    assert {one.generation for one in update.programs + update.suites} == {4}
    assert {one.texts for one in update.suites} == {("assert f(1) == 1",)}  # the judge's call


def test_opponents_stand_in_metrics_and_records_apart():
    episode, _, _ = played()
    sums = accumulate_episode(episode)
    assert (sums["code/loaded_rate"][1], sums["test/reward"][1]) == (2, 4)
    records = episode_records(episode, selected=(2,))
    kinds = [(one.kind, one.candidate, one.selected, len(one.suites)) for one in records]
    assert kinds == [("sampled", 0, False, 2), ("sampled", 1, False, 2), ("opponent", 0, True, 2)]
