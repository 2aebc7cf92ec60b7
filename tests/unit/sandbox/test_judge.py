"""What the judge concludes, one behaviour a test."""

import threading
from dataclasses import replace

from sandbox import CaseOutcome, Judge, JudgeRequest, RejectionReason
from sandbox.cases.gate import Gate
from sandbox.judge import oracle
from sandbox.text import NOT_ASKED

LONG = "def f(n):\n    return str(n) * 750\n"
DOUBLE = "def f(n):\n    return 2 * n\n"
THREE = ("assert f(1) == 2", "assert f(2) == 4", "assert f(3) == 6")


def outcomes(verdict, suite=0):
    return [case.outcome.value for case in verdict.suites[suite].cases]


def reasons(verdict):
    return [rejection.reason.value for rejection in verdict.suites[0].rejections]


def test_an_honest_candidate_passes_every_case(ask):
    verdict = ask(DOUBLE, "def f(n):\n    return n + n\n", *THREE)
    assert verdict.loaded
    assert outcomes(verdict) == ["passed"] * 3
    assert verdict.cpu_seconds > 0


def test_any_text_names_a_question(runner):
    request = JudgeRequest(question_id="\ud800", reference=DOUBLE, candidate=DOUBLE, suites=(THREE,))
    assert outcomes(Judge(runner).judge(request)) == ["passed"] * 3


def test_where_only_passing_counts_a_hang_ends_the_questions(runner):
    asserts = tuple(f"assert f({x}) == {x}" for x in range(12))
    reference = "def f(x): return x"
    hanging = "def f(x):\n    while x % 2: pass\n    return x"
    request = JudgeRequest(question_id="until", reference=reference, candidate=hanging, suites=(asserts,))
    judge = Judge(runner)
    all_asked, few_asked = judge.judge(request), judge.judge(replace(request, until_timeout=True))
    assert [case.outcome.value for case in all_asked.suites[0].cases] == ["passed", "timed_out"] * 6
    assert few_asked.loaded
    cases = few_asked.suites[0].cases
    assert len(cases) == 12
    left_out = sum(case.detail == NOT_ASKED for case in cases)
    assert sum(case.outcome.value == "timed_out" for case in cases) == left_out + 1
    assert few_asked.cpu_seconds < all_asked.cpu_seconds
    right = judge.judge(replace(request, candidate=reference, until_timeout=True))
    assert right.suites[0].num_failed == 0


def test_without_a_program_suites_are_validated_all_the_same(ask):
    verdict = ask(DOUBLE, None, "assert f(1) == 2", "assert f(2) == 5", "assert f(1) == 2")
    assert (verdict.loaded, verdict.load_error) == (False, "no program in the response")
    assert outcomes(verdict) == ["not_loaded"] * 2
    assert (verdict.suites[0].num_expected_correct, reasons(verdict)) == (1, ["duplicate"])


def test_a_program_that_loads_is_loaded_even_without_a_valid_case(ask):
    verdict = ask(DOUBLE, DOUBLE, "assert g(1) == 1")
    assert verdict.loaded
    assert verdict.suites[0].num_valid == 0


def test_suites_are_judged_apart_and_one_call_may_stand_in_several(runner):
    suites = (("assert f(1) == 2", "assert f(2) == 4"), (), ("assert f(0x1) == 2", "assert f(1) == 2"))
    verdict = Judge(runner).judge(JudgeRequest(question_id="q", reference=DOUBLE, candidate=DOUBLE, suites=suites))
    assert [suite.num_valid for suite in verdict.suites] == [2, 0, 1]
    reasons = [[one.reason for one in suite.rejections] for suite in verdict.suites]
    assert reasons == [[], [], [RejectionReason.DUPLICATE]]


def test_a_reference_that_does_not_load_drops_every_case(ask):
    verdict = ask("def f(n): pass\nimport no_such_module\n", DOUBLE, *THREE)
    assert reasons(verdict) == ["reference_raised"] * 3
    assert "no_such_module" in verdict.suites[0].rejections[0].detail
    assert verdict.loaded


def test_a_stateful_reference_answers_from_its_freshly_loaded_state(ask):
    reference = "seen = []\ndef f(x):\n    seen.append(x)\n    return list(seen)\n"
    verdict = ask(reference, "def f(x):\n    return [x]\n", "assert f(1) == [1]", "assert f(2) == [1, 2]")
    assert [case.reference_value for case in verdict.suites[0].cases] == ["[1]", "[2]"]
    assert outcomes(verdict) == ["passed"] * 2


def test_answers_are_snapshots_of_the_moment(ask):
    reference = "shared = [0]\ndef f(x):\n    shared[0] = x\n    return shared\n"
    verdict = ask(reference, reference, "assert f(1) == [1]", "assert f(2) == [2]")
    assert [case.reference_value for case in verdict.suites[0].cases] == ["[1]", "[2]"]


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


def test_reference_answers_are_computed_once_until_they_are_forgotten(runner):
    class Counting:
        limits = runner.limits
        roles: list[str]

        def __init__(self):
            self.roles = []

        def run(self, program, *, role):
            self.roles.append(role.value)
            return runner.run(program, role=role)

        def close(self):
            pass

    counting = Counting()
    judge = Judge(counting)
    request = JudgeRequest(question_id="q", reference=DOUBLE, candidate=DOUBLE, suites=(THREE,))
    judge.judge(request)
    judge.judge(request)
    assert counting.roles == ["reference", "second_reference", "candidate", "candidate"]
    judge.forget("q")
    judge.judge(request)
    assert counting.roles[4:] == ["reference", "second_reference", "candidate"]


def test_several_threads_may_judge_at_once(runner):
    judge = Judge(runner)
    results = {}

    def work(index):
        candidate = DOUBLE if index % 2 else "def f(n):\n    return 0\n"
        request = JudgeRequest(question_id=f"q{index % 3}", reference=DOUBLE, candidate=candidate, suites=(THREE,))
        results[index] = judge.judge(request).suites[0].num_failed

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {index: 0 if index % 2 else 3 for index in range(8)}


def test_the_order_of_calls_is_shuffled_but_repeatable(ask):
    reference = "def f(n):\n    return n\n"
    candidate = "made = []\ndef f(n):\n    made.append(n)\n    return list(made)\n"
    asserts = [f"assert f({i}) == {i}" for i in range(20)]
    first, second = ([case.detail for case in ask(reference, candidate, *asserts).suites[0].cases] for _ in range(2))
    assert first == second
    assert max(first, key=len) != str(list(range(20)))


SUCCESSOR = "def f(x):\n    return x + 1\n"


def test_a_claim_that_is_a_signalling_nan_is_a_incorrect_assertion(ask):
    suite = ask(SUCCESSOR, SUCCESSOR, 'assert f(3) == Decimal("sNaN")', "assert f(4) == 5").suites[0]
    assert [case.expected_correct for case in suite.cases] == [False, True]
    assert [case.outcome.value for case in suite.cases] == ["passed"] * 2


def test_an_argument_beyond_the_decimal_context_has_a_verdict(ask):
    constant = "def f(x):\n    return 1\n"
    asserts = ("assert f(Decimal('1e9999999')) == 1", "assert f(Decimal('sNaN')) == 1")
    assert outcomes(ask(constant, constant, *asserts)) == ["passed"] * 2


def test_answers_of_the_oldest_questions_go_where_all_together_take_too_much(runner, monkeypatch):
    """What is counted is what is there, also after a question was forgotten, replaced or asked again."""
    monkeypatch.setattr(oracle, "MAX_BYTES", 40_000)
    references = oracle.ReferencePass(runner, limits=runner.limits)

    def ask(name, *numbers):
        suite = [f"assert f({number}) == 'x'" for number in numbers]
        calls = [case.call for case in Gate(LONG, (), assert_chars=1000).suite(suite).cases]
        return references.answer(name, prelude="", reference=LONG, suites=[calls]).oracles

    for name in ("a", "b", "a", "c", "d"):
        assert len(ask(name, *range(8))) == 8
    kept = references._questions
    assert [name for name, _ in kept._entries] == ["c", "d"]  # each about 16,000 bytes
    ask("c", 8, 9)
    references.forget("d")
    (question,) = kept._entries.values()
    assert kept._bytes == sum(oracle._size(*pair) for pair in question.oracles.items()) + 1024
    assert len(question.oracles) == 10
