"""Checks of what comes back: values, their bytes, their order, text, sizes."""

import math
from collections import deque
from decimal import Decimal
from fractions import Fraction

from ..runners.base import CallStatus, Role, Runner
from ..values.decoding import decode
from ..values.encoding import MAX_DEPTH, encode
from .harness import LIMITS, Ends, check, comes_to, expect, expect_equal, expect_kinds, kinds, run

V, RAISED, UNENCODABLE, OUTPUT_LIMIT = (
    CallStatus.VALUE, CallStatus.RAISED, CallStatus.UNENCODABLE, CallStatus.OUTPUT_LIMIT,
)  # fmt: skip
SAMPLES: tuple[object, ...] = (
    None, True, False, 0, -1, 2**70, 1.5, 2 + 3j, "text", "", b"bytes", [], [1, [2]], (), (1, "a"), {}, {"a": [1]},
    {3, 1, 2}, set(), range(2, 9, 3), deque([1, 2]), Fraction(2, 6), Decimal("1.50"),
)  # fmt: skip
TEXT = "\ud800\0é\n\r\t\u2028😀\\\"'"

# fmt: off
for _role in Role:
    comes_to(
        f"values_come_back_encoded_in_the_order_of_the_calls_in_role_{_role}",
        "def f(x): return [x]",
        {"f(1)": [1], "f('a')": ["a"], "f(None)": [None]},
        role=_role,
    )
comes_to("every_builtin_kind_of_value_has_its_canonical_bytes",
    "from collections import deque\nfrom decimal import Decimal\nfrom fractions import Fraction\n",
    {repr(sample): sample for sample in SAMPLES}, is_quick=True)
comes_to("bool_int_and_float_stay_apart", "", {"True": True, "1": 1, "1.0": 1.0})
comes_to("nan_infinities_and_minus_zero_keep_their_form", "",
    {"float('nan')": math.nan, "float('inf')": math.inf, "-float('inf')": -math.inf, "-0.0": -0.0})
comes_to("subclasses_of_builtins_count_as_their_base",
    "import enum\nfrom collections import Counter, OrderedDict, defaultdict, namedtuple\n"
    "Point = namedtuple('Point', 'x y')\n"
    "class Colour(enum.IntEnum):\n    RED = 4\n"
    "class Liar(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n",
    {
        "Point(1, 2)": (1, 2), "Colour.RED": 4, "Liar(3)": 3, "Counter('aab')": {"a": 2, "b": 1},
        "OrderedDict(a=1)": {"a": 1}, "defaultdict(int, b=2)": {"b": 2},
    }, is_quick=True)
comes_to("what_is_no_builtin_value_is_unencodable_and_named", "class Thing: pass\ndef g(): yield 1\n",
    {
        "Thing()": Ends(UNENCODABLE, "Thing"), "g()": UNENCODABLE, "len": UNENCODABLE, "[lambda: 0]": UNENCODABLE,
        "7": 7,
    }, is_quick=True)
comes_to("cyclic_and_very_deep_values_are_unencodable",
    "def nest(n):\n    x = []\n    for _ in range(n): x = [x]\n    return x\n"
    "def cycle():\n    x = []\n    x.append(x)\n    return x\n",
    {f"nest({MAX_DEPTH // 2})": V, f"nest({MAX_DEPTH + 10})": UNENCODABLE, "cycle()": UNENCODABLE})
comes_to("large_integers_get_through", "", {"7 ** 20_000": 7**20_000, "-(2 ** 40_000)": -(2**40_000)})
# What a later call does to a returned object does not change the earlier answer.
comes_to("an_answer_is_a_snapshot", "seen = []\ndef f(x):\n    seen.append(x)\n    return seen",
    {"f(1)": [1], "f(2)": [1, 2]})
comes_to("text_of_every_kind_gets_through", "def f(x): return x",
    {f"f({TEXT!r})": TEXT, f"f({TEXT!a})": TEXT, "f('')": ""})
comes_to("source_may_hold_any_character_that_python_allows", "# ü 漢 😀\nnaïve = 'ß\u2029😀'\r\n",
    {"naïve": "ß\u2029😀"})
comes_to("large_calls_and_answers_get_through", "def f(x): return x + x",
    {f"f({text!r})": text * 2 for text in ("a" * (9_000 + n) for n in range(60))})
comes_to("hundreds_of_calls_are_answered_in_their_order", "def f(x): return x * x",
    {f"f({n})": n * n for n in range(600)})
comes_to("printed_output_is_no_part_of_the_answer",
    "import os, sys\nprint('loading')\n"
    "def f(n):\n    print('x' * n)\n    print('y' * n, file=sys.stderr, flush=True)\n"
    "    os.write(1, b'V\\x02\\x00\\x00\\x00i9;')\n    return n\n", {"f(1)": 1, "f(2_000_000)": 2_000_000, "f(3)": 3})
comes_to("an_exception_is_raised_with_its_type_in_the_detail",
    "class Rude(BaseException):\n    def __str__(self): raise ValueError\n"
    "def f(): raise KeyError('place')\ndef g(): raise Rude\n",
    {
        "f()": Ends(RAISED, "KeyError"), "g()": Ends(RAISED, "Rude"), "nowhere()": Ends(RAISED, "NameError"),
        "1 +": Ends(RAISED, "SyntaxError"), "2": 2,
    })
# fmt: on


@check()
def bytes_of_sets_and_dicts_do_not_depend_on_insertion_order(runner: Runner) -> None:
    result = run(runner, "", "{1: 'a', 2: 'b'}", "{2: 'b', 1: 'a'}", "{'x', 'y', 'z'}", "{'z', 'y', 'x'}")
    expect_equal(kinds(result), ["value"] * 4, "kinds of the answers")
    first, second, third, fourth = (answer.value for answer in result.results)
    expect((first, third) == (second, fourth), "equal containers must have equal bytes", result.results)


@check()
def a_value_up_to_the_limit_comes_back_and_a_larger_one_is_output_limit(runner: Runner) -> None:
    room = LIMITS.value_bytes - len(b"s1000000:")
    result = run(runner, "def f(n): return 'x' * n", f"f({room - 8})", f"f({room + 8})", "f(1)")
    expect_kinds(result, [V, OUTPUT_LIMIT, V])
    expect_equal(result.results[0].value, encode("x" * (room - 8)), "the large value")
    expect_equal(result.results[1].value, b"", "value of an answer over the limit")


@check()
def more_output_than_the_total_limit_costs_no_answer_that_fits(runner: Runner) -> None:
    """Every answer is below ``value_bytes``; together they exceed ``total_output_bytes``."""
    source = "def f(n): return 'x' * 900_000"
    result = run(runner, source, *(f"f({n})" for n in range(20)))
    expect_equal(len(result.results), 20, "answers")
    found = set(kinds(result))
    expect(found <= {"value", "output_limit"} and "value" in found, "values, or the limit", found)


@check()
def standard_input_is_empty(runner: Runner) -> None:
    result = run(runner, "import sys", "input()", "sys.stdin.read()")
    expect_equal(kinds(result)[0], "raised", "input()")
    expect(kinds(result)[1] in ("raised", "value"), "reading standard input", result.results)
    expect(result.results[1].status is not V or decode(result.results[1].value) == "", "an empty text", result.results)


comes_to(
    "a_program_that_reads_standard_input_is_a_function_of_it",
    "import sys\nn = int(input())\nif n == 3:\n    1 / 0\nprint(n + extra, sys.stdin.read())\nsys.exit(1)\n",
    {"run('1\\nrest')": "11 rest\n", "run('3')": RAISED, "run('2\\n' + 'x' * 9999)": f"12 {'x' * 9999}\n"},
    prelude="extra = 10",
    reads_input=True,
)
comes_to(
    "printed_output_beyond_the_limit_is_output_limit",
    "print('x' * int(input()))",
    {"run('9')": "xxxxxxxxx\n", "run('2000000')": OUTPUT_LIMIT, "run('1')": "x\n"},
    reads_input=True,
)


@check()
def only_values_carry_bytes(runner: Runner) -> None:
    result = run(runner, "def f(): raise ValueError", "f()", "object()", "1")
    expect_equal([answer.value for answer in result.results], [b"", b"", encode(1)], "bytes of the answers")
