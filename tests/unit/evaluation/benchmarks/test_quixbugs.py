"""On a small folder of the same layout, with programs written for this test."""

import pytest

from code_a1_recipe.errors import InputError
from code_a1_recipe.evaluation.benchmarks.quixbugs import read_quixbugs
from code_a1_recipe.test_quality.metrics import judge_assertions, judge_kills
from sandbox import Judge, Limits, LocalRunner, SandboxUnavailableError

LARGEST = """\
def largest(values):
    best = {start}
    for value in values:
        best = max(best, value)
    return best
"""
COUNT_DOWN = (
    "import math\n\ndef count_down(n, step={step}):\n    while n > 0:\n        yield n\n        n -= step\n\n"
    '"""\nCount down\n\nYields n, n - 1, ..., 1.\n"""\n'
)
HANGS = "def halve(n):\n    while n != 1:\n        n {operator} 2\n    return [n]\n"


@pytest.fixture
def folder(tmp_path):
    """Three usable programs and one for each reason to skip one."""
    correct = {
        "largest": LARGEST.format(start="values[0]"),
        "count_down": COUNT_DOWN.format(step=1),
        "halve": HANGS.format(operator="//="),
        "graph": "def graph(node):\n    return node\n",
        "renamed": "def other(x):\n    return x\n",
        "old": "print 'Python 2'\n",
        "untold": "def untold(x):\n    return x\n",
        "helper_test": "x = 1\n",
    }
    buggy = correct | {
        "largest": LARGEST.format(start="0"),
        "count_down": COUNT_DOWN.format(step=2),
        "halve": HANGS.format(operator="-="),
        "fixed": "def fixed(x):\n    return x\n",
    }
    tests = {
        "largest": ["[[[3, 1]], 3]", "", "[[[-5, -2]], -2]", "[[[4.5, 2]], 4.5]"],
        "count_down": ["[3, [3, 2, 1]]", "[[0], []]"],
        "halve": ["[[8], [1]]", "not json", "[1, 2, 3]"],
        "renamed": ["[[1], 1]"],
        "old": ["[[1], 1]"],
        "untold": ["[]", '{"a": 1}'],
    }
    for name, files in (("python_programs", buggy), ("correct_python_programs", correct)):
        (tmp_path / name).mkdir()
        for stem, text in files.items():
            (tmp_path / name / f"{stem}.py").write_text(text)
    (tmp_path / "json_testcases").mkdir()
    for stem, lines in tests.items():
        (tmp_path / "json_testcases" / f"{stem}.json").write_text("\n".join(lines))
    return tmp_path


def test_programs_with_a_correct_one_and_literal_tests_become_questions(folder):
    questions, _ = read_quixbugs(folder)
    assert [question.id for question in questions] == [
        "QuixBugs/count_down", "QuixBugs/halve", "QuixBugs/largest"
    ]  # fmt: skip
    count_down, halve, largest = questions
    assert largest.tests == (
        "assert largest([3, 1]) == 3",
        "assert largest([-5, -2]) == -2",
        "assert largest([4.5, 2]) == 4.5",
    )
    assert count_down.tests == ("assert list(count_down(3)) == [3, 2, 1]", "assert list(count_down(0)) == []")
    assert halve.tests == ("assert halve(8) == [1]",)
    assert largest.reference == LARGEST.format(start="values[0]")
    assert largest.buggy_programs == (LARGEST.format(start="0"),)
    assert largest.entry_points == ("largest",)
    assert count_down.prompt == ("Count down\n\nYields n, n - 1, ..., 1.\n\nName the function `count_down(n, step=1)`.")


def test_what_is_skipped_is_counted_by_reason(folder):
    _, skipped = read_quixbugs(folder)
    assert skipped == {
        "fixed": "no_correct_program",
        "graph": "no_tests",
        "old": "not_python",
        "renamed": "no_function",
        "untold": "no_literal_test",
    }


def test_a_folder_of_another_layout_is_refused(folder):
    (folder / "json_testcases").rename(folder / "other")
    with pytest.raises(InputError, match="json_testcases is not there; name the top folder of a copy of QuixBugs"):
        read_quixbugs(folder)


def test_a_folder_without_a_usable_program_is_refused(folder):
    for path in (folder / "json_testcases").iterdir():
        path.unlink()
    with pytest.raises(InputError, match=r"no program can be used \(no_tests 7, no_correct_program 1"):
        read_quixbugs(folder)


def test_a_file_that_is_no_text_is_refused(folder):
    (folder / "python_programs" / "largest.py").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"largest[.]py: it or its counterparts cannot be read"):
        read_quixbugs(folder)


@pytest.fixture(scope="module")
def judge_all():
    def results(requests):
        judge = Judge(runner)
        return iter([judge.judge(request) for request in requests])

    with LocalRunner(limits=Limits(total_seconds=5.0)) as runner:
        yield results


def measure_bugs(question, asserts, judge_all):
    right = judge_assertions(question, asserts, judge_all)
    return judge_kills(question, asserts, judge_all, right=right, sources=question.buggy_programs)


def test_bugs_are_broken_by_right_asserts_only(folder, judge_all):
    count_down, halve, largest = read_quixbugs(folder)[0]
    assert measure_bugs(largest, largest.tests, judge_all) == ((False, True, False),)
    incorrect_assertion = ("assert largest([-5, -2]) == -5", "assert largest([1]) == 1")
    assert measure_bugs(largest, incorrect_assertion, judge_all) == ((False, False),)
    assert measure_bugs(count_down, count_down.tests, judge_all) == ((True, False),)
    # 8, 6, 4, 2, 0, -2, ... never ends.
    assert measure_bugs(halve, halve.tests, judge_all) == ((True,),)


def test_an_outage_is_an_error_and_no_kill(folder):
    largest = read_quixbugs(folder)[0][2]
    with pytest.raises(SandboxUnavailableError):
        measure_bugs(largest, largest.tests, lambda requests: iter([SandboxUnavailableError("gone")]))
