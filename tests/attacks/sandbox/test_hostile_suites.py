"""Test writers who cheat: asserts that say nothing, hurt, count twice or tell phases apart. One attack a test."""

from dataclasses import replace

import pytest

from sandbox import Judge, JudgeRequest

HONEST = "def f(x=0, y=1, *rest, z=None):\n    return [x, y, list(rest), z]\n"


def valid(suite):
    return [case.call for case in suite.cases]


def reasons(suite):
    return [rejection.reason.value for rejection in suite.rejections]


SAYING_LITTLE = """
assert True
assert 1 == 1
assert [1] == [1]
assert f
assert f(1) != 0
assert f(1) is not None
assert f(1) == f(1)
assert f(1) or True
assert f(1) == 1 or True
assert f(1) in ([1, 1, [], None], 0)
assert f(1) >= []
assert isinstance(f(1), list)
assert len(f(1)) > 0
assert 1 == f(1) == 1
assert f(1) == [1, 1, [], None] == [1, 1, [], None]
assert (f(1) == 0) == False
assert f(1)[:0] == []
assert f(1) * 0 == []
assert f(1).__class__ == list
assert f(1).clear() == None
assert f(1).__len__() == 4
assert str(f(1)) == ''
assert type(f(1)) == list
assert bool(f(1)) == True
assert {**{}} == {}
assert max(f(1), key=str) == 1
assert all(x == x for x in f(1))
assert any([f(1)])
"""


@pytest.mark.parametrize("text", SAYING_LITTLE.strip().splitlines())
def test_an_assert_that_says_little_about_the_value_is_refused(judged, text):
    suite = judged(HONEST, text)
    assert (valid(suite), len(suite.rejections)) == ([], 1)


RUNNING_MORE = """
assert f(__import__('os').getpid()) == 1
assert f(open('/etc/passwd').read()) == 1
assert f(lambda: 1) == 1
assert f([x for x in range(3)]) == 1
assert f(f(1)) == 1
assert f(x := 1) == 1
assert f(f'{1}') == 1
assert f(*[1, 2]) == 1
assert f(**{'x': 1}) == 1
assert f(1 if True else 2) == 1
assert f(print) == 1
assert f(input()) == 1
assert f(exit()) == 1
assert f(globals()) == 1
assert f(eval('1')) == 1
assert f((yield)) == 1
assert f([].append(1)) == 1
assert f(id(1)) == 1
assert f(...) == 1
assert f.__globals__ == {}
assert f.__code__.co_consts == ()
assert (lambda: f(1))() == 1
assert [f][0](1) == 1
assert getattr(f, '__call__')(1) == 1
assert (f)(1) == unittest.mock.ANY
assert f(1) == type('A', (), {'__eq__': 1})
import os; assert f(1) == 1
assert f(1) == 1; exit()
x = assert f(1) == 1
def f(x): return 1
exec('assert f(1) == 1')
assert exec('raise SystemExit') == None
assert f(1) == (lambda: 1)()
f(1) == 1
#assert f(1) == 1
"""
ODD_TEXTS = [
    "assert \u0192(1) == 1",
    "assert \u0444(1) == 1",
    "assert f(1) == 1\nassert f(2) == 1",
    "assert f\u200b(1) == 1",
    "",
    "   ",
    "\x00assert f(1) == 1",
]


@pytest.mark.parametrize("text", [*RUNNING_MORE.strip().splitlines(), *ODD_TEXTS])
def test_an_assert_that_would_run_more_than_the_call_is_refused(judged, text):
    suite = judged(HONEST, text)
    assert (valid(suite), len(suite.rejections)) == ([], 1)


SPELLINGS = """
assert f(1) == 0
assert f(x=1) == 0
assert f(1, 1) == 0
assert f(0x1) == 0
assert f(+1) == 0
assert f(1, y=1) == 0
assert f(y=1, x=1) == 0
assert f(1, z=None) == 0
assert f(2 - 1) == 0
assert f(True) == 0
assert f(1.0) == 0
assert (f(1)) == 0
assert f(1,) == 0
assert f(1)[0] == 0
assert list(f(1)) == 0
assert len(f(1)) == 0
assert f(1)  ==  1
assert(f(1) == 0)
assert f(1) == 0, 'again'
assert f(0b1) == 0
assert f(10 ** 0) == 0
assert f(1_0 - 9) == 0
"""


def test_one_call_in_many_spellings_counts_once(judged):
    suite = judged(HONEST, *SPELLINGS.strip().splitlines(), "assert f(\n1) == 0", "assert \uff46(1) == 0")
    assert valid(suite) == ["f(1)", "f(1)[0]", "list(f(1))", "len(f(1))"]
    assert len({case.id for case in suite.cases}) == 1
    assert set(reasons(suite)) == {"duplicate"}


def test_unicode_look_alikes_of_one_name_are_one_call(judged):
    suite = judged(
        "def file(x): return x", "assert file(1) == 1", "assert \ufb01le(1) == 1", "assert \uff46ile(1) == 1"
    )
    assert len(valid(suite)) == 1


def test_equal_texts_in_two_unicode_forms_are_two_calls(judged):
    suite = judged("def f(x): return len(x)", "assert f('\u00e9') == 1", "assert f('e\u0301') == 2")
    assert (len(valid(suite)), suite.num_expected_correct) == (2, 2)


def test_the_message_of_an_assert_is_never_evaluated(judged):
    suite = judged(HONEST, "assert f(1) == [1, 1, [], None], __import__('os')._exit(3)")
    assert [case.outcome.value for case in suite.cases] == ["passed"]


def test_a_mutated_default_argument_costs_no_honest_program(judged):
    source = "def f(x, seen=[]):\n    seen.append(x)\n    return list(seen)\n"
    suite = judged(source, *(f"assert f({n}) == [{n}]" for n in range(5)))
    assert [case.outcome.value for case in suite.cases] == ["passed"] * 5
    assert suite.num_expected_correct == 5


def test_calls_that_change_a_global_do_not_poison_the_others(judged):
    source = """
        state = {"factor": 1}
        def f(x):
            if x < 0:
                state["factor"] = x
            return state["factor"] * x
    """
    suite = judged(source, "assert f(-5) == 25", "assert f(2) == 2", "assert f(3) == 3")
    assert [(case.outcome.value, case.expected_correct) for case in suite.cases] == [("passed", True)] * 3


def test_a_counter_in_the_reference_makes_no_case_valid_twice_or_wrong(judged):
    source = "count = 0\ndef f():\n    global count\n    count += 1\n    return count\n"
    suite = judged(source, "assert f() == 1", "assert f() == 2", "assert f() == 3")
    assert [(case.call, case.expected_correct, case.outcome.value) for case in suite.cases] == [("f()", True, "passed")]


def test_a_claim_wrong_on_purpose_is_a_valid_case_with_a_incorrect_assertion(judged):
    suite = judged(HONEST, "assert f(1) == 'never'")
    assert (suite.num_valid, suite.num_expected_correct, suite.num_failed) == (1, 0, 0)


NONDETERMINISTIC = {
    "randomness": "import random, os\ndef f(x): return int.from_bytes(os.urandom(4), 'big') + x\n",
    "the order of a set of texts": "def f(x): return list(set('a b c d e f g h i j k l'.split()))\n",
    "the identity of an object": "def f(x): return [id(object())]",
    "the number of its process": "import os\ndef f(x): return os.getpid()",
    "the clock": "import time\ndef f(x): return time.time_ns()",
    "its phase, told by the hash seed": "def f(x): return hash('phase') % 97",
}


@pytest.mark.parametrize("source", NONDETERMINISTIC.values(), ids=NONDETERMINISTIC)
def test_a_reference_that_answers_by_chance_is_refused(judged, source):
    assert reasons(judged(source, "assert f(1) == 1", "assert f(2) == 1")) == ["reference_nondeterministic"] * 2


SPOILING = {
    "hangs": ("def f(x):\n    while x < 0: pass\n    return abs(x)\n", "reference_timed_out"),
    "bombs": ("def f(x): return len([0] * 10 ** -x) if x < 0 else x\n", "reference_raised"),
    "kills": ("import os\ndef f(x): return os._exit(0) if x < 0 else x\n", "reference_raised"),
    "answers too much": ("def f(x): return 'x' * 9999999 if x < 0 else x", "unencodable"),
}


@pytest.mark.parametrize(("source", "reason"), SPOILING.values(), ids=SPOILING)
def test_an_argument_that_spoils_the_reference_is_refused_and_costs_the_others_nothing(judged, source, reason):
    suite = judged(source, "assert f(-15) == 0", "assert f(1) == 1", "assert f(2) == 2")
    assert (valid(suite), reasons(suite)) == (["f(1)", "f(2)"], [reason])
    assert suite.num_failed == 0


def test_slow_but_valid_calls_do_not_use_up_an_honest_programs_time(runner):
    """The time of one program is bounded; a suite of heavy calls must not turn that bound into failed cases."""
    source = (
        "import time\ndef f(x):\n    end = time.process_time() + 0.05\n"
        "    while time.process_time() < end: pass\n    return x\n"
    )
    judge = Judge(runner, limits=replace(runner.limits, total_seconds=0.15))
    suites = [(f"assert f({n}) == {n}",) for n in range(4)]
    for suite in suites:  # each request finds time for its own calls; the answers are remembered
        judge.judge(
            JudgeRequest(question_id="heavy", reference=source, candidate="def f(x): return x", suites=(suite,))
        )
    verdict = judge.judge(JudgeRequest(question_id="heavy", reference=source, candidate=source, suites=tuple(suites)))
    outcomes = [case.outcome.value for suite in verdict.suites for case in suite.cases]
    assert outcomes == ["passed"] * 4


@pytest.mark.parametrize("num_hostile", [3, pytest.param(7, marks=pytest.mark.nightly)])
def test_hanging_suites_cost_an_honest_one_nothing_and_all_candidates_alike(runner, num_hostile):
    source = f"# {num_hostile}\ndef w(n):\n    while n >= 10**9:\n        pass\n    return n\n"
    hostile = [[f"assert w({10**9 + 1000 * suite + i}) == 0" for i in range(16)] for suite in range(num_hostile)]
    suites = (*map(tuple, hostile), tuple(f"assert w({i}) == {i}" for i in range(16)))
    candidates = [f"# {number}\n{source}" for number in range(3)]
    requests = [JudgeRequest(question_id="w", reference=source, candidate=one, suites=suites) for one in candidates]
    judge = Judge(runner, limits=replace(runner.limits, reference_cpu_seconds_per_case=0.2, total_seconds=1.2))
    judge.prepare(requests)
    verdicts = [judge.judge(request) for request in requests]
    assert [verdict.suites[-1].num_valid for verdict in verdicts] == [16] * 3
    assert [verdict.suites[-1].num_failed for verdict in verdicts] == [0] * 3
    assert len({tuple(suite.num_valid for suite in verdict.suites) for verdict in verdicts}) == 1


def test_the_same_assert_a_thousand_times_counts_once(judged):
    suite = judged(HONEST, *["assert f(1) == 0"] * 1000)
    assert (suite.num_valid, suite.num_rejected) == (1, 999)


def test_two_suites_with_the_same_call_are_judged_alike(runner):
    request = JudgeRequest(
        question_id="twice",
        reference=HONEST,
        candidate=HONEST,
        suites=(("assert f(1) == 0",), ("assert f(x=1) == [1, 1, [], None]",)),
    )
    first, second = Judge(runner).judge(request).suites
    assert (first.cases[0].outcome, first.num_expected_correct) == (second.cases[0].outcome, 0)
    assert second.num_expected_correct == 1


def test_a_replay_in_many_spellings_counts_once(runner):
    history = ("f(1)", "f(x=1)", "f(0x1)", "f(1, 1)")
    verdict = Judge(runner).judge(
        JudgeRequest(question_id="again", reference=HONEST, candidate=HONEST, suites=(), history=history)
    )
    assert (len(verdict.history), len(verdict.dropped_history)) == (1, 3)
