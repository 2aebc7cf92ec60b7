"""Mutants met by a question's tests in stages."""

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.test_quality.mutation_kill import kill_mutants
from sandbox import Judge, LocalRunner

QUESTION = Question(id="double", prompt="Double x.", reference="def double(x):\n    return 2 * x\n")
TESTS = (*(f"assert double({number}) == {2 * number}" for number in (0, 2, 0, 2, 0, 2, 0, 2)), "assert double(3) == 6")
SQUARE, FOUR, LOST = "def double(x): return x * x", "def double(x): return 4", "def double(x) return x"


def judged(asked, requests):
    requests = list(requests)
    asked.append([request.candidate for request in requests])
    with LocalRunner() as runner:
        return [Judge(runner).judge(request) for request in requests]


def test_survivors_alone_meet_the_later_tests():
    asked = []
    result = kill_mutants(QUESTION, [FOUR, SQUARE, LOST], TESTS, lambda requests: judged(asked, requests))
    assert asked == [[FOUR, SQUARE, LOST], [SQUARE]]
    assert result.survivors == ()


def test_only_correct_tests_kill():
    tests = ["assert double(2) == 5", "assert double(0) == 0"]
    result = kill_mutants(QUESTION, [SQUARE], tests, lambda requests: judged([], requests))
    assert (result.survivors, result.num_right_tests) == ((0,), 1)
