"""Verdicts of the judge. Each test shows one rule."""

from concurrent.futures import ThreadPoolExecutor

from sandbox import CaseOutcome, Judge
from sandbox.cases.gate import Gate
from sandbox.judge import oracle
from sandbox.runners.base import Program
from sandbox.text import NOT_ASKED

LONG = "def f(n):\n    return str(n) * 750\n"
DOUBLE = "def f(n):\n    return 2 * n\n"
THREE = ("assert f(1) == 2", "assert f(2) == 4", "assert f(3) == 6")


def outcomes(verdict, suite=0):
    return [case.outcome.value for case in verdict.suites[suite].cases]


def reasons(verdict):
    return [rejection.reason.value for rejection in verdict.suites[0].rejections]


def test_a_correct_candidate_passes_every_case_and_any_text_names_a_question(ask):
    verdict = ask(DOUBLE, "def f(n):\n    return n + n\n", *THREE, question_id="\ud800")
    assert verdict.loaded
    assert outcomes(verdict) == ["passed"] * 3
    assert verdict.cpu_seconds > 0


def test_if_only_passing_counts_no_call_is_made_after_a_time_out(ask):
    asserts = [f"assert f({x}) == {x}" for x in range(12)]
    reference = "def f(x): return x"
    hanging = "def f(x):\n    while x % 2: pass\n    return x"
    verdict = ask(reference, hanging, *asserts, until_timeout=True)
    assert (verdict.loaded, verdict.suites[0].num_valid) == (True, 12)
    left_out = sum(case.detail == NOT_ASKED for case in verdict.suites[0].cases)
    assert outcomes(verdict).count("timed_out") == left_out + 1 >= 6
    assert ask(reference, reference, *asserts, until_timeout=True).suites[0].num_failed == 0


def test_without_a_program_suites_are_validated_all_the_same(ask):
    verdict = ask(DOUBLE, None, "assert f(1) == 2", "assert f(2) == 5", "assert f(1) == 2")
    assert (verdict.loaded, verdict.load_error) == (False, "no program in the response")
    assert outcomes(verdict) == ["not_loaded"] * 2
    assert (verdict.suites[0].num_expected_correct, reasons(verdict)) == (1, ["duplicate"])


def test_suites_are_judged_apart_and_one_call_may_stand_in_several(ask):
    suites = (("assert f(1) == 2", "assert f(2) == 4"), (), ("assert f(0x1) == 2", "assert f(1) == 2"))
    first, second, third = ask(DOUBLE, DOUBLE, suites=suites).suites
    assert (first.num_valid, first.rejections) == (2, ())
    assert (second.num_valid, second.rejections) == (0, ())
    assert third.num_valid == 1
    assert [rejection.reason.value for rejection in third.rejections] == ["duplicate"]


def test_a_reference_that_does_not_load_drops_every_case(ask):
    verdict = ask("import no_such_module\ndef f(n): no_such_module\n", DOUBLE, *THREE)
    assert reasons(verdict) == ["reference_raised"] * 3
    assert "no_such_module" in verdict.suites[0].rejections[0].detail
    assert (verdict.loaded, verdict.suites[0].num_valid) == (True, 0)


def test_state_that_both_orders_of_the_calls_hide_is_found_by_a_repeated_call(ask):
    source = "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen) > {}\n"
    verdict = ask(source.format(2), source.format(1), "assert f(1) == False", "assert f(2) == False")
    assert outcomes(verdict) == ["passed"] * 2  # the candidate's calls are isolated, too


def test_history_is_replayed_with_the_references_answer(ask):
    verdict = ask(DOUBLE, "def f(n):\n    return 4\n", history=("f(2)", "f(3)", "f(2)", "g(1)", "f('\\''"))
    assert [(case.call, case.reference_value, case.outcome.value) for case in verdict.history] == [
        ("f(2)", "4", "passed"),
        ("f(3)", "6", "wrong_value"),
    ]
    assert [(one.text, one.reason.value) for one in verdict.dropped_history] == [
        ("g(1)", "no_call"),
        ("f('\\''", "unparsable"),
        ("f(2)", "duplicate"),
    ]


def test_a_call_with_both_quotes_and_a_newline_replays_as_itself(ask):
    reference = "def f(s):\n    return s[::-1]\n"
    first = ask(reference, reference, 'assert f("it\'s \\"x\\"\\n") == ""').suites[0].cases[0]
    replayed = ask(reference, reference, history=(first.call,)).history[0]
    assert (replayed.call, replayed.reference_value) == (first.call, first.reference_value)
    assert replayed.outcome is CaseOutcome.PASSED


def test_reference_answers_are_computed_once_until_they_are_forgotten(ask, counting):
    judge = Judge(counting)
    for _ in range(2):
        ask(DOUBLE, DOUBLE, *THREE, judge=judge)
    runs_of_reference = ["reference", "second_reference", "candidate"]
    assert counting.roles == [*runs_of_reference, "candidate", "candidate"]
    judge.forget("q")
    ask(DOUBLE, DOUBLE, *THREE, judge=judge)
    assert counting.roles[5:] == [*runs_of_reference, "candidate"]


def test_several_threads_may_judge_at_once(ask, runner):
    judge = Judge(runner)

    def num_failed(index):
        candidate = DOUBLE if index % 2 else "def f(n):\n    return 0\n"
        return ask(DOUBLE, candidate, *THREE, judge=judge, question_id=f"q{index % 3}").suites[0].num_failed

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(num_failed, range(8))) == [3, 0] * 4


def test_the_order_of_calls_is_shuffled_but_repeatable(ask):
    reference = "def f(n):\n    return n\n"
    candidate = "made = []\ndef f(n):\n    made.append(n)\n    return list(made)\n"
    asserts = [f"assert f({i}) == {i}" for i in range(20)]
    first, second = ([case.detail for case in ask(reference, candidate, *asserts).suites[0].cases] for _ in range(2))
    assert first == second
    assert max(first, key=len) != str(list(range(20)))


def test_a_claim_that_is_a_signalling_nan_is_an_incorrect_assertion(ask):
    verdict = ask(DOUBLE, DOUBLE, 'assert f(3) == Decimal("sNaN")', "assert f(4) == 8")
    assert [case.expected_correct for case in verdict.suites[0].cases] == [False, True]
    assert outcomes(verdict) == ["passed"] * 2


def test_an_argument_beyond_the_decimal_context_has_a_verdict(ask):
    constant = "def f(x):\n    return 1\n"
    asserts = ("assert f(Decimal('1e9999999')) == 1", "assert f(Decimal('sNaN')) == 1")
    assert outcomes(ask(constant, constant, *asserts)) == ["passed"] * 2


def test_answers_of_the_oldest_questions_go_where_all_together_take_too_much(runner, monkeypatch):
    """The counted bytes are right, also after a question was forgotten, replaced or asked again."""
    monkeypatch.setattr(oracle, "MAX_BYTES", 40_000)
    references = oracle.ReferencePass(runner, limits=runner.limits)

    def ask(name, *numbers):
        suite = [f"assert f({number}) == 'x'" for number in numbers]
        calls = [case.call for case in Gate(LONG, (), assert_chars=1000).suite(suite).cases]
        program = Program(source=LONG, calls=(), limits=runner.limits.for_reference(), timed=True)
        return references.answer(name, program, suites=[calls]).oracles

    for name in "abacd":
        assert len(ask(name, *range(8))) == 8
    kept = references._questions
    assert [name for name, _ in kept._entries] == ["c", "d"]  # each about 16,000 bytes
    ask("c", 8, 9)
    references.forget("d")
    (question,) = kept._entries.values()
    assert kept._bytes == sum(oracle._size(*pair) for pair in question.oracles.items()) + 1024
    assert len(question.oracles) == 10
