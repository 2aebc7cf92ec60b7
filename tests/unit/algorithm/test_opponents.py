"""Opponents: who enters the pool, who leaves it, who is drawn, and who beat whom."""

import asyncio
import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from code_a1_recipe.algorithm.mistake_book import BookUpdate, MistakeBook
from code_a1_recipe.algorithm.opponents import (
    SAMPLINGS,
    Opponent,
    OpponentPool,
    Opponents,
    OpponentSettings,
    OpponentUpdate,
    PoolSettings,
    collect_opponents,
)
from code_a1_recipe.runs.metrics import accumulate_episode, finalize_metrics
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


def pool_of(*programs, games=None, **changes):
    pool = OpponentPool(settings(**changes))
    pool.update("q", OpponentUpdate(programs=programs, games=games or {(0, 0): (1, 2)}))
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
    pool.update("q", OpponentUpdate(programs=(old("e", 1),)))
    assert [one["texts"] for one in pool.state()["programs"]["q"]] == [("b",), ("d",), ("e",)]
    pool.update("q", OpponentUpdate(programs=(old("f", 2), old("g", 3))))
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
        pool.update("q", OpponentUpdate(programs=(old(text, generation),), games={(generation, 0): (1, 3)}))
    assert sum(map(len, pool.state().get("programs", {}).values())) <= most
    again = OpponentPool(settings(most=most))
    again.restore(json.loads(json.dumps(pool.state())))
    for one in (pool, again):
        one.update("q", OpponentUpdate(programs=(old("new", 6),), games={(6, 6): (0, 1)}))
    assert json.dumps(again.state()) == json.dumps(pool.state())
    assert drawn(again, 7) == drawn(pool, 7)


def test_the_pool_is_saved_with_the_mistake_book(tmp_path):
    book = MistakeBook()
    update = OpponentUpdate(
        suites=(Opponent(texts=("assert f(1) == 1", "assert f(2) == 2"), generation=1),), games={(1, 0): (1, 2)}
    )
    book.update("q", BookUpdate(opponents=update))
    book.save(tmp_path / "book.json")
    assert MistakeBook.load(tmp_path / "book.json") == book
    assert book != MistakeBook()


# ------------------------------ whom to meet ------------------------------

# The Test LLM's generation 1 breaks all programs of generation 0 and half of those of generation 1.
GAMES = {(0, 0): (5, 10), (0, 1): (0, 10), (1, 0): (10, 10), (1, 1): (5, 10)}


def test_prioritized_prefers_those_who_win():
    for is_code in (False, True):  # by Laplace's rule: 15 and 5 broken of 20
        weights = SAMPLINGS["prioritized"](GAMES, is_code=is_code)
        assert weights == pytest.approx({0: (6 / 22) ** 2, 1: (16 / 22) ** 2})
    assert SAMPLINGS["uniform"](GAMES, is_code=True) == {0: 1.0, 1: 1.0}


def test_nash_of_rock_paper_scissors_is_even_and_leaves_out_who_is_dominated():
    circle = {(i, j): ({0: 5, 1: 0, 2: 10}[(i - j) % 3], 10) for i in range(3) for j in range(3)}
    for is_code in (False, True):
        assert SAMPLINGS["nash"](circle, is_code=is_code) == pytest.approx(dict.fromkeys(range(3), 1 / 3))
        assert SAMPLINGS["nash"](GAMES, is_code=is_code) == pytest.approx({0: 0.0, 1: 1.0})
    assert [sampling({}, is_code=True) for sampling in SAMPLINGS.values()] == [{}, {}, {}]


def test_a_generation_is_met_by_its_weight_however_many_members_it_has():
    pool = OpponentPool(settings(code=0.25, most=8))
    members = (old("a", 0), *(old(text, 1) for text in "bcdefg"))
    pool.update("q", OpponentUpdate(programs=members, games=GAMES))
    met = Counter(drawn(pool, step).programs[0].texts[0] for step in range(1, 2000))
    assert 900 < met["a"] < 1100


def test_a_generation_without_weight_is_still_met_now_and_then():
    pool = OpponentPool(settings(code=0.25, most=8, sampling="nash"))
    pool.update("q", OpponentUpdate(programs=(old("a", 0), old("b", 1)), games=GAMES))
    met = Counter(drawn(pool, step).programs[0].texts[0] for step in range(1, 3000))
    assert met["b"] > 2900
    assert met["a"] >= 1


def test_ratings_are_those_of_the_games():
    metrics = pool_of(old("a"), games=GAMES).metrics()
    assert metrics["opponents/programs"] == 1.0
    assert metrics["opponents/test_rating"] == pytest.approx(metrics["opponents/code_rating"], abs=1.0)
    assert metrics["opponents/test_rating"] > 200
    assert OpponentPool().metrics() == {}


def test_games_of_generations_long_gone_are_forgotten_and_their_members_count_for_the_oldest_known():
    pool = OpponentPool(settings())
    for generation in range(70):
        pool.update("q", OpponentUpdate(games={(generation, generation): (1, 2)}))
    pool.update("q", OpponentUpdate(programs=(old("a", 0),), games={(69, 0): (0, 4)}))
    games = {(test, code): (broken, met) for test, code, broken, met in pool.state()["games"]}
    assert {test for test, _ in games} == set(range(6, 70))
    assert games[69, 6] == (0, 4)
    assert [one.texts for one in drawn(pool, 700).programs] == [("a",)]


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


def test_who_met_whom_and_who_enters():
    update = collect_opponents(played()[0])
    assert update.games == {
        (4, 4): (4, 4), (2, 4): (2, 2), (3, 4): (0, 2), (4, 1): (2, 2), (2, 1): (1, 1), (3, 1): (0, 1),
    }  # fmt: skip
    assert [one.texts for one in update.programs] == [(PROGRAMS[0],), (PROGRAMS[1],)]
    assert {one.generation for one in update.programs + update.suites} == {4}
    assert {one.texts for one in update.suites} == {("assert f(1) == 1",)}  # the judge's call


def test_opponents_stand_in_metrics_and_records_apart():
    episode, _, _ = played()
    metrics = finalize_metrics(accumulate_episode(episode, seconds=1.0))
    assert (metrics["code/candidates"], metrics["test/suites"]) == (2, 4)
    assert metrics["opponents/program_broken_rate"] == 1.0
    records = episode_records(episode, selected=(2,))
    kinds = [(one.kind, one.candidate, one.selected, len(one.suites)) for one in records]
    assert kinds == [("sampled", 0, False, 2), ("sampled", 1, False, 2), ("opponent", 0, True, 2)]
