"""The order of events in an episode, masked outages, seeds; samplers and judge are scripted."""

import asyncio
import time
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from code_a1_recipe.algorithm.episode_types import EpisodeTask, PromptTooLongError, Response
from code_a1_recipe.algorithm.hooks import Extension
from code_a1_recipe.algorithm.prompts import PromptSettings
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.algorithm.rewards import RewardChoice, RewardSettings
from code_a1_recipe.algorithm.sampling import sampling_seed
from code_a1_recipe.algorithm.settings import EpisodeSettings
from code_a1_recipe.algorithm.validation import ValidationRunner
from code_a1_recipe.runs.metrics import accumulate_episode, busy_spans, finalize_metrics
from code_a1_recipe.runs.rollout_record import episode_records
from sandbox import CandidateVerdict, CaseOutcome, CaseResult, JudgeRequest, SandboxUnavailableError, SuiteVerdict

QUESTION = Question(id="q1", prompt="Add one.", reference="def f(x): return x + 1")
HIDDEN = replace(QUESTION, tests=("assert f(8) == 9",))


def response(text: str) -> Response:
    return Response(prompt_ids=(1,), token_ids=(2, 3), log_probs=(-0.1, -0.2), text=text, policy_version=0)


@dataclass
class ScriptedSampler:
    """Answers by session in the order asked; waits where an event says so, and notes what happened."""

    name: str
    texts: list[str]
    log: list[str]
    gates: dict[int, asyncio.Event] = field(default_factory=dict)
    error: Exception | None = None
    seeds: list[int] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    async def sample(self, messages, *, seed, session):
        number = len(self.seeds)
        self.seeds.append(seed)
        self.log.append(f"{self.name} asked {session}")
        self.prompts.append("\n".join(message["content"] for message in messages))
        if self.error is not None:
            raise self.error
        if number in self.gates:
            await self.gates[number].wait()
        return response(self.texts[number % len(self.texts)])


@dataclass
class ScriptedJudge:
    """Every case fails, except where an outage is due."""

    log: list[str]
    outages: set[str] = field(default_factory=set)
    requests: list[JudgeRequest] = field(default_factory=list)
    pooled_outage: bool = False

    async def judge(self, request):
        self.log.append(f"judge {request.candidate!r}")
        self.requests.append(request)
        if request.candidate in self.outages or (self.pooled_outage and len(request.suites) == 1):
            raise SandboxUnavailableError("no answer")
        loaded = request.candidate is not None
        outcome = CaseOutcome.WRONG_VALUE if loaded else CaseOutcome.NOT_LOADED
        case = CaseResult(call="", reference_value="1", expected="1", expected_correct=True, outcome=outcome)
        suites = []
        for suite in request.suites:
            suites.append(SuiteVerdict(cases=tuple(replace(case, call=text) for text in suite), rejections=()))
        return CandidateVerdict(
            loaded=loaded,
            load_error="",
            suites=tuple(suites),
            history=(),
            dropped_history=(),
            cpu_seconds=0.0,
            wall_seconds=0.0,
        )


def task(**changes) -> EpisodeTask:
    values = {"question": QUESTION, "history": (), "step": 1, "seed": 7, "num_candidates": 2, "num_suites": 2}
    return EpisodeTask(**(values | changes))


def runner(
    code,
    tester,
    judge,
    *,
    timeout: float = 5.0,
    greedy=None,
    prompts=None,
    episode=None,
    script=None,
    extensions=(),
    **rewards,
) -> ValidationRunner:
    return ValidationRunner(
        scripted_tester=script,
        extensions=extensions,
        code_llm=code,
        test_llm=tester,
        greedy=greedy,
        judge=judge,
        settings=EpisodeSettings(
            **({"num_candidates": 2, "num_suites": 2, "cases_per_suite": 1, "num_workers": 1} | (episode or {}))
        ),
        rewards=RewardSettings(**({"alpha": 0.5, "adversarial": "release", "nonprintable_penalty": False} | rewards)),
        prompts=PromptSettings(**({"name": "chat_v2"} | (prompts or {}))),
        judge_timeout_seconds=timeout,
    )


PROGRAMS = ["def f(x): return 1", "def f(x): return 2"]
ONE = ["assert f(1) == 1"]


def play(programs=PROGRAMS, tests=ONE, *, wanted=None, judge=None, error=None, **options):
    """The episode of a task with scripted parts, and these; ``error`` is what the Test LLM raises."""
    log: list[str] = []
    parts = SimpleNamespace(
        code=ScriptedSampler("code", programs, log),
        test=ScriptedSampler("test", tests, log, error=error),
        judge=judge or ScriptedJudge(log),
    )
    episode = asyncio.run(runner(parts.code, parts.test, parts.judge, **options).run(wanted or task()))
    return episode, parts


def test_a_candidates_suites_start_while_another_candidate_is_still_being_written():
    log: list[str] = []

    async def run():
        gate = asyncio.Event()
        code = ScriptedSampler("code", PROGRAMS, log, gates={1: gate})
        test = ScriptedSampler("test", ONE, log)
        episode = asyncio.ensure_future(runner(code, test, ScriptedJudge(log)).run(task()))
        while not any(line.startswith("judge") for line in log):
            await asyncio.sleep(0)
        seen = list(log)
        gate.set()
        await episode
        return seen

    assert asyncio.run(run()) == [
        "code asked 1/q1",
        "code asked 1/q1",
        "test asked 1/q1/0",
        "test asked 1/q1/0",
        "judge 'def f(x): return 1'",
    ]


def test_an_outage_masks_its_candidate_and_no_other():
    episode, _ = play(judge=ScriptedJudge([], outages={PROGRAMS[0]}))
    first, second = episode.candidates
    assert (first.verdict, first.reward, first.outage) == (None, None, "SandboxUnavailableError: no answer")
    assert (second.reward.total, second.outage) == (0.0, "")
    assert episode.suite_rewards_CS() == [[None, None], [1.0, 1.0]]


def test_a_verdict_that_does_not_come_in_time_is_an_outage():
    class StalledJudge(ScriptedJudge):
        async def judge(self, request):
            await asyncio.Event().wait()

    episode, _ = play(judge=StalledJudge([]), timeout=0.01)
    assert [candidate.reward for candidate in episode.candidates] == [None, None]
    assert [candidate.outage.split(":")[0] for candidate in episode.candidates] == ["TimeoutError"] * 2


def test_a_response_without_a_program_gets_no_suites_and_reward_zero():
    episode, parts = play(["I cannot do that."])
    assert [candidate.source for candidate in episode.candidates] == [None, None]
    assert [candidate.reward.total for candidate in episode.candidates] == [0.0, 0.0]
    assert parts.test.seeds == []
    assert episode.suite_rewards_CS() == [[], []]


def test_a_program_too_long_to_show_is_masked_rather_than_punished():
    episode, _ = play(error=PromptTooLongError("9000 tokens"))
    assert [candidate.reward for candidate in episode.candidates] == [None, None]
    assert [candidate.is_too_long_to_test for candidate in episode.candidates] == [True, True]


def test_a_lost_server_ends_the_episode():
    log: list[str] = []
    code = ScriptedSampler("code", [], log, error=ConnectionError("gone"))
    with pytest.raises(ConnectionError, match="gone"):
        asyncio.run(runner(code, ScriptedSampler("test", [], log), ScriptedJudge(log)).run(task()))


def test_every_sample_of_a_step_has_its_own_seed_and_a_repetition_has_the_same():
    def seeds() -> list[int]:
        _, parts = play(PROGRAMS[:1])  # also equal programs have suites of their own
        return parts.code.seeds + parts.test.seeds

    first = seeds()
    assert len(set(first)) == 6
    assert seeds() == first
    assert first[0] == sampling_seed(7, "code", 1, "q1", 0)


def test_pooled_every_program_is_rewarded_on_the_cases_of_all():
    code_tests = "".join(["poo", "led"])
    asserts = [f"assert f({n}) == 1" for n in range(4)]
    episode, parts = play(tests=asserts, wanted=task(history=("f(9)",)), code_tests=code_tests)
    pooled = [request for request in parts.judge.requests if len(request.suites) == 1]
    assert [len(request.suites[0]) for request in pooled] == [4, 4]
    assert {request.history for request in pooled} == {()}
    for candidate in episode.candidates:
        assert [len(suite.asserts) for suite in candidate.suites] == [1, 1]
        assert len(candidate.pooled.cases) == 4
        assert candidate.reward.terms["num_suites"] == 1


def test_pooled_a_program_too_long_to_show_is_not_judged_again():
    class Tester(ScriptedSampler):
        async def sample(self, messages, *, seed, session):
            if session == "1/q1/0":  # of this step alone
                raise PromptTooLongError("9000 tokens")
            return await super().sample(messages, seed=seed, session=session)

    code, test = ScriptedSampler("code", PROGRAMS, []), Tester("test", ONE, [])
    judge = ScriptedJudge([])
    first, second = asyncio.run(runner(code, test, judge, code_tests="pooled").run(task())).candidates
    assert (first.reward, first.pooled, second.pooled is None) == (None, None, False)
    assert [request.candidate for request in judge.requests].count(PROGRAMS[0]) == 1


def test_an_outage_of_the_pooled_pass_masks_the_candidate_and_its_suites():
    episode, _ = play(judge=ScriptedJudge([], pooled_outage=True), code_tests="pooled")
    for candidate in episode.candidates:
        assert (candidate.verdict, candidate.reward) == (None, None)
        assert candidate.outage == "SandboxUnavailableError: no answer"
        assert [suite.reward for suite in candidate.suites] == [None, None]


@pytest.mark.parametrize(
    ("rewards", "tests"),
    [
        ({"code_tests": "golden", "num_golden": 2}, ("assert f(0) == 1", "assert f(1) == 2")),
        ({"code_tests": "".join(["hid", "den"])}, ("assert f(8) == 9",)),
    ],
)
def test_given_tests_are_all_that_counts_and_nobody_writes_any(rewards, tests):
    golden = tuple(f"assert f({n}) == {n + 1}" for n in range(3))
    question = replace(QUESTION, golden_tests=golden, tests=("assert f(8) == 9",))
    episode, parts = play(tests=[], wanted=task(question=question, num_suites=0), **rewards)
    assert parts.test.seeds == []
    assert [(request.suites, request.given) for request in parts.judge.requests] == [((tests,), True)] * 2
    assert [candidate.reward.terms["num_suites"] for candidate in episode.candidates] == [1, 1]


def test_validation_adds_a_greedy_program_and_suites_for_the_buggy_programs():
    question = replace(
        QUESTION, tests=("assert f(8) == 9",), buggy_programs=("def f(x): return 7", "def f(x): return 8")
    )
    greedy = ScriptedSampler("greedy", ["def f(x): return 0"], [])
    wanted = task(
        question=question, with_hidden_tests=True, with_greedy=True, num_buggy_program_suites=3, history=("f(1)",)
    )
    episode, parts = play(wanted=wanted, greedy=greedy)
    assert greedy.seeds == [0]
    assert episode.greedy.source == "def f(x): return 0"
    assert len(episode.greedy.hidden.suites[0].cases) == 1
    assert [(buggy.source, len(buggy.suites), buggy.hidden) for buggy in episode.buggy_programs] == [
        (program, 3, None) for program in question.buggy_programs
    ]
    assert len(set(parts.test.seeds)) == len(parts.test.seeds) == 2 * 2 + 2 * 3


def test_a_greedy_program_is_written_only_where_it_is_asked_for():
    greedy = ScriptedSampler("greedy", PROGRAMS, [])
    assert play(wanted=task(with_hidden_tests=True, with_greedy=False), greedy=greedy)[0].greedy is None
    assert greedy.seeds == []


@pytest.mark.parametrize("error", [SandboxUnavailableError("no answer"), TimeoutError("too slow")])
def test_an_outage_masks_the_greedy_program(error):
    class Judge(ScriptedJudge):
        async def judge(self, request):
            if request.candidate == "def f(x): return 0":
                raise error
            return await super().judge(request)

    greedy = ScriptedSampler("greedy", ["def f(x): return 0"], [])
    wanted = task(question=HIDDEN, with_hidden_tests=True, with_greedy=True)
    episode, _ = play(wanted=wanted, judge=Judge([]), greedy=greedy)
    assert (episode.greedy.hidden, episode.greedy.outage) == (None, f"{type(error).__name__}: {error}")
    assert [one.outage for one in episode.candidates] == ["", ""]


def test_a_question_whose_hidden_tests_are_all_invalid_counts_in_no_pass_at_1():
    """As in ``eval code``; without the rule each program would count as wrong."""

    class Judge(ScriptedJudge):
        async def judge(self, request):
            verdict = await super().judge(request)
            is_hidden = request.suites == (HIDDEN.tests,)
            return replace(verdict, suites=(SuiteVerdict(cases=(), rejections=()),)) if is_hidden else verdict

    wanted = task(question=HIDDEN, with_hidden_tests=True, with_greedy=True)
    for judge, counts in ((Judge([]), False), (ScriptedJudge([]), True)):
        greedy = ScriptedSampler("greedy", ["def f(x): return 0"], [])
        episode, _ = play(wanted=wanted, judge=judge, greedy=greedy)
        names = {name for name in finalize_metrics([accumulate_episode(episode)]) if "pass@1" in name}
        assert names == ({"code/pass@1", "code/greedy_pass@1"} if counts else set())
        assert [record.hidden_tests is not None for record in episode_records(episode, selected=())] == [counts] * 3


def test_a_buggy_program_too_long_to_show_has_no_reward():
    wanted = task(question=replace(QUESTION, buggy_programs=("def f(x): return 7",)), num_buggy_program_suites=2)
    (buggy,) = play(["no program"], wanted=wanted, error=PromptTooLongError("9000 tokens"))[0].buggy_programs
    assert (buggy.is_too_long_to_test, buggy.suites, buggy.reward) == (True, (), None)


def test_buggy_programs_are_judged_without_replays_and_rewarded_by_the_papers_rule(tmp_path):
    (tmp_path / "mine.py").write_text(
        "def none(question): return [[None] * len(c.suite_texts) for c in question.candidates]"
    )
    question = replace(QUESTION, buggy_programs=("def f(x): return 7",))
    own = RewardChoice(name="none", path=str(tmp_path / "mine.py"))
    wanted = task(question=question, num_buggy_program_suites=2, history=("f(1)",))
    episode, parts = play(wanted=wanted, alpha=0.25, test=own)
    histories = {request.candidate: request.history for request in parts.judge.requests}
    assert histories == {PROGRAMS[0]: ("f(1)",), PROGRAMS[1]: ("f(1)",), "def f(x): return 7": ()}
    assert [[suite.reward for suite in one.suites] for one in episode.candidates] == [[None, None]] * 2
    assert [suite.reward.parts for suite in episode.buggy_programs[0].suites] == [
        {"validity": 0.25, "adversarial": 0.75}
    ] * 2


def test_replays_are_met_with_the_suites_and_not_by_hidden_tests_or_the_greedy_program():
    greedy = ScriptedSampler("greedy", ["def f(x): return 0"], [])
    for until_timeout in (False, True):
        wanted = task(question=HIDDEN, with_hidden_tests=True, with_greedy=True, history=("f(1)",))
        _, parts = play(wanted=replace(wanted, until_timeout=until_timeout), greedy=greedy)
        met = [(len(one.suites), one.history, one.given, one.until_timeout) for one in parts.judge.requests]
        # A metric only needs to know whether all hidden tests pass; a reward counts the passed cases.
        assert sorted(met) == [(1, (), True, until_timeout)] * 3 + [(2, ("f(1)",), False, False)] * 2


def test_a_script_writes_the_suites_in_place_of_the_test_llm():
    def script(question, program, *, num_suites, num_cases, seed):
        assert (question, num_cases) == ("Add one.", 1)
        return [f"assert f({s}) == 1  # {program[-1]}" for s in range(num_suites)]

    episode, parts = play(script=script)
    suites = [suite for candidate in episode.candidates for suite in candidate.suites]
    assert [suite.asserts[0][:11] for suite in suites] == ["assert f(0)", "assert f(1)"] * 2
    assert all(suite.reward is not None and not suite.response.token_ids for suite in suites)
    assert parts.test.seeds == []


def test_a_black_box_tester_does_not_see_the_program():
    for black_box in (False, True):
        _, parts = play(prompts={"black_box": black_box})
        assert all("Add one." in prompt for prompt in parts.test.prompts)
        assert any("return 1" in prompt for prompt in parts.test.prompts) is not black_box


@pytest.mark.parametrize("is_validation", [False, True])
@pytest.mark.parametrize("error", [SandboxUnavailableError("no answer"), TimeoutError("too slow")])
def test_an_outage_of_the_hidden_tests_masks_the_candidate_where_they_are_what_is_measured(error, is_validation):
    """In training they are for metrics only, and the program keeps its verdict and its reward."""

    class Judge(ScriptedJudge):
        async def judge(self, request):
            if request.candidate == PROGRAMS[0] and len(request.suites) == 1:
                raise error
            return await super().judge(request)

    wanted = task(question=HIDDEN, with_hidden_tests=True, is_validation=is_validation)
    first, second = play(wanted=wanted, judge=Judge([]))[0].candidates
    if is_validation:
        assert (first.outage, first.verdict, first.reward) == (f"{type(error).__name__}: {error}", None, None)
    else:
        assert (first.outage, first.hidden) == ("", None)
        assert first.reward is not None
    assert (second.outage, second.hidden is None, second.reward is None) == ("", False, False)


def test_spans_are_counted_from_the_start_of_the_step():
    episode, _ = play(wanted=task(started_at=time.time() - 100))
    for one in episode.candidates:
        for start, end in (one.span, one.judge_span, *(suite.span for suite in one.suites)):
            assert 100 <= start <= end < 110


def test_a_span_is_in_seconds_since_the_step_began():
    started, ended = task(started_at=2.0).span_since(7.0)
    assert started == 5.0
    assert ended == pytest.approx(time.time() - 2.0, abs=5)


class SlowJudge(ScriptedJudge):
    """A request takes 20 milliseconds."""

    async def judge(self, request):
        await asyncio.sleep(0.02)
        return await super().judge(request)


class AllCases(Extension):
    """Keeps how many cases each program met."""

    name = "cases"

    def needs_all_cases(self, task):
        return True

    def after_verdicts(self, work):
        return [one and len(one.cases) for one in work.all_cases]


def test_an_extension_sees_all_programs_on_the_cases_of_all_and_changes_no_reward_and_no_record():
    asserts = [f"assert f({n}) == 1" for n in range(4)]
    extended, _ = play(tests=asserts, extensions=(AllCases(),))
    plain, _ = play(tests=asserts)
    assert (extended.found, plain.found) == ({"cases": [4, 4]}, {})
    assert [one.reward for one in extended.candidates] == [one.reward for one in plain.candidates]
    assert [one.pooled_tests for one in episode_records(extended, selected=())] == [None, None]
    assert all(one.pooled_span for one in extended.candidates)


def test_an_outage_of_the_pass_for_an_extension_takes_no_verdict():
    episode, _ = play(judge=ScriptedJudge([], pooled_outage=True), extensions=(AllCases(),))
    assert [one.outage for one in episode.candidates] == ["", ""]
    assert all(one.reward is not None for one in episode.candidates)
    assert episode.found == {"cases": [None, None]}


def test_the_pooled_pass_is_time_at_the_judge():
    episode, _ = play(judge=SlowJudge([]), code_tests="pooled")
    for one, record in zip(episode.candidates, episode_records(episode, selected=()), strict=True):
        start, end = one.pooled_span
        assert max(other.judge_span[1] for other in episode.candidates) <= start <= end - 0.015
        assert record.pooled_span == one.pooled_span
    judged = busy_spans(episode)["judge"]
    assert judged[-1][1] == max(one.pooled_span[1] for one in episode.candidates)
    alone, _ = play()
    assert [one.pooled_span for one in alone.candidates] == [None, None]
