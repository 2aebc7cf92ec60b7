import time

import pytest

from reward_fns import ExtractionFailure, extract_candidate, extract_suite
from reward_fns.extract import MAX_ASSERT_CHARS, MAX_ASSERT_LINES, MAX_RESPONSE_CHARS

PROGRAM = "def f(x):\n    return x"
BROKEN = "assert f(("
"""Never completes; the block that it stands in does not parse as a whole."""


RESPONSES = {
    "the last complete block": f"First:\n```python\ndef f(x): pass\n```\nBetter:\n```python\n{PROGRAM}\n```\nDone.",
    "a block that the token limit cut off does not hide it": f"```python\n{PROGRAM}\n```\nor\n```python\ndef f(",
    "a python block is preferred to a later untagged one": f"```python\n{PROGRAM}\n```\nOutput:\n```\n3\n```",
    "an untagged block is read when there is no python block": f"```\n{PROGRAM}\n```",
    "bare code is a candidate": PROGRAM,
}


@pytest.mark.parametrize("text", RESPONSES.values(), ids=RESPONSES)
def test_the_program_of_a_response_is_its_candidate(text):
    assert extract_candidate(text) == PROGRAM


def test_the_tag_may_be_capitalised_and_lines_may_end_with_carriage_returns():
    assert extract_candidate("```Python\r\nx = 1\r\n```\r\n") == "x = 1\r"


@pytest.mark.parametrize(
    "text",
    [" ", "`", "x ", "~~~\n```\n", "a```py\n", "<think>", "x = (\n", "@d\n", "```python\n" + "@d\n" * 500 + "```\n"],
    ids=lambda text: text[:12],
)
def test_repeated_marks_are_read_in_bounded_time(text):
    """Seconds at most, where an expression that tries each place would take hours."""
    for begin in ("", "```python\n"):
        assert extract_candidate(begin + text * (190_000 // len(text)), names=("f",))


def test_a_fenced_block_that_does_not_parse_is_left_to_the_judge():
    assert extract_candidate("```python\ndef f(:\n```") == "def f(:"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("I cannot solve this.", "no_code"),
        ("word", "no_code"),
        ("x = 1", "no_code"),
        ("```python\ndef f(x):\n    return (", "unclosed_block"),
        ("```python\n\n```", "empty"),
        ("```json\n{}\n```", "no_code"),
        ("x" * 200_001, "too_long"),
    ],
)
def test_a_response_without_program_is_refused_with_its_reason(text, reason):
    failure = extract_candidate(text)
    assert isinstance(failure, ExtractionFailure)
    assert failure.reason == reason


ASSERTS = {
    "top level asserts of a block are taken in order": (
        "```python\nfrom x import f\n# one\nassert f(1) == 2\nassert f(2) == 3  # two\n```",
        ("assert f(1) == 2", "assert f(2) == 3"),
    ),
    "an assert over several lines stays one": (
        "```python\nassert f([\n  1,\n  2,\n]) == 3\nassert f([]) == 0\n```",
        ("assert f([\n  1,\n  2,\n]) == 3", "assert f([]) == 0"),
    ),
    "two asserts on one line are two": ("assert f(1) == 2; assert f(2) == 3", ("assert f(1) == 2", "assert f(2) == 3")),
    "a broken assert is kept and does not take its neighbours along": (
        "assert f(1) == 2\nassert f(2 == \nassert f(3) == 4",
        ("assert f(1) == 2", "assert f(2 ==", "assert f(3) == 4"),
    ),
    "a cut off last line does not lose the suite": (
        "assert f(1) == 2\nassert f('ab",
        ("assert f(1) == 2", "assert f('ab"),
    ),
    "an assert over several lines is found beside a broken one": (
        "assert f(\n  1\n) == 2\nassert f(2 == ",
        ("assert f(\n  1\n) == 2", "assert f(2 =="),
    ),
    "a string that never closes does not swallow the next assert": (
        "assert f(4 ==\nassert f('''x) == 1\nassert f(2) == 2\n''') == 3",
        ("assert f(4 ==", "assert f('''x) == 1", "assert f(2) == 2"),
    ),
    "text inside a string is no assert": (
        'assert f("""\nassert f(1) == 2\n""") == 3',
        ('assert f("""\nassert f(1) == 2\n""") == 3',),
    ),
    "prose around bare asserts is passed over": ("Here are two tests:\nassert f(1) == 2\nBye.", ("assert f(1) == 2",)),
}


@pytest.mark.parametrize(("text", "asserts"), ASSERTS.values(), ids=ASSERTS)
def test_the_asserts_of_a_response_are_its_suite(text, asserts):
    assert extract_suite(text) == asserts


def test_asserts_of_all_blocks_count_also_of_one_that_never_closes():
    run_on = "```python\nassert f(1) == 2\nassert f(2) == 3\nassert f('ab"
    assert extract_suite(run_on) == ("assert f(1) == 2", "assert f(2) == 3", "assert f('ab")
    closed = "```python\nassert f(1) == 2\n```\nAnd more:\n```python\nassert f(2"
    assert extract_suite(closed) == ("assert f(1) == 2", "assert f(2")
    assert extract_suite("```python\n").reason == "no_asserts"


def test_a_name_that_begins_with_assert_is_no_assert():
    failure = extract_suite("assertion = 3\nthat is broken (")
    assert isinstance(failure, ExtractionFailure)
    assert failure.reason == "no_asserts"


def test_a_long_response_is_read_to_its_last_character():
    text = "assert f(1) == 2".ljust(MAX_RESPONSE_CHARS)
    assert extract_suite(text) == ("assert f(1) == 2",)
    assert extract_suite(text + " ").reason == "too_long"


@pytest.mark.parametrize("num_lines_before", [0, 1, 300, 301])
@pytest.mark.parametrize("ending", ["", f"\n{BROKEN}"])
def test_where_an_assert_stands_does_not_matter(num_lines_before, ending):
    asserts = ("assert f(1) == 2", 'assert f("""\n 1""", [\n 2,\n]) == 3', "assert f(3) == 4")
    text = "\n" * num_lines_before + "\n".join([*asserts, "value = 5"]) + ending
    assert extract_suite(text) == (asserts if not ending else (*asserts, BROKEN))


def test_every_one_of_many_asserts_is_read():
    asserts = tuple(f"assert f({n}) == {n}" for n in range(300))
    assert extract_suite("\n".join([*asserts, BROKEN]), max_asserts=300) == asserts
    assert extract_suite("\n".join([*asserts, BROKEN]), max_asserts=301) == (*asserts, BROKEN)


@pytest.mark.parametrize("num_lines_before", [0, 1, 300])
def test_an_assert_beside_a_broken_one_has_so_many_lines_at_most(num_lines_before):
    before = "\n" * num_lines_before
    longest = "assert f(" + "\n" * (MAX_ASSERT_LINES - 1) + ") == 1"
    assert extract_suite(f"{before}{BROKEN}\n{longest}") == (BROKEN, longest)
    assert extract_suite(f"{before}{BROKEN}\n" + longest.replace("(", "(\n")) == (BROKEN, "assert f(")
    assert extract_suite(f"{before}{BROKEN}\nassert f(1\n) == 2") == (BROKEN, "assert f(1\n) == 2")


@pytest.mark.parametrize("num_lines_before", [0, 1, 300])
def test_an_assert_beside_a_broken_one_has_so_many_characters_at_most(num_lines_before):
    before = "\n" * num_lines_before
    # Each line counts with its end.
    longest = "assert f(\n1,\n" + " " * (MAX_ASSERT_CHARS - len("assert f(\n1,\n) == 1\n")) + ") == 1"
    assert extract_suite(f"{before}{BROKEN}\n{longest}") == (BROKEN, longest)
    assert extract_suite(f"{before}{BROKEN}\n" + longest.replace("1,", "10,")) == (BROKEN, "assert f(")


def test_asserts_beyond_the_limit_are_not_read():
    text = "\n".join(f"assert f({n}) == {n}" for n in range(100))
    assert len(extract_suite(text)) == 64
    for max_asserts in (1, 2):
        assert extract_suite(text, max_asserts=max_asserts) == tuple(text.split("\n")[:max_asserts])
        assert extract_suite(f"{text}\n{BROKEN}", max_asserts=max_asserts) == tuple(text.split("\n")[:max_asserts])


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="max_asserts must be at least 1, got 0"):
        extract_suite("assert f(1) == 2", max_asserts=0)


@pytest.mark.parametrize("text", ["", "no tests", "```python\nx = 1\n```"])
def test_a_response_without_asserts_is_refused(text):
    assert isinstance(extract_suite(text), ExtractionFailure)


CHANGES = [
    "for i in x:\n    x.append(i)",
    "x[0] = 9",
    "x['a'] = 1",
    "del x[0]",
    "x, y = y, x",
    "x += [1]",
    "rev(x)",
]
CHANGES += ["for i in range(3):\n    x += i", "while x:\n    x += 1", "if y:\n    x = 2", "y = x\ny.append(1)"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_name_whose_value_may_have_changed_is_left_as_it_is(change):
    source = f"x = [1]\nassert f(x) == 1\n{change}\nassert f(x) == 2\ndef test_g(x=1):\n    assert g(x) == 3\n"
    assert extract_suite(source) == ("assert f([1]) == 1", "assert f(x) == 2", "assert g(x) == 3")


SUITE = """\
stack = Stack([1])
print(stack)
assert stack.pop() == 1
assert stack.pop() == 0
class TotalTests(unittest.TestCase):
    def test_one(self):
        for given, want in [(1, 2), (3, 4)]:
            with self.subTest(given):
                self.assertEqual(f(*[given, 0]), want)
        with self.assertRaises(ValueError):
            self.assertEqual(f(-1), 0)
        self.assertNotEqual(f(1), 2)
@pytest.mark.parametrize("a, b", [(5, 6), (7, 8)])
def test_f(a, b):
    assert f(a) == b
def latest(x):
    assert x
"""


def test_a_suite_of_any_usual_form_is_read_and_a_last_line_that_is_cut_off_beside_it():
    found = [
        "assert Stack([1]).pop() == 1", "assert stack.pop() == 0", "assert f(1, 0) == 2", "assert f(3, 0) == 4",
        "assert self.assertNotEqual(f(1), 2) == True", "assert f(5) == 6", "assert f(7) == 8",
    ]  # fmt: skip
    assert list(extract_suite(SUITE)) == found
    assert list(extract_suite(f"{SUITE}assert f(9,")) == [*found, "assert f(9,"]


def test_nested_loops_and_growing_values_are_read_in_bounded_time():
    loops = "".join(f"{'  ' * depth}for a{depth} in {list(range(500))}:\n" for depth in range(20))
    growing = "x = [0]\n" + "x = [x, x, x]\n" * 60
    started = time.process_time()
    assert extract_suite(f"{growing}{loops}{'  ' * 20}pass\nassert f(1) == 1") == ("assert f(1) == 1",)
    assert time.process_time() - started < 5


ROUND = "def test_f(a, b):\n    assert f(a) == b"


@pytest.mark.parametrize(
    "text",
    [
        "Tests:\n1. assert f(1) == 2\n2. assert f(2) == 3",
        "Tests:\n- `assert f(1) == 2`\n* `assert f(2) == 3`",
        "class Adding(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(f(1), 2)\n"
        "        assert f(2) == 3",
        f"@pytest.mark.parametrize(('a', 'b'), [(1, 2), pytest.param(2, 3, id='x')])\n{ROUND}",
        f"@pytest.mark.parametrize(['a', 'b'], [(1, 2), (2, 3)])\n{ROUND}",
    ],
)
def test_lists_in_markdown_test_cases_and_further_forms_of_parametrize_are_read(text):
    assert list(extract_suite(text)) == ["assert f(1) == 2", "assert f(2) == 3"]


def fenced(*blocks):
    return "\n".join(f"```python\n{block}\n```" for block in blocks)


def test_imports_in_an_earlier_block_belong_to_the_program_that_reads_them():
    area = "def area(r): return math.pi * r"
    assert extract_candidate(fenced("import math", area), names=("area",)) == f"import math\n\n{area}"
    assert extract_candidate(fenced("import os", area), names=("area",)) == area


@pytest.mark.parametrize("shown", ["print('expected: 6')", "import subprocess\nsubprocess.run(['a.py'], input=b'3')"])
def test_of_blocks_one_that_reads_the_input_comes_before_one_behind_it_that_shows_its_use(shown):
    program = "import sys\nprint(2 * int(sys.stdin.readline()))"
    assert extract_candidate(fenced(program, shown), reads_input=True) == program
    better = "print(2 * int(input()))"
    assert extract_candidate(fenced(program, better, shown), reads_input=True) == better
