"""What every runner must do, whatever runs behind it. A new runner joins ``RUNNERS``."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox import AnswerKind, Call, Lane, Limits, LocalRunner, Program, SandboxUnavailableError

LIMITS = Limits(cpu_seconds_per_case=0.3, wall_seconds_per_case=1.5, load_cpu_seconds=0.5)
RUNNERS = {"local": lambda: LocalRunner(num_workers=2, limits=LIMITS)}


@pytest.fixture(scope="module", params=list(RUNNERS))
def runner(request):
    made = RUNNERS[request.param]()
    yield made
    made.close()


def program(source, *expressions, **changes):
    defaults = {
        "prelude": "",
        "source": source,
        "calls": tuple(Call(expression=expression) for expression in expressions),
        "reference_cpu_seconds": (0.0,) * len(expressions),
        "limits": LIMITS,
    }
    return Program(**(defaults | changes))


def kinds(result):
    return [answer.kind for answer in result.answers]


@pytest.mark.parametrize("lane", list(Lane))
def test_values_come_back_encoded_in_the_order_of_the_calls(runner, lane):
    result = runner.run(program("def f(x): return [x]", "f(1)", "f('a')", "f(None)"), lane=lane)
    assert result.loaded
    assert [answer.value for answer in result.answers] == [b"l1:i1;", b"l1:s1:a", b"l1:N"]


def test_each_early_end_costs_one_call(runner):
    source = (
        "import os\n"
        "def f(x):\n"
        "    if x == 1: os._exit(0)\n"
        "    if x == 3:\n        while True: pass\n"
        "    if x == 5: raise KeyError\n"
        "    if x == 6: return object()\n"
        "    if x == 7: return 'x' * 2_000_000\n"
        "    return x\n"
    )
    result = runner.run(program(source, *(f"f({x})" for x in range(9))), lane=Lane.CANDIDATE)
    assert kinds(result) == [
        AnswerKind.VALUE, AnswerKind.DIED, AnswerKind.VALUE, AnswerKind.TIMED_OUT, AnswerKind.VALUE,
        AnswerKind.RAISED, AnswerKind.UNENCODABLE, AnswerKind.OUTPUT_LIMIT, AnswerKind.VALUE,
    ]  # fmt: skip


def test_hanging_in_every_call_gets_cheaper_each_time(runner):
    result = runner.run(
        program("def f(x):\n    while True: pass", *(f"f({x})" for x in range(10))), lane=Lane.CANDIDATE
    )
    assert kinds(result) == [AnswerKind.TIMED_OUT] * 10
    assert result.cpu_seconds < 10 * LIMITS.cpu_seconds_per_case


def test_a_program_without_calls_is_loaded(runner):
    assert runner.run(program("x = 1"), lane=Lane.CANDIDATE).loaded
    assert not runner.run(program("x ="), lane=Lane.CANDIDATE).loaded


@pytest.mark.parametrize("source", ["raise ValueError", "while True: pass", "import os; os._exit(0)", "def f(:"])
def test_a_program_that_does_not_load_says_why_and_answers_nothing(runner, source):
    result = runner.run(program(source, "f()"), lane=Lane.CANDIDATE)
    assert (result.loaded, result.answers) == (False, ())
    assert result.load_error


def test_the_prelude_is_executed_first_in_the_same_namespace(runner):
    result = runner.run(program("b = a + 1", "b", prelude="a = 1"), lane=Lane.CANDIDATE)
    assert result.answers[0].value == b"i2;"


def test_isolated_calls_do_not_see_one_another(runner):
    source = "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)"
    shared = runner.run(program(source, "f(1)", "f(2)"), lane=Lane.CANDIDATE)
    isolated = runner.run(program(source, "f(1)", "f(2)", isolated=True), lane=Lane.CANDIDATE)
    assert [answer.value for answer in shared.answers] == [b"i1;", b"i2;"]
    assert [answer.value for answer in isolated.answers] == [b"i1;", b"i1;"]


def test_programs_do_not_see_one_another(runner):
    runner.run(program("import builtins\nbuiltins.left = 1"), lane=Lane.CANDIDATE)
    assert kinds(runner.run(program("", "left"), lane=Lane.CANDIDATE)) == [AnswerKind.RAISED]


def test_awaited_calls_are_awaited(runner):
    calls = (Call(expression="f(1)", awaited=True), Call(expression="g(1)", awaited=True))
    source = "async def f(x): return x\ndef g(x): return x"
    result = runner.run(program(source, calls=calls, reference_cpu_seconds=(0.0, 0.0)), lane=Lane.CANDIDATE)
    assert kinds(result) == [AnswerKind.VALUE, AnswerKind.RAISED]


def test_large_orders_and_answers_get_through(runner):
    source = "def f(x): return x + x"
    result = runner.run(program(source, *(f"f({'a' * 9_000!r})" for _ in range(60))), lane=Lane.CANDIDATE)
    assert {answer.value for answer in result.answers} == {b"s18000:" + b"a" * 18_000}


def test_odd_text_gets_through(runner):
    result = runner.run(program("def f(x): return x", "f('\\ud800\\0é\\n')"), lane=Lane.CANDIDATE)
    assert result.answers[0].value == "\ud800\0é\n".encode("utf-8", "surrogatepass").join([b"s7:", b""])
    assert not runner.run(program("x = '\ud800'"), lane=Lane.CANDIDATE).loaded


def test_threads_share_a_runner(runner):
    with ThreadPoolExecutor(6) as pool:
        results = list(
            pool.map(lambda n: runner.run(program(f"def f(): return {n}", "f()"), lane=Lane.CANDIDATE), range(12))
        )
    assert [result.answers[0].value for result in results] == [b"i%x;" % n for n in range(12)]


@pytest.mark.parametrize("name", list(RUNNERS))
def test_a_closed_runner_raises_an_outage(name):
    made = RUNNERS[name]()
    made.close()
    with pytest.raises(SandboxUnavailableError):
        made.run(program("x = 1"), lane=Lane.CANDIDATE)
