"""The rules by which a program is chosen from a response, each by one response."""

import pytest

from reward_fns import extract_candidate
from reward_fns.extract import asked_names

F, G, H = "def f(x):\n    return x", "def g(x):\n    return f(x)", "def h(x):\n    return x + k"
K, PI = "k = 1", "def g(x):\n    return math.pi"
PROSE = "Some words (of a model)."


def fenced(*programs: str) -> str:
    return "\n".join(f"{PROSE}\n```python\n{program}\n```" for program in programs)


def joined(*programs: str) -> str:
    return "\n\n".join(programs)


@pytest.mark.parametrize(
    ("programs", "names", "program"),
    [
        ((F, "def f(x):\n    return 2"), ("f",), "def f(x):\n    return 2"),
        ((F, H), ("f",), F),
        ((F, H), (), H),
        ((F, "print(f(1))"), (), F),
        (("class Stack:\n    pass", F), ("Stack.push",), "class Stack:\n    pass"),
        (("f = lambda x: x", H), ("f",), "f = lambda x: x"),
        # Earlier blocks come along if they define what the block uses, directly or through another block.
        ((F, K, G), ("g",), joined(F, G)),
        ((K, H, "def g(x):\n    return h(x)"), ("g",), joined(K, H, "def g(x):\n    return h(x)")),
        (
            ("import math", F, "def g(x):\n    return math.pi"),
            ("g",),
            joined("import math", "def g(x):\n    return math.pi"),
        ),
        (("f(", "k = 0", K, H), ("h",), joined(K, H)),  # the nearest definition counts
        # No single block has all names.
        ((F, "words (", G), ("f", "g"), joined(F, G)),
        ((f"{F}\n{K}", G), ("f", "g"), joined(f"{F}\n{K}", G)),
        ((F, G), ("f", "g", "h"), G),
        # The longest run of lines of a block that does not parse as a whole.
        ((f"{F}\n{PROSE}",), ("f",), F),
    ],
)
def test_the_last_block_that_defines_the_names_is_the_program(programs, names, program):
    assert extract_candidate(fenced(*programs), names=names) == program


def test_a_program_that_reads_input_is_preferred_to_a_later_block_that_shows_its_use():
    reads, shows = "print(int(input()) + 1)", "print(3)"
    assert extract_candidate(fenced(reads, shows), reads_input=True) == reads
    assert extract_candidate(fenced(shows, "x = 1"), reads_input=True) == shows


@pytest.mark.parametrize(
    ("lines", "program"),
    [
        ([PROSE, PROSE, "", F, PROSE], F),
        ([PROSE, "", "", "def f(x):\n    y = (1 +\n        2)\n    z = 3\n    return y", PROSE], None),
        # Of two runs the longer one counts, and of equally long ones the last.
        ([PROSE, "def f(x):\n    y = x\n    return y", PROSE, F, PROSE], "def f(x):\n    y = x\n    return y"),
        ([F, PROSE, "def f(x):\n    return 2", PROSE], "def f(x):\n    return 2"),
        # The run ends before the statement that the parser refuses, not inside it.
        ([PROSE, PROSE, "", F, "if x:\n    y = 1\n  z = 2", PROSE], F),
        ([PROSE, PROSE, "", F, f"def g(x):\n    y = 1\n  {PROSE}"], F),
        ([PROSE, H, PROSE, F, K, K, PROSE], joined(F, K, K).replace("\n\n", "\n")),
    ],
)
def test_without_a_fence_the_longest_run_of_lines_that_defines_the_names_is_the_program(lines, program):
    wanted = lines[3] if program is None else program
    assert extract_candidate("\n".join(lines), names=("f",)) == wanted


@pytest.mark.parametrize(
    ("entry_points", "reference", "tests", "names"),
    [
        (["Stack.push"], F, ["assert f(1) == 1"], ("Stack.push",)),
        ([], f"{G}\n{F}", ["assert f(1) == h(1)", "assert f(2) == 2"], ("f",)),
        ([], f"{G}\n{F}", ["assert g(1) == 1", "assert f(2) == 2"], ("f", "g")),
        ([], f"{G}\n{F}", ["assert h(1) == 1"], ()),
        ([], F, [], ("f",)),
        ([], "def f(", ["assert f(1) == 1"], ()),
    ],
)
def test_the_names_that_are_asked_for(entry_points, reference, tests, names):
    assert asked_names(entry_points, reference, tests) == names
