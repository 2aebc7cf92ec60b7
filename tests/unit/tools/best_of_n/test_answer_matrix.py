"""Programs x tests without a reference, with the real sandbox."""

from dataclasses import replace

import numpy as np
import pytest

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.tools.best_of_n.answer_matrix import answer_matrix, group_answers, interface_of, read_cases
from code_a1_recipe.tools.best_of_n.selection_rules import NO_ANSWER, mbr_exec
from sandbox import Role, SandboxUnavailableError
from sandbox.text import encode

DOUBLE = "def f(x):\n    return 2 * x"
SQUARE = "def f(x):\n    return x * x"
RAISES = "def f(x):\n    if x < 3: return 0\n    raise ValueError('no')"
RAISES_OTHERWISE = "def f(x):\n    if x < 3: return 0\n    raise ValueError('other words')"
LACKS_IMPORT = "def f(x):\n    return math.prod((2, x))"
HANGS = "def f(x):\n    while True:\n        pass"
BROKEN = "def f(x:\n"
ABOUT = Question(id="double", prompt="Twice x.", reference=DOUBLE, entry_points=("f",))


class FailingRunner:
    """Cannot run programs that name one word; the others run for real."""

    def __init__(self, runner, word):
        self.runner, self.word, self.limits = runner, word, runner.limits
        self.asked = []

    def run(self, program, *, role):
        self.asked += [call.text for call in program.calls]
        if self.word in program.source:
            raise SandboxUnavailableError("the machine is gone")
        assert role is Role.CANDIDATE
        return self.runner.run(program, role=role)


def matrix(programs, suites, runner):
    return answer_matrix(programs, read_cases(programs, suites, ABOUT), runner, ABOUT)


def test_who_agrees_with_the_claims_and_with_whom(runner):
    suites = [("assert f(3) == 6", "assert f(2) == 4"), ("assert f(3) == 9", "assert f(x) == 1")]
    passes, answers = matrix([DOUBLE, SQUARE, RAISES, RAISES_OTHERWISE], suites, runner)
    assert passes.tolist() == [[True, True, False], [False, True, True], [False] * 3, [False] * 3]
    # Ids by column: f(3) is 6, 9 or a ValueError; f(2) is 4 or 0.
    assert answers.tolist() == [[0, 0, 0], [1, 0, 1], [2, 1, 2], [2, 1, 2]]


def test_a_program_that_hangs_or_does_not_load_has_no_answer(runner):
    passes, answers = matrix([HANGS, BROKEN, DOUBLE], [("assert f(1) == 2",)], runner)
    assert answers[:, 0].tolist() == [NO_ANSWER, NO_ANSWER, 0]
    assert passes[:, 0].tolist() == [False, False, True]


def test_a_program_that_raises_on_every_call_agrees_with_none(runner):
    programs = [LACKS_IMPORT, DOUBLE, LACKS_IMPORT + "  # again"]
    _, answers = matrix(programs, [("assert f(1) == 2", "assert f(2) == 4")], runner)
    assert answers.tolist() == [[NO_ANSWER] * 2, [0, 0], [NO_ANSWER] * 2]
    assert mbr_exec(answers >= 0, answers).tolist() == [0, 1, 0]


def test_equal_programs_and_equal_calls_run_once_but_a_case_of_two_suites_counts_twice(runner):
    suites = [("assert f(1) == 2", "assert f(x=1) == 2"), ("assert f(1) == 2", "assert f(1) == 3")]
    noting = FailingRunner(runner, "nothing of this kind")
    passes, _ = matrix([DOUBLE, SQUARE, DOUBLE], suites, noting)
    assert passes.tolist() == [[True] * 2, [False] * 2, [True] * 2]  # of a suite only the first assert of a call counts
    assert noting.asked == ["f(1)"] * 2


def test_an_outage_of_one_program_is_no_verdict_but_an_error(runner):
    failing = FailingRunner(runner, "x * x")
    with pytest.raises(SandboxUnavailableError, match="the machine is gone"):
        matrix([SQUARE, DOUBLE], [("assert f(3) == 6",)], failing)


def test_signatures_are_those_of_the_first_program_that_defines_the_entry_point():
    interface = interface_of(["def g(): pass", BROKEN, "def f(a, b=1): pass", "def f(z): pass"], ABOUT)
    assert interface.entry_points["f"].parameters.positional == ("a", "b")
    assert interface_of([BROKEN], ABOUT).entry_points["f"].parameters is None
    of_class = replace(ABOUT, entry_points=("A", "A.b"))
    entry = interface_of(["class A:\n    def __init__(self, a): self.b = a"], of_class).entry_points["A"]
    assert (entry.parameters.positional, "b" in entry.members) == (("a",), True)


def test_without_tests_or_programs_the_matrix_is_empty(runner):
    for programs, suites, shape in (([DOUBLE], [], (1, 0)), ([], [("assert f(1) == 2",)], (0, 1))):
        passes, answers = matrix(programs, suites, runner)
        assert (passes.shape, answers.shape) == (shape, shape)
        assert (passes.dtype, answers.dtype) == (np.bool_, np.int64)


def test_answers_within_the_tolerance_are_one_group_in_any_order():
    chain = [*map(encode, (1.0, 1.0 + 8e-7, 1.0 + 16e-7, 2.0)), None]
    for order in ([0, 1, 2, 3, 4], [2, 0, 3, 4, 1], [0, 2, 1, 4, 3]):
        groups = group_answers([chain[place] for place in order])
        assert sorted(sorted(order[index] for index in group) for group in groups) == [[0, 1, 2], [3]]


def test_equal_numbers_of_two_types_are_one_answer_and_a_tuple_is_no_list():
    assert group_answers([b"i1;", b"T", encode(1.0)]) == [(0, 1, 2)]
    assert group_answers([b"l1:i1;", b"t1:i1;"]) == [(0,), (1,)]
