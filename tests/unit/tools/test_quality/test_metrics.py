import pytest

from code_a1_recipe.algorithm.question import Question, request_for
from code_a1_recipe.data.reader import iter_rows, read_questions
from code_a1_recipe.tools.test_quality.coverage import CallCoverage, calls_in, measure_coverage
from code_a1_recipe.tools.test_quality.metrics import FunctionResult, killable_by, measure_function, parts_of
from code_a1_recipe.tools.test_quality.mutants import mutants_of
from sandbox import CaseOutcome, Judge, SandboxUnavailableError

from .plain_coverage import plain_coverage


def flags(text):
    """``flags("10")``: a truth value for each test, or for each mutant."""
    return tuple(letter == "1" for letter in text)


# Five tests each, unless stated otherwise.
PERFECT = FunctionResult(
    right=flags("11111"),
    kills=(flags("10000"), flags("00100"), flags("00000"), flags("01111")),
    killable=flags("1101"),
    num_lines=10,
    lines=({1, 2}, {1, 2, 3}, {1}, set(), {9, 10}),
    num_branches=4,
    branches=({(1, 2)}, {(1, 3)}, {(1, 2)}, set(), {(2, 4)}),
)
MIXED = FunctionResult(
    right=flags("10100"),
    kills=(flags("10000"), flags("00100")),
    killable=flags("11"),
    num_lines=30,
    lines=(set(range(1, 7)), set(range(5, 11)), {20}, {20}, {21}),
    num_branches=0,
    branches=(set(),) * 5,
)
SHORT = FunctionResult(  # one test, and no mutants
    right=flags("1"), killable=(), num_lines=5, lines=({1, 2, 3, 4, 5},), num_branches=2, branches=({(1, 2)},)
)
EMPTY = FunctionResult(right=(), kills=((),), killable=flags("0"), num_lines=5, num_branches=2)
ALL = [PERFECT, MIXED, SHORT, EMPTY]


def parts(name, results=ALL):
    """Numerators and denominators of the functions."""
    metric, _, k = name.partition("@")
    return tuple(zip(*(parts_of(one, int(k))[metric] for one in results), strict=True))


@pytest.mark.parametrize(
    ("name", "numerators", "denominators"),
    [
        ("pass@1", (1, 1, 1, 0), (1, 1, 1, 1)),
        ("pass@5", (5, 2, 1, 0), (5, 5, 5, 5)),  # missing tests count as wrong
        ("line_cov@1", (2, 6, 5, 0), (10, 30, 5, 5)),
        ("line_cov@5", (5, 12, 5, 0), (10, 30, 5, 5)),
        ("branch_cov@5", (3, 0, 1, 0), (4, 0, 2, 2)),
        ("mut@1", (1 / 4, 1 / 2, 0, 0), (1, 1, 0, 0)),
        ("mut@5", (0.75, 0, 0, 0), (1, 0, 0, 0)),  # functions count whose first tests are all right
        ("mut_all@5", (0.75, 0, 0, 0), (1, 1, 0, 1)),  # a failing baseline kills nothing
        ("mut_killable@1", (1 / 3, 1 / 2, 0, 0), (1, 1, 0, 0)),
        ("mut_all_killable@5", (1, 0, 0, 0), (1, 1, 0, 0)),  # EMPTY's only mutant is not known to be killable
    ],
)
def test_each_function_counts_for_a_metric_by_its_rule(name, numerators, denominators):
    assert parts(name) == (numerators, denominators)


def test_without_a_right_test_of_the_question_no_metric_counts_killable_mutants():
    assert not any("killable" in name for name in parts_of(FunctionResult(right=(True,), kills=((True,),)), 1))


QUESTION = Question(
    id="clip",
    prompt="Clip x to 0..9.",
    reference="def clip(x):\n    if x < 0:\n        return 0\n    return min(x, 9)\n",
)
ASSERTS = (
    "assert clip(5) == 5",
    "assert clip(-3) == -3",  # an incorrect assertion
    "assert clip(12) == 9",
    "assert clip('a') == 'a'",  # the reference raises
    "assert clip(5) == 5",  # again
)
MUTANTS = {
    "def clip(x): return min(x, 9)": flags("00000"),  # only clip(-3) tells
    "def clip(x): return max(x, 0)": flags("00100"),
    "def clip(x): return 9": flags("10001"),
    "def clip(x):\n    while x == 12: pass\n    return x": flags("00100"),
    "def clip(x): raise ValueError": flags("10101"),
    "def clip(x) return": flags("10101"),
}


def test_a_function_is_measured_on_its_reference_and_its_mutants(judge_all):
    lines = ({1}, set(), {1, 2}, set(), {1})
    coverage = CallCoverage(
        lines=frozenset({1, 2, 3, 4}), branches=frozenset({(2, 3)}), lines_of_call=lines,
        branches_of_call=(set(),) * 5,
    )  # fmt: skip
    found = measure_function(
        QUESTION, ASSERTS, judge_all=judge_all, mutants=list(MUTANTS), coverage=coverage, killable=flags("111111")
    )
    assert found.right == flags("10101")
    assert dict(zip(MUTANTS, found.kills, strict=True)) == MUTANTS
    assert (found.num_lines, found.lines, found.num_branches) == (4, lines, 1)
    assert found.killable == flags("111111")


def test_without_right_tests_no_mutant_is_run(judge_all):
    asked = []

    def noting(requests):
        asked.extend(requests)
        return judge_all(requests)

    found = measure_function(QUESTION, ASSERTS[1:2], judge_all=noting, mutants=list(MUTANTS))
    assert found.kills == ((False,),) * 6
    assert [request.candidate for request in asked] == [None]


def test_an_outage_is_no_result():
    with pytest.raises(SandboxUnavailableError, match="gone"):
        measure_function(QUESTION, ASSERTS, judge_all=lambda requests: iter([SandboxUnavailableError("gone")]))


def test_mutants_that_survive_the_first_tests_alone_meet_the_later_tests(judge_all):
    asked = []

    def noting(requests):
        asked.append([request.candidate for request in requests])
        return judge_all(requests)

    maximum, constant, broken = "def clip(x): return max(x, 0)", "def clip(x): return 4", "def clip(x) return x"
    tests = [*("assert clip(0) == 0", "assert clip(2) == 2") * 4, "assert clip(12) == 9"]
    assert killable_by(QUESTION, [constant, maximum, broken], tests, noting) == flags("111")
    assert asked == [[constant, maximum, broken], [maximum]]


def test_only_correct_tests_kill(judge_all):
    same, tests = ["def clip(x): return max(x, 0)"], ["assert clip(2) == 5", "assert clip(0) == 0"]
    assert killable_by(QUESTION, same, tests, judge_all) == flags("0")
    assert killable_by(QUESTION, same, tests[:1], judge_all) is None


RIGHT_BY_HAND = {
    # Reading the function: (180, 360, 180) turns 360 to 0 and lies between; (359, 1, 180) turns 359 to -1.
    "ULT/10": flags("10100"),
    "ULT/186": flags("11111"),
    # (1, 4) and (0, 1) hold; the others give (1, 2), (0, 5) and (None, None).
    "ULT/199": flags("10010"),
    "ULT/557": flags("10111"),  # 5M5I5M is 15 long, not 10
    "ULT/746": flags("01000"),  # the function splits a name into its letters, which no author expected
}


def counted_plainly(question, asserts, folder):
    """Lines covered, lines, branches covered and branches by coverage.py in a process of its own."""
    calls = [text.removeprefix("assert ").partition(" == ")[0] for text in asserts]
    found = plain_coverage(question.reference, calls, folder, prelude=question.prelude)
    statements, missing, num_branches, num_taken = found
    return len(statements) - len(missing), len(statements), num_taken, num_branches


@pytest.mark.nightly
@pytest.mark.shared
def test_metrics_of_five_published_functions_agree_with_plain_counting(shared_dir, tmp_path, runner, judge_all):
    """UnLeakedTestBench's own asserts, five a function, taken as generated tests; some mutants each."""
    path = shared_dir / "data/ULT_Lite.jsonl"
    questions = {one.id: one for one in read_questions(path).questions if one.id in RIGHT_BY_HAND}
    asserts = {f"ULT/{row['task_id']}": row["test_list"] for row in iter_rows(path)}
    results, counted, killed = [], [], []
    judge = Judge(runner)
    for name, right in RIGHT_BY_HAND.items():
        question, texts = questions[name], asserts[name]
        num_mutants = 17 if name == "ULT/186" else 6
        mutants = [mutant.source for mutant in mutants_of(question.reference, max_mutants=num_mutants)]
        calls = calls_in(question, texts)
        coverage = measure_coverage(runner, question.reference, calls, prelude=question.prelude)
        result = measure_function(question, texts, judge_all=judge_all, mutants=mutants, coverage=coverage)
        results.append(result)
        counted.append(counted_plainly(question, texts, tmp_path))
        killed.append(sum(breaks(judge, question, one, texts, right) for one in mutants))
        assert result.right == right, name
    assert (
        [
            (len(set().union(*one.lines)), one.num_lines, len(set().union(*one.branches)), one.num_branches)
            for one in results
        ]
        == counted
        == [(17, 17, 11, 12), (23, 23, 22, 22), (11, 17, 6, 12), (17, 21, 7, 10), (20, 24, 8, 12)]
    )
    assert [sum(map(any, one.kills)) for one in results] == killed
    assert (len(results[1].kills), killed[1]) == (17, 16)  # `Accel or X` survives: later rules set the label again


def breaks(judge, question, source, asserts, right):
    """One by one, from the raw verdicts: does a right assert fail on the program?"""
    for text, is_right in zip(asserts, right, strict=True):
        verdict = judge.judge(request_for(question, source, (text,)))
        if is_right and verdict.suites[0].cases[0].outcome is not CaseOutcome.PASSED:
            return True
    return False
