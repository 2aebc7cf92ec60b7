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

_SHAPES: tuple[tuple[str, ...], ...] = (
    ("*v{0} = v{1}\n",), ("def f(): return v9\nv0 = 1\n", "*v{0} = v{1}\n", "raise"), ("*x += 1\n",),
    ("*def f{0}(): return f{1}()\n",), ("*def f{0}(x): return x\nf{0}({0})\n",),
    ("*def f{0}(): pass\n", "*x.append(f{0}())\n"), ("*class C{0}: pass\nprint(C{0})\n",),
    ("*class C{0}(C{1}, C{1}): pass\n",), ("*@d{0}\n",), ("*y{0} = [x for x in y{1} if x]\n",),
    ("*def f{0}():\n    global g{0}, g{1}\n    g{0} = g{1}\n",), ("*f{0} = lambda x, y=f{1}: x\n",),
    ("*if x{0}: import a\n",), ("*for i in [1, 2]:\n assert f(i) == {0}\n",), ("*assert f({0}) == {0}\n",),
    ("*x, y{0} = f(x, y{1})\nassert y{0} == 1\n",), ("*x{0} = [x{1}]\nassert f(x{0}) == 1\n",),
    ("*x = [x, x]\nassert f(x) == 1\n",), ("for x in [", "*1, ", "]:\n", "* assert f(x) == 1\n"),
    ("x = [", "*1, ", "]\n", "*assert f(x) == 1\n"),
    ("@pytest.mark.parametrize('x', [", "*1, ", "])\ndef test_f(x):\n", "* assert f(x) == 1\n"),
    ("for i in [1, 2]:\n", "* assert f(i) == i\n"), ("*assert f(\n",), ("*- `assert f({0}) == {0}`\n",),
    ("*```python\nx = {0}\n```\n",), ("*```python\ndef f{0}(): return f{1}()\n```\n",),
    ("*```python\ndef f{0}(:\n```\n",), ("*```python\nx ```\n",), ("*```python\n",), ("*x = '''\n",),
    ("*'''\"\"\"'''\"\"\"\n",), ("*</think>\n",), ("*<think>",), ("*</s> <|im_end|>x\n",),
    ("*The function f(x) is import of class, def it{0}.\n",), ("*def f{0}(x):\n    return x\nThis is text.\n",),
    ("*print(f(\n",), ("*Thread",), ("*{a, ",), ("* ", "x"), ("*\n", "x"), ("```", "*\t", "x"),
    ("assert f(1) == 1", "* ", "x"), ("*`",), ("x", "*~", "\n", "*~"), ("*'",), ("x = '", "*\\"), ("x = '", "*\\'"),
    ("*\\\n",), ("*[", "*]"), ("*" + "[" * 90 + "]" * 90 + "\n",), ("*(",), ("x = ", "*1+", "1"), ("x = a", "*.b"),
    ("def f(): pass\nprint(a.b", "*[0]", ")"), ("x = [", "*1, ", "]"), ("assert f([", "*1, ", "]) == 1"),
    ("assert f('", "*a", "') == 1"), ("assert f({", "*'a', ", "}) == 1"), ("assert run('", "*a ", "') == 'x'"),
    ("assert f(", "*a{0}=1, ", ") == 1"), ("*a",), ("x = ", "*1"),
    ("*" + "".join(" " * depth + "if x:\n" for depth in range(95)),),
)  # fmt: skip
"""Parts of texts. A part behind a star is repeated, with the numbers of the repetition and of the one before."""


def _text(shape: tuple[str, ...], size: int) -> str:
    num_chars = size // sum(part.startswith("*") for part in shape)
    written = []
    for part in shape:
        if not part.startswith("*"):
            written.append(part)
            continue
        length = number = 0
        while length < num_chars:
            written.append(part[1:].replace("{0}", str(number)).replace("{1}", str(number - 1)))
            length += len(written[-1])
            number += 1
    return "".join(written)


def run_linear(report: Callable[[str], None]) -> dict[str, Any]:
    """Measure each function with texts of every shape, and report its greatest growth, with seconds for the long text.

    Returns:
        The greatest growth of all. ``ok`` is True if it is at most ``MOST_GROWTH``.
    """
    growths = []
    for name, function in _functions().items():
        worst = (0.0, 0.0, "no text takes long enough")
        for shape in _SHAPES:
            for small, large in _SIZES:
                growth, seconds = _growth(function, _text(shape, small), _text(shape, large))
                worst = max(worst, (growth, seconds, "".join(shape)))
        growths.append(worst[0])
        report("{:<34} growth {:>4.1f}, {:.3f} s: {!r:.60}".format(name, *worst))
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


def _functions() -> dict[str, Callable[[str], object]]:
    limits = Limits()
    interface = Interface.of("def f(*a, **b): pass")
    names = ["f", "f0", "f1"]
    searches = [oracle._CHANCE, oracle._CLOCK]
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
