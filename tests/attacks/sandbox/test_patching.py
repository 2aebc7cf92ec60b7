"""Programs that rewrite the interpreter they share with the harness. One attack a test or entry."""

import pytest

WRONG = "wrong_value"


def test_a_patched_eval_answers_only_with_the_programs_own_value(comes_to):
    assert comes_to("""
        import builtins
        builtins.eval = lambda *arguments: -2
        def secret(n): return -1
    """) <= {(WRONG, "-1"), (WRONG, "-2")}


EARN_NOTHING = {
    "a patched compile answers only with the programs own value": """
        import builtins
        builtins.compile = lambda *arguments, **more: (lambda: -2).__code__
        def secret(n): return -1
    """,
    "a patched marshal answers only with the programs own value": """
        import marshal
        marshal.loads = lambda *arguments: (lambda: -2).__code__
        def secret(n): return -1
    """,
    "a patched struct breaks only its own channel": """
        import struct
        class Struct:
            size = 5
            def __init__(self, *a): pass
            pack = lambda self, *a: b"V\\x03\\0\\0\\0i1;"
            unpack = unpack_from = lambda self, *a: (b"C", 0)
        struct.Struct, struct.pack = Struct, Struct.pack
        def secret(n): return -1
    """,
    "a patched write speaks only for itself": """
        import os
        write = os.write
        def forged(fd, data):
            write(fd, b"V\\x03\\0\\0\\0i1;")
            return len(data)
        os.write = forged
        def secret(n): return -1
    """,
    "a patched read hears only its own orders": """
        import os
        os.read = lambda fd, count: b""
        def secret(n): return -1
    """,
    "a finder for imports serves only itself": """
        import importlib.abc, sys
        class Finder(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                raise KeyError(name)
        sys.meta_path.insert(0, Finder())
        sys.modules.clear()
        def secret(n): return -1
    """,
    "a codec of its own changes only its output": """
        import codecs
        codecs.register(lambda name: None)
        codecs.register_error("strict", lambda error: ("112648", error.end))
        def secret(n): return "\\udc80"
    """,
    "a profiler that changes return values changes only its own": """
        import sys
        def profile(frame, event, value):
            frame.f_locals["value"] = frame.f_locals["data"] = b"i3;"
        sys.setprofile(profile)
        def secret(n): return -1
    """,
    "a trace that rewrites the harness locals speaks only for itself": """
        import ctypes, sys
        def trace(frame, event, value):
            if "value" in frame.f_locals:
                frame.f_locals["value"] = -2
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), 0)
            return trace
        def secret(n):
            frame = sys._getframe()
            while frame:
                frame.f_trace = trace
                frame = frame.f_back
            sys.settrace(trace)
            return -1
    """,
    "types of builtins patched through ctypes hurt only the program": """
        import ctypes
        def mappings(kind):
            address = id(kind.__dict__) + 2 * ctypes.sizeof(ctypes.c_void_p)
            return ctypes.cast(address, ctypes.POINTER(ctypes.py_object))[0]
        mappings(int)["__eq__"] = lambda self, other: True
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(int))
        def secret(n): return -1
    """,
    "globals with a lying lookup change only its own names": """
        class Builtins(dict):
            __missing__ = lambda self, name: -2
        __builtins__ = Builtins()
        secret = lambda n: -1
    """,
    "a recursion limit of its own hurts only the program": """
        import sys
        def secret(n):
            try:
                sys.setrecursionlimit(20)
            except RecursionError:
                pass
            return [[[[[[[[-1]]]]]]]]
    """,
}


@pytest.mark.parametrize("source", EARN_NOTHING.values(), ids=EARN_NOTHING)
def test_this_attack_earns_nothing(endings, source):
    assert "passed" not in endings(source)


def test_the_tables_of_the_encoder_found_by_the_collector_change_only_its_output(endings):
    assert endings("""
        import gc
        def secret(n):
            for table in gc.get_objects():
                if type(table) is dict and list in table and tuple in table and callable(table.get(list)):
                    for kind in list(table):
                        table[kind] = lambda *a: b"i2;"
            return [-1]
    """) <= {WRONG, "timed_out"}


def test_code_objects_swapped_in_the_harness_speak_only_for_themselves(endings):
    assert endings("""
        import gc, types
        def secret(n):
            for function in gc.get_objects():
                if type(function) is types.FunctionType and function.__name__ == "encode":
                    if function.__code__.co_argcount == 1:
                        function.__code__ = (lambda value: b"i4;").__code__
            return -1
    """) <= {WRONG, "raised", "died"}


STAY_WRONG = {
    "main rebound to a lying module changes nothing": """
        import sys, types
        lie = types.ModuleType("__main__")
        lie.secret = lambda n: -2
        sys.modules["__main__"] = sys.modules["solution"] = lie
        def secret(n): return -1
    """,
    "a candidate that is a copy of the harness protocol module is just a program": """
        import sys
        sys.modules["sandbox"] = sys.modules["sandbox.values"] = sys
        sys.encode = lambda value: b"i5;"
        def secret(n): return -1
    """,
    "warnings turned into errors hurt only the program": """
        import warnings
        warnings.simplefilter("error")
        def secret(n): return -1
    """,
}


@pytest.mark.parametrize("source", STAY_WRONG.values(), ids=STAY_WRONG)
def test_this_attack_changes_only_its_own_output(comes_to, source):
    assert comes_to(source) == {(WRONG, "-1")}


def test_a_patched_event_loop_answers_only_for_the_program(judged):
    suite = judged(
        "async def f(n): return n * 31337 % 1009",
        "assert await f(1) == 58",
        "assert asyncio.run(f(2)) == 116",
        candidate="""
        import asyncio
        asyncio.run = lambda *arguments: -1
        async def f(n): return -1
        """,
    )
    assert [case.outcome.value for case in suite.cases] == [WRONG, WRONG]


def test_readers_of_the_result_shadowed_by_the_program_change_only_its_own_value(judged):
    suite = judged(
        "def f(n): return [3, 1, 2]",
        "assert sorted(f(1)) == [1, 2, 3]",
        "assert len(f(2)) == 3",
        candidate="""
        class Any:
            __eq__ = lambda self, other: True
        sorted = len = lambda value: Any()
        def f(n): return [3, 1, 2]
        """,
    )
    assert [case.outcome.value for case in suite.cases] == ["unencodable"] * 2


def test_a_program_that_rewrites_the_interpreters_small_integers_is_asked_nothing(judged):
    suite = judged(
        "def f(n): return 1",
        "assert f(1) == 1",
        candidate="""
        import ctypes
        for value in (3, 6, 10, 28):
            ctypes.cast(id(value) + 24, ctypes.POINTER(ctypes.c_uint32))[0] = 1
        def f(n): return 1
        """,
    )
    assert [case.outcome.value for case in suite.cases] == ["not_loaded"]
