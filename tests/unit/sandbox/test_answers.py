"""Identical candidates are run once, and the verdict does not show it."""

from dataclasses import replace

import pytest

from sandbox import Judge, JudgeRequest, LocalRunner, Program, ProgramResult, syntax_key

REFERENCE = "def f(x):\n    return x + 1"


class CountingRunner:
    """A real runner that notes the programs it ran."""

    def __init__(self, runner: LocalRunner) -> None:
        self._runner = runner
        self.programs: list[Program] = []

    @property
    def limits(self):
        return self._runner.limits

    def run(self, program: Program, *, lane) -> ProgramResult:
        if lane.value == "candidate":
            self.programs.append(program)
        return self._runner.run(program, lane=lane)

    def close(self) -> None:
        self._runner.close()


@pytest.fixture(scope="module")
def pool():
    with LocalRunner(num_workers=1) as runner:
        yield runner


def request(candidate: str | None, *asserts: str, history: tuple[str, ...] = ()) -> JudgeRequest:
    return JudgeRequest(question_id="q", reference=REFERENCE, candidate=candidate, suites=(asserts,), history=history)


def test_formatting_and_comments_do_not_tell_programs_apart_names_do():
    one = "def f(x):\n    return x+1  # so\n\n\n"
    assert syntax_key(one) == syntax_key("def f(x): return x + 1")
    assert syntax_key(one) != syntax_key("def f(y): return y + 1")
    assert syntax_key("def f(:") != syntax_key("def f(: ")
    assert syntax_key("(" * 90_000) != syntax_key("(" * 90_001)


def test_an_identical_program_is_asked_new_calls_only(pool):
    runner = CountingRunner(pool)
    judge = Judge(runner, reuse_answers=True)
    judge.judge(request("def f(x): return x", "assert f(1) == 2", "assert f(2) == 3"))
    verdict = judge.judge(request("def f(x):\n    return x  # the same", "assert f(2) == 3", "assert f(3) == 4"))
    assert [[call.text for call in program.calls] for program in runner.programs][1:] == [["f(3)"]]
    assert verdict.num_reused == 1
    assert [case.outcome.value for case in verdict.suites[0].cases] == ["wrong_value", "wrong_value"]
    third = judge.judge(request("def f(x): return x", "assert f(3) == 4", history=("f(1)",)))
    assert len(runner.programs) == 2
    assert (third.num_reused, third.loaded, len(third.history)) == (2, True, 1)


@pytest.mark.parametrize(
    "candidate",
    [
        "def f(x): return x + 1",
        "def f(x): return 1 // x",
        "def f(x:",
        "def f(x):\n    while x == 2: pass\n    return x + 1",
        "import os\ndef f(x):\n    os._exit(3)",
        "def f(x): return object()",
        "seen = []\ndef f(x):\n    seen.append(x)\n    return x + 1",
    ],
)
def test_the_verdict_is_the_one_of_a_fresh_judge(pool, candidate):
    first = request(candidate, "assert f(0) == 1", "assert f(2) == 3")
    same = candidate if candidate == "def f(x:" else candidate + "\n\n"  # a text that does not parse is itself only
    second = request(same, "assert f(2) == 3", "assert f(5) == 6", history=("f(0)",))

    def essence(verdict):
        return replace(verdict, cpu_seconds=0.0, wall_seconds=0.0, num_reused=0)

    remembering, fresh = Judge(pool, reuse_answers=True), Judge(pool)
    remembering.judge(first)
    again = remembering.judge(second)
    assert essence(again) == essence(fresh.judge(second))
    assert again.num_reused > 0


def test_a_judge_that_was_not_told_to_runs_every_program(pool):
    runner = CountingRunner(pool)
    judge = Judge(runner)
    for _ in range(2):
        judge.judge(request("def f(x): return x", "assert f(1) == 2"))
    assert len(runner.programs) == 2


def test_forgetting_a_question_forgets_its_programs(pool):
    runner = CountingRunner(pool)
    judge = Judge(runner, reuse_answers=True)
    for _ in range(2):
        judge.judge(request("def f(x): return x", "assert f(1) == 2"))
        judge.forget("q")
    assert len(runner.programs) == 2
