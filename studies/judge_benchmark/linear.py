"""Measures how the time of functions that read untrusted text grows with the text: for 100 KB divided by 10 KB."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable
from typing import Any

from reward_fns.answer_blocks import answer_of, blocks_of
from reward_fns.extract import extract_candidate, extract_suite
from reward_fns.listed import with_function
from sandbox.cases.definitions import imports_quickly, with_solution, without_examples
from sandbox.judge import oracle
from sandbox.limits import Limits
from sandbox.runners.base import Program, import_seconds
from sandbox.text import PARSE_ERRORS, Interface, parse_assert, parse_call, parse_untrusted, syntax_key

MOST_GROWTH = 15.0
_SIZES = ((10_000, 100_000), (6_000, 60_000))
"""Pairs of lengths, in characters. Most functions do not parse 100,000 characters, so 60,000 are measured too."""
_NOISE_SECONDS = 0.05
"""Growth does not count if the long text takes less than this: it may be noise, or another way beyond a bound."""
_MOST_TRIES = 5

_LINES = {
    "assignments": "a{0} = {0}\n",
    "chain": "v{0} = v{1}\n",
    "counting": "x += 1\n",
    "functions": "def f{0}(): return f{1}()\n",
    "functions and calls": "def f{0}(x): return x\nf{0}({0})\n",
    "classes and prints": "class C{0}: pass\nprint(C{0})\n",
    "bases": "class C{0}(C{1}): pass\n",
    "bases twice": "class C{0}(C{1}, C{1}): pass\n",
    "methods": "class Solution:\n    def f{0}(self): self.a{0} = 1\n",
    "decorators": "@d{0}\n",
    "decorated": "@d\ndef f{0}(): pass\n",
    "comprehensions": "y{0} = [x for x in y{1} if x]\n",
    "loops": "for i{0} in range(9): y[i{0}] = x{1}\n",
    "nested loops": "for i in [1, 2]:\n assert f(i) == {0}\n",
    "imports": "import m{0}\n",
    "imports of one line": "import m{0}, m{1} as x; from a import *; ",
    "asserts": "assert f({0}) == {0}\n",
    "tuples": "x, y{0} = f(x, y{1})\nassert y{0} == 1\n",
    "known": "x{0} = [x{1}]\nassert f(x{0}) == 1\n",
    "copies": "x = [x, x]\nassert f(x) == 1\n",
    "half asserts": "assert f(\n",
    "half asserts of strings": "assert f('''\n",
    "items": "- `assert f({0}) == {0}`\n",
    "tests": "def test_{0}():\n    x = {0}\n    assert f(x) == {0}\n",
    "fences": "```python\nx = {0}\n```\n",
    "broken fences": "```python\ndef f{0}(:\n```\n",
    "open fences": "```python\n",
    "late fences": "text ```py\n",
    "half fences": "``` `\n",
    "quotes": "x = '''\n",
    "odd quotes": "'''\"\"\"'''\"\"\"\n",
    "marks": "</think>\n",
    "open marks": "<think>",
    "answers": "<answer>",
    "begins": " [BEGIN]\n",
    "ends": "</s> <|im_end|>x\n",
    "tags": "<p>",
    "words": "word{0} ",
    "prose": "The function f(x) is import of class, def it{0}.\n",
    "code in prose": "def f{0}(x):\n    return x\nThis is text.\n",
    "half code": "x{0} = (\n",
    "bad code": "def f{0}(x) return\n",
    "calls of nothing": "print(f(\n",
    "colons": "if x{0}: import a\n",
    "threads": "Thread",
    "sets": "{{a, ",
    "braces": "{{",
    "docstrings": "def f{0}():\n    '''{0}'''\n",
    "globals": "def f{0}():\n    global g{0}, g{1}\n    g{0} = g{1}\n",
    "semicolons": "x{0} = x{1};",
    "lambdas": "f{0} = lambda x, y=f{1}: x\n",
    "ifs": "if x: y{0} = 1\n",
    "else": "elif x == {0}: y = 1\n",
}
_LONG = {
    "blanks": lambda n: " " * n + "x",
    "blank lines": lambda n: "\n" * n + "x",
    "tabs behind a fence": lambda n: "```" + "\t" * n + "x",
    "blanks behind an assert": lambda n: "assert f(1) == 1" + " " * n + "x",
    "back quotes": lambda n: "`" * n,
    "tildes": lambda n: "x" + "~" * n + "\n" + "~" * n,
    "quotes in a line": lambda n: "'" * n,
    "backslashes": lambda n: "x = '" + "\\" * n,
    "escapes": lambda n: "x = '" + "\\'" * (n // 2),
    "backslashes at ends": lambda n: "\\\n" * (n // 2),
    "brackets": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "few brackets": lambda n: ("[" * 90 + "]" * 90 + "\n") * (n // 181),
    "open brackets": lambda n: "(" * n,
    "sum": lambda n: "x = " + "1+" * (n // 2) + "1",
    "dots": lambda n: "x = a" + ".b" * (n // 2),
    "list": lambda n: "x = [" + "1, " * (n // 3) + "]",
    "assert of a list": lambda n: "assert f([" + "1, " * (n // 3) + "]) == 1",
    "assert of a text": lambda n: "assert f('" + "a" * n + "') == 1",
    "assert of texts": lambda n: "assert f({" + "'a', " * (n // 5) + "}) == 1",
    "input": lambda n: "assert run('" + "a " * (n // 2) + "') == 'x'",
    "arguments": lambda n: "assert f(" + ", ".join(f"a{i}=1" for i in range(n // 9)) + ") == 1",
    "one line of letters": lambda n: "a" * n,
    "digits": lambda n: "x = " + "1" * n,
    "indents": lambda n: "".join(" " * k + "if x:\n" for k in range(min(95, n))) * max(1, n // 5000),
    "loop over a list": lambda n: "for x in [" + "1, " * (n // 6) + "]:\n" + " assert f(x) == 1\n" * (n // 36),
    "known in a loop": lambda n: "x = [" + "1, " * (n // 6) + "]\n" + "assert f(x) == 1\n" * (n // 36),
    "parametrize": lambda n: (
        "@pytest.mark.parametrize('x', ["
        + "1, " * (n // 6)
        + "])\ndef test_f(x):\n"
        + " assert f(x) == 1\n" * (n // 36)
    ),
    "chain then raise": lambda n: (
        "def f(): return v9\nv0 = 1\n" + "".join(f"v{i + 1} = v{i}\n" for i in range(n // 13)) + "raise"
    ),
    "loop of asserts": lambda n: "for i in [1, 2]:\n" + " assert f(i) == i\n" * (n // 20),
    "closes behind a fence": lambda n: "```python\n" + "x ```\n```python\n" * (n // 16),
    "functions then calls": lambda n: (
        "".join(f"def f{i}(): return 1\n" for i in range(n // 50))
        + "".join(f"x.append(f{i}())\n" for i in range(n // 50))
    ),
    "answer, then fences": lambda n: "```python\ndef f(): return g0()\n```\n" * (n // 32),
    "helpers in blocks": lambda n: "".join(f"```python\ndef f{i}(): return f{i - 1}()\n```\n" for i in range(n // 45)),
}


def run_linear(report: Callable[[str], None]) -> dict[str, Any]:
    """Measure each function with texts of every shape.

    Returns:
        The greatest growth of each function, with the name of the shape and the seconds for the long text. ``ok`` is
        True if no growth exceeds ``MOST_GROWTH``.
    """
    found: dict[str, Any] = {}
    growths = []
    for name, function in _functions().items():
        worst = (0.0, 0.0, "no text takes long enough")
        for shape, text in _shapes().items():
            for small, large in _SIZES:
                worst = max(worst, (*_growth(function, text(small), text(large)), shape))
        growths.append(worst[0])
        found[name] = "growth {:.1f}, {:.3f} s: {}".format(*worst)
        report(f"{name:<34} {found[name]}")
    return {"worst_growth": max(growths), "ok": max(growths) <= MOST_GROWTH}


def _growth(function: Callable[[str], object], small: str, large: str) -> tuple[float, float]:
    for tries in range(1, _MOST_TRIES + 1):  # a great growth may be noise, so it is measured again
        seconds = _seconds(function, large, tries)
        growth = seconds / _seconds(function, small, tries)
        if seconds < _NOISE_SECONDS:
            return 0.0, seconds
        if growth <= MOST_GROWTH:
            return growth, seconds
    # A long text's tree does not fit into the processor's caches, so Python's parser grows by more than ten.
    parser = _seconds(_parse, large, _MOST_TRIES) / _seconds(_parse, small, _MOST_TRIES)
    return growth * 10 / max(10.0, parser), seconds


def _parse(text: str) -> None:
    with contextlib.suppress(*PARSE_ERRORS):
        parse_untrusted(text)


def _seconds(function: Callable[[str], object], text: str, tries: int) -> float:
    gc.disable()  # how often the collector runs depends on the whole process
    found = []
    for _ in range(tries):
        started = time.process_time()
        function(text)
        found.append(time.process_time() - started)
    gc.enable()
    return min(found)


def _shapes() -> dict[str, Callable[[int], str]]:
    def lines(line: str) -> Callable[[int], str]:
        def text(size: int) -> str:
            parts, length = [], 0
            while length < size:
                parts.append(line.format(len(parts), max(0, len(parts) - 1)))
                length += len(parts[-1])
            return "".join(parts)

        return text

    return {name: lines(line) for name, line in _LINES.items()} | _LONG


def _functions() -> dict[str, Callable[[str], object]]:
    limits = Limits()
    interface = Interface.of("def f(*a, **b): pass")
    names = ["f", "f0", "f1"]
    searches = [oracle._CHANCE, oracle._CLOCK, oracle._ORDER]
    return {
        "answer_of": answer_of,
        "blocks_of": blocks_of,
        "extract_candidate": lambda text: extract_candidate(text, names=("f",)),
        "extract_candidate, of a block": lambda text: extract_candidate(f"```python\n{text}\n```", names=("f1",)),
        "extract_candidate, without names": extract_candidate,
        "extract_candidate, input": lambda text: extract_candidate(text, reads_input=True),
        "extract_suite": extract_suite,
        "extract_suite, of a block": lambda text: extract_suite(f"```python\n{text}\n```"),
        "Interface.of": Interface.of,
        "parse_assert": lambda text: parse_assert(text, interface),
        "parse_call": lambda text: parse_call(text.removeprefix("assert ").split(" == ")[0], interface),
        "with_function": lambda text: with_function(text, names),
        "with_solution": lambda text: with_solution(text, names),
        "without_examples": lambda text: without_examples(text, names),
        "syntax_key": syntax_key,
        "imports_quickly": imports_quickly,
        "import_seconds": lambda text: import_seconds(Program(source=text, calls=(), limits=limits)),
        "patterns of the oracle": lambda text: [search.search(text) for search in searches],
    }
