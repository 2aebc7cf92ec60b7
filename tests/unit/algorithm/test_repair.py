"""Repair turns: which case is shown, who is written again, what it earns, and what is counted."""

import asyncio
from dataclasses import replace

import pytest

from code_a1_recipe.algorithm.episode_types import CandidateResult, Episode, EpisodeTask, Repair, Response
from code_a1_recipe.algorithm.prompts import PROMPT_PAIRS, render
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.algorithm.repair import broken_rate, repair_turns, shown_failure
from code_a1_recipe.runs.metrics import accumulate_episode, finalize_metrics
from code_a1_recipe.runs.rollout_record import episode_records
from code_a1_recipe.training.trajectories import code_trajectories
from reward_fns import Breakdown
from sandbox import CandidateVerdict, CaseOutcome, CaseResult, SuiteVerdict

PASSED, WRONG, RAISED = CaseOutcome.PASSED, CaseOutcome.WRONG_VALUE, CaseOutcome.RAISED
QUESTION = Question(id="q", prompt="Add one.", reference="def f(x): return x + 1")


def case(call, outcome, detail=""):
    return CaseResult(
        call=call, reference_value="8", expected="9", expected_correct=False, outcome=outcome, detail=detail
    )


def verdict(*outcomes, history=(), load_error=""):
    cases = tuple(case(f"f({n})", outcome, "7") for n, outcome in enumerate(outcomes))
    return CandidateVerdict(
        loaded=not load_error,
        load_error=load_error,
        suites=(SuiteVerdict(cases=cases, rejections=()),),
        history=tuple(history),
        dropped_history=(),
        cpu_seconds=0.0,
        wall_seconds=0.0,
    )


def program(text, judged, reward=None):
    response = Response(prompt_ids=(1,), token_ids=(2,), log_probs=(-0.1,), text=text, policy_version=0)
    breakdown = None if reward is None else Breakdown(parts={"new": reward}, terms={})
    return CandidateResult(response=response, source=text, verdict=judged, reward=breakdown)


def test_the_failed_case_with_the_shortest_text_is_shown_with_the_references_value():
    judged = verdict(PASSED, WRONG, history=[case("f(111)", WRONG, "7"), case("f()", RAISED, "E")])
    assert shown_failure(judged) == {"call": "f()", "result": "raises E", "expected": "8"}
    assert shown_failure(verdict(PASSED)) == {}
    assert shown_failure(None) == {}


@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        (WRONG, "returns 7"),
        (RAISED, "raises 7"),
        (CaseOutcome.TIMED_OUT, "does not end in time"),
        (CaseOutcome.NOT_LOADED, "cannot be made, since the program does not load: SyntaxError"),
        (CaseOutcome.DIED, "gives no value (died)"),
    ],
)
def test_what_the_program_did_is_said_in_words(outcome, result):
    load_error = "SyntaxError" if outcome is CaseOutcome.NOT_LOADED else ""
    assert shown_failure(verdict(outcome, load_error=load_error))["result"] == result


@pytest.mark.parametrize("pair", PROMPT_PAIRS)
@pytest.mark.parametrize("reads_input", [False, True])
def test_every_style_has_a_template_that_shows_the_case(pair, reads_input):
    fields = {"prompt": "P1", "entry_points": "`f`", "candidate": "C1", **shown_failure(verdict(WRONG))}
    text = str(render(f"{pair}_repair", reads_input=reads_input, **fields))
    assert all(part in text for part in ("P1", "C1", "f(0)", "returns 7", "8"))


def run_turns(candidates, results, *, num_turns=1):
    asked = []

    async def write(c, turn, before, failure):
        asked.append((c, turn, before.source, failure["call"]))
        return results[c, turn]

    turns = repair_turns(candidates, num_turns=num_turns, write=write, reward=lambda found: found)
    return asyncio.run(turns), asked


def test_only_failing_programs_with_a_reward_are_written_again_and_again_while_they_fail():
    candidates = [
        program("right", verdict(PASSED), 1.0),
        program("wrong", verdict(WRONG), 0.25),
        program("outage", verdict(WRONG)),
        program("long", verdict(WRONG), 0.0),
    ]
    results = {
        (1, 1): program("wrong2", verdict(WRONG), 0.5),
        (3, 1): None,  # no room in the prompt
        (1, 2): program("wrong3", verdict(PASSED), 1.0),
    }
    repairs, asked = run_turns(candidates, results, num_turns=3)
    assert asked == [(1, 1, "wrong", "f(0)"), (3, 1, "long", "f(0)"), (1, 2, "wrong2", "f(0)")]
    assert [(one.candidate, one.turn, one.result.reward.total) for one in repairs] == [(1, 1, 0.5), (1, 2, 1.0)]


def test_the_cases_that_were_shown_earn_a_repaired_program_nothing_in_its_turn_and_later_ones():
    cases = {turn: verdict(*outcomes) for turn, outcomes in enumerate([(WRONG, WRONG), (PASSED, WRONG), (PASSED,) * 2])}
    results = {(0, turn): replace(program("again", cases[turn]), pooled=cases[turn].suites[0]) for turn in (1, 2)}
    rewarded = []

    def reward(found):
        rewarded.append([[case.call for case in (*one.verdict.suites[0].cases, *one.pooled.cases)] for one in found])
        return [replace(one, reward=Breakdown(parts={"new": 0.5}, terms={})) for one in found]

    async def write(c, turn, before, failure):
        return results[c, turn]

    repairs = asyncio.run(repair_turns([program("a", cases[0], 0.0)], num_turns=2, write=write, reward=reward))
    assert rewarded == [[["f(1)", "f(1)"]], [[]]]  # shown: f(0), then f(1)
    assert [len(one.result.verdict.suites[0].cases) for one in repairs] == [2, 2]  # the verdict keeps all


def test_no_turns_ask_nothing():
    assert run_turns([program("wrong", verdict(WRONG), 0.0)], {}, num_turns=0) == ((), [])


def episode(*repairs):
    task = EpisodeTask(question=QUESTION, step=3, seed=0, num_candidates=2, num_suites=1)
    candidates = (program("a", verdict(WRONG, PASSED), 0.5), program("b", verdict(PASSED, WRONG), 0.5))
    return Episode(task=task, candidates=candidates, repairs=repairs, repair_turns=1)


def repair(c, judged, reward):
    before = program("a", verdict(WRONG, PASSED), 0.5)
    return Repair(candidate=c, turn=1, before=before, result=program(f"again {c}", judged, reward))


def test_repairs_are_a_group_of_their_own_rows_records_and_metrics():
    made = episode(repair(0, verdict(PASSED, PASSED), 1.0), repair(1, verdict(WRONG, WRONG), 0.0))
    rows = code_trajectories(made, group="s3q0")
    assert [row.key for row in rows[:2]] == ["s3q0_0_0", "s3q0_1_0"]
    assert [(row.key, row.reward) for row in rows[2:]] == [("s3q0r1_0_0", 1.0), ("s3q0r1_1_0", 0.0)]
    first, second = made.candidates
    cut = replace(second, response=replace(second.response, is_truncated=True))
    metrics = finalize_metrics([accumulate_episode(replace(made, candidates=(first, cut)))])
    assert metrics["code/truncated_rate"] == 0.5
    assert metrics["code/repaired_rate"] == 0.5
    assert metrics["code/repair_broke_case_rate"] == 0.5
    records = [one for one in episode_records(made, selected=()) if one.kind == "repair"]
    assert [(one.candidate, one.turn, one.given_tests) for one in records] == [(0, 1, None), (1, 1, None)]
    assert [[case.outcome for case in one.repair_cases] for one in records] == [[PASSED, PASSED], [WRONG, WRONG]]


def test_a_repair_that_an_outage_took_counts_as_one_and_says_nothing_of_the_program():
    solved = SuiteVerdict(cases=(case("f(0)", PASSED),), rejections=())
    lost = replace(program("again", None), outage="no room")
    made = episode(replace(repair(0, None, None), result=lost))
    first, second = made.candidates
    hidden = replace(verdict(PASSED), suites=(solved,))
    made = replace(made, candidates=(first, replace(second, hidden=hidden)))
    metrics = finalize_metrics([accumulate_episode(made)])
    assert (metrics["judge/outages"], metrics["judge/outage_rate"]) == (1, 1 / 3)
    assert metrics["code/pass@1_after_repair"] == 1.0  # of the other program alone


def test_no_reward_is_asked_for_where_nothing_is_written_again():
    async def write(*_):
        return None

    def reward(results):
        raise AssertionError("nothing to reward")

    for programs in ([program("right", verdict(PASSED), 1.0)], [program("wrong", verdict(WRONG), 0.0)]):
        made = repair_turns(programs, num_turns=10**12, write=write, reward=reward)
        assert asyncio.run(made) == ()


def test_a_case_that_needs_no_cut_is_shown_before_a_longer_one():
    long, short = case(f"f({'1' * 5000})", WRONG, "7"), case(f"f({'1' * 390})", WRONG, "7" * 390)
    assert shown_failure(verdict(history=[long, short]))["call"] == short.call
    assert len(shown_failure(verdict(history=[long]))["call"]) == 403


def test_a_single_repair_is_no_group():
    rows = code_trajectories(episode(repair(0, verdict(PASSED, PASSED), 1.0)), group="s3q0")
    assert [row.key for row in rows] == ["s3q0_0_0", "s3q0_1_0"]


def test_a_program_that_passed_nothing_has_nothing_to_break():
    before = program("a", verdict(WRONG), 0.0)
    made = Repair(candidate=0, turn=1, before=before, result=program("b", verdict(WRONG), 0.0))
    assert broken_rate(made) is None
