"""Identical candidates are run once, and the verdict does not show it."""

from dataclasses import replace

import pytest

from sandbox import Judge, JudgeRequest, LocalRunner, Program, ProgramResult
from sandbox.judge.bounded_cache import BoundedCache
from sandbox.text import syntax_key

REFERENCE = "def f(x):\n    return x + 1"


class CountingRunner:
    """A real runner that notes the programs it ran."""

    def __init__(self, runner: LocalRunner) -> None:
        self._runner = runner
        self.programs: list[Program] = []

    @property
    def limits(self):
        return self._runner.limits

    def run(self, program: Program, *, role) -> ProgramResult:
        if role.value == "candidate":
            self.programs.append(program)
        return self._runner.run(program, role=role)

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


def test_an_identical_program_with_the_same_calls_is_not_run_again(pool):
    runner = CountingRunner(pool)
    judge = Judge(runner, reuse_results=True)
    first = judge.judge(request("def f(x): return x", "assert f(1) == 2", "assert f(2) == 3"))
    again = judge.judge(request("def f(x):\n    return x  # the same", "assert f(1) == 2", "assert f(2) == 3"))
    assert len(runner.programs) == 1
    assert (first.was_cached, again.was_cached, again.cpu_seconds) == (False, True, 0.0)
    assert again.suites == first.suites
    other = judge.judge(request("def f(x): return x", "assert f(1) == 2"))
    assert not other.was_cached


CANDIDATES = [
    "def f(x): return x + 1",
    "def f(x): return 1 // x",
    "def f(x:",
    "def f(x):\n    while x == 2: pass\n    return x + 1",
    "import os\ndef f(x):\n    os._exit(3)",
    "def f(x): return object()",
    # State that grows from call to call: answers of another list of calls would be others.
    "def f(x, seen=[]):\n    seen.append(x)\n    return x + len(seen)",
]


@pytest.mark.parametrize("candidate", CANDIDATES)
def test_the_verdict_is_the_one_of_a_fresh_judge(pool, candidate):
    requests = [
        request(candidate, "assert f(0) == 1", "assert f(2) == 3"),
        request(candidate, "assert f(2) == 3", "assert f(5) == 6", history=("f(0)",)),
        request(candidate, "assert f(0) == 1", "assert f(2) == 3"),
        request(candidate, "assert f(2) == 3"),
    ]

    def essence(verdict):
        return replace(verdict, cpu_seconds=0.0, wall_seconds=0.0, was_cached=False)

    remembering = Judge(pool, reuse_results=True)
    for one in requests:
        assert essence(remembering.judge(one)) == essence(Judge(pool).judge(one))


@pytest.mark.parametrize("candidate", CANDIDATES[3:5])
def test_a_time_out_or_a_death_is_never_taken_from_memory(pool, candidate):
    judge = Judge(pool, reuse_results=True)
    for _ in range(2):
        assert not judge.judge(request(candidate, "assert f(2) == 3")).was_cached


def test_what_is_kept_has_a_bound_and_is_counted_once():
    known = BoundedCache(list, max_bytes=40_000)
    for name in "abacd":
        key, entry = known.find(name, "text")
        assert known.note_size(key, entry, 14_000)
    assert [name for name, _ in known._entries] == ["c", "d"]
    assert known.note_size(key, entry, 20_000)
    known.forget("c")
    assert known._bytes == 20_000 + 1024
    known.forget("d")
    assert not known.note_size(key, entry, 9)  # it went while its program ran
    assert (known._bytes, known._sizes, len(known._entries)) == (0, {}, 0)


def test_a_judge_that_was_not_told_to_runs_every_program(pool):
    runner = CountingRunner(pool)
    judge = Judge(runner)
    for _ in range(2):
        judge.judge(request("def f(x): return x", "assert f(1) == 2"))
    assert len(runner.programs) == 2


def test_forgetting_a_question_forgets_its_programs(pool):
    runner = CountingRunner(pool)
    judge = Judge(runner, reuse_results=True)
    for _ in range(2):
        judge.judge(request("def f(x): return x", "assert f(1) == 2"))
        judge.forget("q")
    assert len(runner.programs) == 2
