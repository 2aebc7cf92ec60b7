"""Mutants met by a question's tests in stages."""

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.tools.test_quality.metrics import killable_by

QUESTION = Question(id="double", prompt="Double x.", reference="def double(x):\n    return 2 * x\n")
TESTS = (*(f"assert double({number}) == {2 * number}" for number in (0, 2, 0, 2, 0, 2, 0, 2)), "assert double(3) == 6")
SQUARE, FOUR, LOST = "def double(x): return x * x", "def double(x): return 4", "def double(x) return x"


def test_survivors_alone_meet_the_later_tests(judge_all):
    asked = []

    def noting(requests):
        asked.append([request.candidate for request in requests])
        return judge_all(requests)

    result = killable_by(QUESTION, [FOUR, SQUARE, LOST], TESTS, noting)
    assert asked == [[FOUR, SQUARE, LOST], [SQUARE]]
    assert result == (True,) * 3


def test_only_correct_tests_kill(judge_all):
    tests = ["assert double(2) == 5", "assert double(0) == 0"]
    assert killable_by(QUESTION, [SQUARE], tests, judge_all) == (False,)
    assert killable_by(QUESTION, [SQUARE], tests[:1], judge_all) is None
