import pytest

from reward_fns import Refusal, extract_candidate, extract_suite

PROGRAM = "def f(x):\n    return x"


def test_the_last_complete_python_block_is_the_candidate():
    text = f"First:\n```python\ndef f(x): pass\n```\nBetter:\n```python\n{PROGRAM}\n```\nDone."
    assert extract_candidate(text) == PROGRAM


def test_a_block_cut_off_by_the_token_limit_does_not_hide_the_one_before():
    text = f"```python\n{PROGRAM}\n```\nor\n```python\ndef f("
    assert extract_candidate(text) == PROGRAM


def test_a_python_block_is_preferred_to_a_later_untagged_one():
    text = f"```python\n{PROGRAM}\n```\nOutput:\n```\n3\n```"
    assert extract_candidate(text) == PROGRAM


def test_an_untagged_block_is_read_when_there_is_no_python_block():
    assert extract_candidate(f"```\n{PROGRAM}\n```") == PROGRAM


def test_the_tag_may_be_capitalised_and_lines_may_end_with_carriage_returns():
    assert extract_candidate("```Python\r\nx = 1\r\n```\r\n") == "x = 1\r"


def test_bare_code_is_a_candidate():
    assert extract_candidate(PROGRAM) == PROGRAM


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
        ("```python\ndef f(x):\n    return", "unclosed_block"),
        ("```python\n\n```", "empty"),
        ("```json\n{}\n```", "no_code"),
        ("x" * 200_001, "too_long"),
    ],
)
def test_a_response_without_program_is_refused_with_its_reason(text, reason):
    refusal = extract_candidate(text)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == reason


def test_top_level_asserts_of_a_block_are_taken_in_order():
    text = "```python\nfrom x import f\n# one\nassert f(1) == 2\nassert f(2) == 3  # two\n```"
    assert extract_suite(text) == ("assert f(1) == 2", "assert f(2) == 3")


def test_an_assert_over_several_lines_stays_one():
    text = "```python\nassert f([\n  1,\n  2,\n]) == 3\nassert f([]) == 0\n```"
    assert extract_suite(text) == ("assert f([\n  1,\n  2,\n]) == 3", "assert f([]) == 0")


def test_two_asserts_on_one_line_are_two():
    assert extract_suite("assert f(1) == 2; assert f(2) == 3") == ("assert f(1) == 2", "assert f(2) == 3")


def test_a_broken_assert_is_kept_and_does_not_take_its_neighbours_along():
    text = "assert f(1) == 2\nassert f(2 == \nassert f(3) == 4"
    assert extract_suite(text) == ("assert f(1) == 2", "assert f(2 ==", "assert f(3) == 4")


def test_a_cut_off_last_line_does_not_lose_the_suite():
    assert extract_suite("assert f(1) == 2\nassert f('ab") == ("assert f(1) == 2", "assert f('ab")


def test_an_assert_over_several_lines_is_found_beside_a_broken_one():
    text = "assert f(\n  1\n) == 2\nassert f(2 == "
    assert extract_suite(text) == ("assert f(\n  1\n) == 2", "assert f(2 ==")


def test_a_string_that_never_closes_does_not_swallow_the_next_assert():
    text = "assert f('''x) == 1\nassert f(2) == 2\n''') == 3\nassert f(4 =="
    assert extract_suite(text) == ("assert f('''x) == 1", "assert f(2) == 2", "assert f(4 ==")


def test_text_inside_a_string_is_no_assert():
    assert extract_suite('assert f("""\nassert f(1) == 2\n""") == 3') == ('assert f("""\nassert f(1) == 2\n""") == 3',)


def test_prose_around_bare_asserts_is_passed_over():
    assert extract_suite("Here are two tests:\nassert f(1) == 2\nBye.") == ("assert f(1) == 2",)


def test_a_name_that_begins_with_assert_is_no_assert():
    refusal = extract_suite("assertion = 3\nthat is broken (")
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "no_asserts"


def test_asserts_beyond_the_limit_are_not_read():
    text = "\n".join(f"assert f({n}) == {n}" for n in range(100))
    assert len(extract_suite(text)) == 64
    assert extract_suite(text, max_asserts=2) == ("assert f(0) == 0", "assert f(1) == 1")


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="max_asserts must be at least 1, got 0"):
        extract_suite("assert f(1) == 2", max_asserts=0)


@pytest.mark.parametrize("text", ["", "no tests", "```python\nx = 1\n```"])
def test_a_response_without_asserts_is_refused(text):
    assert isinstance(extract_suite(text), Refusal)
