"""Rows S60 to S79 and S110: the environment in which a program runs."""

import pytest

DOUBLE = "def f(n):\n    return 2 * n\n"
TWO = ("assert f(1) == 2", "assert f(2) == 4")
REFUSED = "def f(n):\n    try:\n        {}\n    except OSError:\n        return 2 * n\n    return 'not refused'\n"


@pytest.fixture
def passes(outcomes):
    """Check that both cases of ``TWO`` pass."""

    def check(candidate):
        assert outcomes(DOUBLE, candidate, *TWO) == ["passed"] * 2

    return check


def test_s60_an_async_function_is_awaited_however_the_call_is_written(outcomes):
    reference = "async def f(n):\n    return 2 * n\n"
    candidate = "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return n + n\n"
    asserts = ("assert f(1) == 2", "assert await f(2) == 4", "assert asyncio.run(f(3)) == 6")
    assert outcomes(reference, candidate, *asserts) == ["passed"] * 3
    assert outcomes(reference, DOUBLE, *asserts) == ["raised"] * 3
    assert outcomes(DOUBLE, candidate, *TWO) == ["unencodable"] * 2


def test_s61_an_async_generator_is_unencodable(reasons):
    assert reasons("async def f(n):\n    yield n\n", DOUBLE, *TWO) == ["unencodable"] * 2


def test_s62_each_case_makes_its_own_object_and_may_chain_methods_and_read_attributes(outcomes, reasons, ask):
    program = (
        "class Stack:\n    def __init__(self, items=()):\n        self.items = list(items)\n"
        "    def push(self, item):\n        self.items.append(item)\n        return self\n"
        "    def pop(self):\n        return self.items.pop()\n"
    )
    asserts = ("assert Stack([1]).push(2).pop() == 2", "assert Stack([1]).push(2).items == [1, 2]")
    assert outcomes(program, program, *asserts, "assert Stack([1]).pop() == 1") == ["passed"] * 3
    hidden = program.replace("self.items", "self.buf")  # no parameter of the constructor has this name
    check = "assert Stack([1]).buf == [1]"
    assert reasons(hidden, hidden, check) == ["no_call"]
    assert ask(hidden, hidden, check, entry_points=("Stack", "Stack.buf")).suites[0].num_valid == 1


def test_s63_each_call_gets_fresh_arguments_and_what_becomes_of_them_is_not_compared(outcomes):
    candidate = "def f(xs):\n    xs.append(9)\n    return sum(xs) - 9\n"
    asserts = ("assert f([1, 2]) == 3", "assert f([1, 2, 0]) == 3")
    assert outcomes("def f(xs):\n    return sum(xs)\n", candidate, *asserts) == ["passed"] * 2


def test_s64_a_candidates_own_state_lives_from_call_to_call_in_shuffled_order(ask):
    candidate = "made = []\ndef f(n):\n    made.append(n)\n    return list(made)\n"
    cases = ask(DOUBLE, candidate, *(f"assert f({n}) == 0" for n in range(20))).suites[0].cases
    longest = max((case.detail for case in cases), key=len)
    assert sorted(eval(longest)) == list(range(20)) != eval(longest)


def test_s65_a_stateful_reference_answers_from_its_freshly_loaded_state_and_so_does_its_candidate(ask):
    reference = "def f(x, seen=[]):\n    seen.append(x)\n    return seen\n"
    cases = ask(reference, reference, "assert f(1) == [1]", "assert f(2) == [1, 2]").suites[0].cases
    assert [(case.reference_value, case.outcome.value) for case in cases] == [("[1]", "passed"), ("[2]", "passed")]


def test_s66_printed_output_goes_nowhere(passes):
    candidate = "import sys\ndef f(n):\n    print('x' * 10 ** 6)\n    sys.stderr.write('y')\n    return 2 * n\n"
    passes(candidate)


NODES = """
class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next

class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right

def list_node(values):
    head = None
    for value in reversed(values):
        head = ListNode(value, head)
    return head

def tree_node(values):
    nodes = [None if value is None else TreeNode(value) for value in values]
    waiting = nodes[::-1]
    root = waiting.pop() if waiting else None
    for node in nodes:
        if node is not None:
            node.left = waiting.pop() if waiting else None
            node.right = waiting.pop() if waiting else None
    return root
"""


def test_s110_lists_and_trees_of_nodes_are_written_and_compared_by_their_values(ask, outcomes, reasons):
    turn = "class Solution:\n    def f(self, head):\n        back = None\n        while head:\n"
    turn += "            head.next, back, head = back, head, head.next\n        return back\n"
    three = "assert Solution().f(list_node([1, 2, 3])) == list_node([3, 2, 1])"
    asserts = (three, "assert Solution().f(list_node([])) == None")
    cases = ask(turn, turn, *asserts, prelude=NODES).suites[0].cases
    assert [(case.call, case.reference_value, case.expected_correct) for case in cases] == [
        ("Solution().f(list_node([1, 2, 3]))", "[3, 2, 1]", True),
        ("Solution().f(None)", "None", True),
    ]
    keep = "class Solution:\n    def f(self, head):\n        return head\n"
    assert outcomes(turn, keep, *asserts, prelude=NODES) == ["wrong_value", "passed"]
    loop = keep.replace("return", "head.next = head\n        return")
    assert outcomes(turn, loop, three, prelude=NODES) == ["unencodable"]
    mirror = (
        "def f(root):\n    if root:\n        root.left, root.right = f(root.right), f(root.left)\n    return root\n"
    )
    tree = "assert f(tree_node([4, None, 7, 6, 9])) == tree_node([4, 7, None, 9, 6])"
    assert ask(mirror, mirror, tree, prelude=NODES).suites[0].cases[0].expected_correct
    assert outcomes(mirror, "def f(root):\n    return root\n", tree, prelude=NODES) == ["wrong_value"]
    assert reasons(mirror, mirror, tree) == ["reference_raised"]  # without the prelude
    assert reasons(mirror, mirror, "assert f(tree_node(*[1])) == 1", prelude=NODES) == ["argument_not_literal"]


def test_s67_standard_input_is_at_its_end(outcomes, passes):
    passes("import sys\ndef f(n):\n    return 2 * n + len(sys.stdin.read())\n")
    assert outcomes(DOUBLE, "def f(n):\n    return input()\n", *TWO) == ["raised"] * 2


def test_s68_files_may_be_read_where_modules_lie_and_written_nowhere_under_tier_0(passes):
    passes(REFUSED.format("open('/etc/passwd')"))
    passes(REFUSED.format("open('/tmp/written', 'w')"))
    reading = "import os\ndef f(n):\n    with open(os.__file__) as source:\n        source.read(1)\n    return 2 * n\n"
    passes(reading)


def test_s69_64_threads_work_at_once(passes):
    candidate = (
        "from concurrent.futures import ThreadPoolExecutor\nfrom threading import Barrier\ndef f(n):\n"
        "    together = Barrier(64)\n    with ThreadPoolExecutor(64) as pool:\n"
        "        list(pool.map(lambda _: (bytearray(9), together.wait()), range(64)))\n    return 2 * n\n"
    )
    passes(candidate)


def test_s70_processes_and_sockets_are_refused_with_an_os_error(passes):
    for attempt in (
        "import os; os.fork()",
        "import subprocess; subprocess.run('true')",
        "import socket; socket.socket()",
    ):
        passes(REFUSED.format(attempt))


def test_s71_the_standard_library_may_be_imported_and_nothing_of_the_judge(passes):
    candidate = (
        "import difflib, xml.dom.minidom, sys\n"
        "def f(n):\n    import heapq\n    return 2 * n if 'sandbox' not in sys.modules else 'seen'\n"
    )
    passes(candidate)


def test_s72_a_main_block_does_not_run(passes):
    candidate = DOUBLE + "if __name__ == '__main__':\n    f = None\nname = __name__\n"
    passes(candidate)


def test_s73_random_numbers_differ_between_processes_unless_the_program_seeds_them(outcomes, reasons):
    drawn = "import random\ndef f(n):\n    return random.randrange(10 ** 9)\n"
    seeded = "import random\ndef f(n):\n    return random.Random(n).randrange(10 ** 9)\n"
    assert reasons(drawn, drawn, *TWO) == ["reference_nondeterministic"] * 2
    assert outcomes(seeded, seeded, *TWO) == ["passed"] * 2


def test_s74_the_order_of_a_set_of_texts_is_no_answer(reasons):
    reference = "def f(n):\n    return {'a', 'b', 'c', 'd', str(n)}\n"
    assert reasons(reference, reference, "assert list(f(1)) == []") == ["reference_nondeterministic"]


def test_s75_the_order_of_a_dict_or_of_a_set_of_ints_shows_in_a_list_of_it(outcomes):
    reference, candidate = ("def f(n):\n    return {" + items + "}\n" for items in ("1: 0, n: 0", "n: 0, 1: 0"))
    assert outcomes(reference, candidate, "assert f(2) == {1: 0, 2: 0}") == ["passed"]
    assert outcomes(reference, candidate, "assert list(f(2)) == [1, 2]") == ["wrong_value"]
    assert outcomes(reference, candidate, "assert sorted(f(2)) == [1, 2]") == ["passed"]
    reference, candidate = (f"def f(n):\n    return {{{items}}}\n" for items in ("0, 8", "8, 0"))
    assert outcomes(reference, candidate, "assert list(f(2)) == [0, 8]") == ["wrong_value"]


def test_s76_the_current_time_and_addresses_are_no_answers(reasons):
    for body in ("import time; return time.time_ns()", "return id([])", "return object().__hash__()"):
        reference = f"def f(n):\n    {body}\n"
        assert reasons(reference, reference, *TWO) == ["reference_nondeterministic"] * 2


def test_the_last_digits_of_an_address_agree_by_chance_and_are_no_answers(outcomes):
    node = "class Node: pass\nNODES = [Node() for _ in range(5)]\n"
    for body in ("id(object()) % 64", "id(NODES[n % 5]) // 16 % 8"):
        reference = f"{node}def f(n):\n    return {body}\n"
        assert set(outcomes(reference, reference, *(f"assert f({n}) == 0" for n in range(8)))) <= {"passed"}


def test_s77_the_environment_holds_nothing_of_the_judges(monkeypatch, passes):
    candidate = (
        "import os, sys\ndef f(n):\n"
        "    seen = [name for name in os.environ if 'TOKEN' in name] + sys.argv[1:]\n    return seen or 2 * n\n"
    )
    monkeypatch.setenv("SECRET_TOKEN", "1")
    passes(candidate)


def test_s78_the_prelude_runs_before_both_programs(outcomes):
    program = "def f(n):\n    return math.floor(n)\n"
    assert outcomes(program, program, "assert f(2.5) == 2", prelude="import math") == ["passed"]


def test_s79_library_names_in_arguments_need_no_import_in_the_program(outcomes):
    program = "def f(values):\n    return len(values)\n"
    asserts = ("assert f(deque([1, 2])) == 2", "assert f([Fraction(1, 2), math.inf]) == 2")
    assert outcomes(program, program, *asserts) == ["passed"] * 2
