"""Calls of loaded functions in forks: what comes back, and what stays out of this process."""

import os
import signal
import time

import pytest

from code_a1_recipe.applications.pytest_plugin.function_runner import FunctionRunner
from sandbox import Call, CallStatus, Limits, Program, Role, encode

LIMITS = Limits(cpu_seconds_per_case=0.3, wall_seconds_per_case=0.5)
SEEN = []


def f(what, *arguments, **named):
    SEEN.append(what)
    return {
        "value": lambda: (arguments, named),
        "seen": lambda: list(SEEN),
        "iterator": lambda: iter(arguments),
        "raise": lambda: 1 / 0,
        "exit": lambda: os._exit(3),
        "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
        "memory": lambda: bytes(8 << 30),
        "object": object,
        "loop in C": lambda: sum(range(10**12)),
        "sleep": lambda: time.sleep(60),
    }[what]()


def ask(*texts, isolated=False):
    calls = tuple(Call(expression=text) for text in texts)
    program = Program(source="it", calls=calls, limits=LIMITS, isolated=isolated)
    return FunctionRunner({"it": f}, entry="f").run(program, role=Role.CANDIDATE).results


@pytest.mark.parametrize(
    ("call", "status", "detail"),
    [
        ("f('raise')", CallStatus.RAISED, "ZeroDivisionError: division by zero"),
        ("f('memory')", CallStatus.RAISED, "MemoryError: "),
        ("f('exit')", CallStatus.DIED, "exit status 3"),
        ("f('crash')", CallStatus.DIED, "exit status -11"),
        ("f('object')", CallStatus.UNENCODABLE, "builtins.object is not a builtin value"),
        ("f('loop in C')", CallStatus.TIMED_OUT, ""),
        ("f('sleep')", CallStatus.TIMED_OUT, ""),
        ("f(print('this would run'))", CallStatus.RAISED, "ValueError: f(print('this would run')) is no call of f"),
    ],
)
def test_what_goes_wrong_costs_its_own_call_alone(call, status, detail):
    before, result, after = ask("f('value', 1)", call, "f('value', [2], n=3.0)")
    assert (result.status, result.detail[: len(detail)]) == (status, detail)
    assert (before.value, after.value) == (encode(((1,), {})), encode((([2],), {"n": 3.0})))
    assert SEEN == []


def test_calls_share_a_process_unless_each_is_to_have_its_own():
    calls = ["f('seen')", "f('value')", "f('seen')"]
    assert ask(*calls)[2].value == encode(["seen", "value", "seen"])
    assert ask(*calls, isolated=True)[2].value == encode(["seen"])


def test_an_iterator_is_the_list_of_its_items():
    assert ask("f('iterator', 1, 2)")[0].value == encode([1, 2])
