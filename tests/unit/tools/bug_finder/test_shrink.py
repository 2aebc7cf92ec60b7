"""Shrinking a failing call, and the parts it is made of."""

import pytest

from code_a1_recipe.tools.bug_finder.literal_calls import take_apart
from code_a1_recipe.tools.bug_finder.shrink import shrink
from code_a1_recipe.tools.bug_finder.variants import variants


def shrunk(start, condition, max_asked=200):
    """The calls that failed, the simplest first, and all that were asked; ``condition`` gets the arguments of f."""
    asked = []

    def fails(text):
        asked.append(text)
        try:
            return bool(eval(text, {"f": condition}))
        except (TypeError, IndexError, KeyError, AttributeError):
            return False  # the reference raises: no valid call

    return shrink(start, fails, entry_points={"f"}, max_asked=max_asked), asked


@pytest.mark.parametrize(
    ("start", "condition", "minimal"),
    [
        ("f(1000)", lambda n: n > 36, "f(37)"),
        ("f(-1000)", lambda n: n < 0, "f(-1)"),
        ("f(987654321)", lambda n: n % 100 == 0 or n > 10**6, "f(0)"),
        ("f(1900)", lambda n: n > 0 and n % 100 == 0, "f(100)"),
        ("f(3.14159)", lambda x: x > 3, "f(3.1)"),
        ("f(True, None)", lambda flag, other: other is None, "f(False, None)"),
        ("f([5, 3, 9, 3, 100])", lambda items: len(set(items)) < len(items), "f([0, 0])"),
        ("f('hello World')", lambda text: text != text.lower(), "f('A')"),
        ("f('Grüße')", lambda text: not text.isascii(), "f('ü')"),
        ("f({'a': [1, 2], 'xyz': [3]})", lambda table: any(len(row) > 1 for row in table.values()), "f({'': [0, 0]})"),
        ("f({3, 70, 9})", lambda items: any(item > 50 for item in items), "f({51})"),
        ("f((4, 'x', (5, 6)))", lambda items: isinstance(items[-1], tuple), "f(((),))"),
        ("f([9, 8, 7], [1, 2, 3])", lambda a, b: len(a) == len(b) > 0, "f([0], [0])"),
        ("f([[1, 2, 3], [4, 5, 6], [7, 8, 9]])", lambda m: len(m) > 1 and m[0][1] != m[1][0], "f([[0, 1], [0]])"),
        ("f(9, verbose=True)", lambda n, verbose=False: n > 4, "f(5, verbose=False)"),
        ("f([3, 1, 2])", lambda items: len(items) > 1 and items != sorted(items)[::-1], "f([0, 1])"),
    ],
)
def test_what_is_left_is_what_makes_it_fail(start, condition, minimal):
    failing, asked = shrunk(start, condition)
    assert (failing[0], failing[-1]) == (minimal, start)
    assert len(asked) == len(set(asked)) < 60


def test_a_bound_on_calls_ends_the_search():
    failing, asked = shrunk("f([1, 2, 3, 4, 5, 6])", lambda items: len(items) > 3, max_asked=5)
    assert len(asked) == 5
    assert len(failing[0]) < len(failing[-1])


@pytest.mark.parametrize("text", ["f()", "g(100)"])
def test_what_cannot_be_simplified_stays(text):
    assert shrunk(text, lambda: True) == ([text], [])


def test_a_search_leaves_no_folder_of_hypothesis(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shrunk("f([100, 200, 300])", lambda items: sum(items) > 250)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "f([1], n=2)",
        "sorted(f(3), reverse=True)[0]",
        "await f('ä')",
        "Stack([1]).push(2).size",
        "Stack().run(1)",
        "round(f(1.5), 2)",
        "len(f({1: (2,)}))",
        "f(Counter({'a': 1}), deque([1]), Fraction(1, 2))",
    ],
)
def test_a_call_taken_apart_is_written_as_it_was(text):
    call = take_apart(text, {"f", "Stack"})
    assert call is not None
    assert call.text == text


@pytest.mark.parametrize("text", ["g(1)", "f(x)", "f(", "1 + 1", "f"])
def test_what_is_no_literal_call_is_not_taken_apart(text):
    assert take_apart(text, {"f"}) is None


def test_variants_take_turns_and_are_new():
    found = variants(["f([3, 1])", "f([])", "f(True)"], {"f"}, max_calls=5)
    assert found == ["f([3])", "f(False)", "f([1])", "f([3, 1, 3, 1])", "f([1, 3])"]


def test_variants_keep_types_and_lengths_that_belong_together():
    found = variants(["f([1, 2], 'ab', True)"], {"f"}, max_calls=500)
    assert found[:4] == ["f([1], 'a', True)", "f([2], 'b', True)", "f([], '', True)", "f([1, 2, 1, 2], 'abab', True)"]
    assert "f([1, 2], 'ab', False)" in found
    assert len(set(found)) == len(found)
    for text in found:
        assert list(map(type, take_apart(text, {"f"}).values)) == [list, str, bool]
