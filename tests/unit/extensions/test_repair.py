"""Repair turns: which case is shown, who is written again, what it earns, and what is counted."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from code_a1_recipe.algorithm.episode_types import (
    CandidateResult,
    Episode,
    EpisodeTask,
    ExtraProgram,
    PromptTooLongError,
    Response,
    SuiteResult,
)
from code_a1_recipe.algorithm.hooks import JudgedQuestion
from code_a1_recipe.algorithm.prompts import PROMPT_PAIRS, render
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.extensions.repair import Repair, broken_rate, prompt_fields, shown_case
from code_a1_recipe.runs.metrics import accumulate_episode, finalize_metrics
from code_a1_recipe.runs.rollout_record import episode_records
from code_a1_recipe.verl_plugin.trajectories import GroupId, extra_trajectories
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


def shown_failure(judged):
    shown = shown_case(judged)
    return {} if shown is None else prompt_fields(shown, judged)


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


TASK = EpisodeTask(question=QUESTION, step=3, seed=0, num_candidates=2, num_suites=1)


@dataclass
class Runner:
    """Writes the programs of ``results`` by name; notes what it is asked for and which suites they are judged on."""

    results: dict
    asked: list = field(default_factory=list)
    suites: list = field(default_factory=list)
    pooled_among: list = field(default_factory=list)
    rewarded_programs: list = field(default_factory=list)

    async def write(self, task, name, template, fields):
        assert (task, template) == (TASK, "chat_v2_repair")
        self.asked.append((name, fields["candidate"], fields["call"]))
        if self.results[name] is None:
            raise PromptTooLongError("no room")
        return self.results[name]

    async def hidden(self, task, written):
        return {"hidden_span": (1.0, 2.0)}

    async def judged(self, task, result):
        self.suites.append(result.suites)
        return result

    async def pooled(self, task, result, among):
        self.pooled_among.append(among)
        return result

    def rewarded(self, task, results):
        self.rewarded_programs.append(results)
        return tuple(results)


def run_turns(candidates, results, *, num_turns=1, is_pooled=False):
    runner = Runner(results)
    repair = Repair(num_turns=num_turns, prompts="chat_v2", is_pooled=is_pooled)
    work = JudgedQuestion(runner=runner, task=TASK, candidates=tuple(candidates))
    found = asyncio.run(repair.after_verdicts(work))
    assert found.kept is None
    return found.programs, runner


def test_only_failing_programs_with_a_reward_are_written_again_and_again_while_they_fail():
    candidates = [
        program("right", verdict(PASSED), 1.0),
        program("wrong", verdict(WRONG), 0.25),
        program("outage", verdict(WRONG)),
        program("long", verdict(WRONG), 0.0),
    ]
    results = {
        "1r1": program("wrong2", verdict(WRONG), 0.5),
        "3r1": None,  # no room in the prompt
        "1r2": program("wrong3", verdict(PASSED), 1.0),
    }
    repairs, runner = run_turns(candidates, results, num_turns=3)
    assert runner.asked == [("1r1", "wrong", "f(0)"), ("3r1", "long", "f(0)"), ("1r2", "wrong2", "f(0)")]
    assert [(one.candidate, one.turn, one.result.reward.total) for one in repairs] == [(1, 1, 0.5), (1, 2, 1.0)]


def test_the_cases_that_were_shown_earn_a_repaired_program_nothing_in_its_turn_and_later_ones():
    cases = {turn: verdict(*outcomes) for turn, outcomes in enumerate([(WRONG, WRONG), (PASSED, WRONG), (PASSED,) * 2])}
    results = {
        f"0r{turn}": replace(program("again", cases[turn], 0.5), pooled=cases[turn].suites[0]) for turn in (1, 2)
    }
    repairs, runner = run_turns([program("a", cases[0], 0.0)], results, num_turns=2)
    first, second = (one for (one,) in runner.rewarded_programs)
    assert [case.call for case in (*first.verdict.suites[0].cases, *first.pooled.cases)] == ["f(1)", "f(1)"]
    assert (second.verdict, second.pooled.cases) == (None, ())  # f(1) was shown too, and nothing else was met
    assert [len(one.result.verdict.suites[0].cases) for one in repairs] == [2, 2]  # the verdict keeps all


def test_the_shown_case_earns_nothing_in_another_spelling_and_leaves_no_empty_suite():
    other = replace(case("f(0.0)", PASSED), key="k0")
    first, again = verdict(WRONG, PASSED), verdict(PASSED, PASSED, history=[other])
    shown = replace(first.suites[0].cases[0], key="k0")
    first = replace(first, suites=(SuiteVerdict(cases=(shown, first.suites[0].cases[1]), rejections=()),))
    lonely = SuiteVerdict(cases=(replace(other, call="f(0)"),), rejections=())
    again = replace(again, suites=(lonely, SuiteVerdict(cases=(other, again.suites[0].cases[1]), rejections=())))
    _, runner = run_turns([program("a", first, 0.0)], {"0r1": program("again", again, 0.5)})
    (rewarded,) = runner.rewarded_programs[0]
    assert [[one.call for one in suite.cases] for suite in rewarded.verdict.suites] == [["f(1)"]]
    assert rewarded.verdict.history == ()


def test_a_program_whose_own_suites_held_the_shown_case_alone_is_rewarded_on_the_others_pool():
    again = replace(program("again", verdict(PASSED), 0.5), pooled=verdict(PASSED, PASSED).suites[0])
    _, runner = run_turns([program("a", verdict(WRONG), 0.0)], {"0r1": again}, is_pooled=True)
    (rewarded,) = runner.rewarded_programs[0]
    assert rewarded.verdict.suites == ()
    assert [one.call for one in rewarded.pooled.cases] == ["f(1)"]


@pytest.mark.parametrize("is_pooled", [False, True])
def test_a_repaired_program_meets_the_suites_of_the_first_one_and_the_cases_of_all_where_those_are_rewarded(is_pooled):
    suites = (SuiteResult(response=Response.scripted(""), asserts=("assert f(0) == 8",)),)
    candidates = (replace(program("a", verdict(WRONG), 0.0), suites=suites),)
    results = {"0r1": program("again", verdict(PASSED), 1.0)}
    (repair,), runner = run_turns(candidates, results, is_pooled=is_pooled)
    assert runner.suites == [suites]
    assert runner.pooled_among == ([candidates] if is_pooled else [])
    assert (repair.kind, repair.result.suites, repair.result.hidden_span) == ("repair", (), (1.0, 2.0))


EXTENSIONS = (Repair(num_turns=1, prompts="chat_v2", is_pooled=False),)


def episode(*repairs):
    candidates = (program("a", verdict(WRONG, PASSED), 0.5), program("b", verdict(PASSED, WRONG), 0.5))
    return Episode(task=TASK, candidates=candidates, extra_programs=repairs)


def rows_of(made):
    return extra_trajectories(list(EXTENSIONS[0].extra_groups(made)), "code", group=GroupId(3, 0))


def repair(c, judged, reward):
    before = program("a", verdict(WRONG, PASSED), 0.5)
    result = program(f"again {c}", judged, reward)
    return ExtraProgram(kind="repair", candidate=c, turn=1, before=before, result=result)


def test_repairs_are_a_group_of_their_own_rows_records_and_metrics():
    made = episode(repair(0, verdict(PASSED, PASSED), 1.0), repair(1, verdict(WRONG, WRONG), 0.0))
    assert [(row.key, row.reward) for row in rows_of(made)] == [("s3q0-r1_0_0", 1.0), ("s3q0-r1_1_0", 0.0)]
    first, second = made.candidates
    cut = replace(second, response=replace(second.response, is_truncated=True))
    metrics = finalize_metrics([accumulate_episode(replace(made, candidates=(first, cut)), EXTENSIONS)])
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
    metrics = finalize_metrics([accumulate_episode(made, EXTENSIONS)])
    assert (metrics["judge/outages"], metrics["judge/outage_rate"]) == (1, 1 / 3)
    assert metrics["code/pass@1_after_repair"] == 1.0  # of the other program alone


def test_no_reward_is_asked_for_where_nothing_is_written_again():
    for programs in ([program("right", verdict(PASSED), 1.0)], [program("wrong", verdict(WRONG), 0.0)]):
        repairs, runner = run_turns(programs, {"0r1": None}, num_turns=10**12)
        assert (repairs, runner.rewarded_programs) == ((), [])


def test_a_case_that_needs_no_cut_is_shown_before_a_longer_one():
    long, short = case("f" * 5000, WRONG, "7"), case("f" * 400, WRONG, "7" * 390)
    assert shown_failure(verdict(history=[long, short]))["call"] == short.call
    assert len(shown_failure(verdict(history=[long]))["call"]) == 403


def test_the_share_of_cases_that_a_repair_broke_is_of_those_that_passed_before():
    before = program("a", verdict(PASSED, PASSED, PASSED, WRONG), 0.5)
    made = replace(repair(0, verdict(PASSED, WRONG, PASSED, WRONG), 0.5), before=before)
    assert broken_rate(made) == pytest.approx(1 / 3)
    lost = replace(made, result=replace(made.result, verdict=None))
    nothing_passed = replace(made, before=program("a", verdict(WRONG), 0.0))
    assert broken_rate(lost) is broken_rate(replace(made, before=lost.result)) is broken_rate(nothing_passed) is None


def test_metrics_are_of_repairs_alone_and_go_on_after_one_without_a_reward():
    lost = repair(0, verdict(WRONG, WRONG), None)
    others = [replace(repair(1, verdict(WRONG), 0.0), kind=kind) for kind in ("a", "z")]
    made = episode(others[0], lost, repair(1, verdict(PASSED, PASSED), 1.0), others[1])
    rates = [value for name, value in EXTENSIONS[0].metrics(made) if name == "code/repaired_rate"]
    assert rates == [True]


def test_no_turn_is_taken_beyond_the_number():
    wrong = {f"0r{turn}": program("again", verdict(WRONG), 0.0) for turn in (1, 2, 3, 4)}
    repairs, _ = run_turns([program("a", verdict(WRONG), 0.0)], wrong, num_turns=2)
    assert [one.turn for one in repairs] == [1, 2]
