"""Programs that rewrite the interpreter they share with the harness. One attack a test."""

WRONG = "wrong_value"


def test_a_patched_eval_answers_only_with_the_programs_own_value(comes_to):
    assert comes_to("""
        import builtins
        builtins.eval = lambda *arguments: -2
        def secret(n): return -1
    """) <= {(WRONG, "-1"), (WRONG, "-2")}


def test_a_patched_compile_answers_only_with_the_programs_own_value(endings):
    assert "passed" not in endings("""
        import builtins
        builtins.compile = lambda *arguments, **more: (lambda: -2).__code__
        def secret(n): return -1
    """)


def test_a_patched_marshal_answers_only_with_the_programs_own_value(endings):
    assert "passed" not in endings("""
        import marshal
        marshal.loads = lambda *arguments: (lambda: -2).__code__
        def secret(n): return -1
    """)


def test_a_patched_struct_breaks_only_its_own_channel(endings):
    assert "passed" not in endings("""
        import struct
        class Struct:
            size = 5
            def __init__(self, *a): pass
            pack = lambda self, *a: b"V\\x03\\0\\0\\0i1;"
            unpack = unpack_from = lambda self, *a: (b"C", 0)
        struct.Struct, struct.pack = Struct, Struct.pack
        def secret(n): return -1
    """)


def test_a_patched_write_speaks_only_for_itself(endings):
    assert "passed" not in endings("""
        import os
        write = os.write
        def forged(fd, data):
            write(fd, b"V\\x03\\0\\0\\0i1;")
            return len(data)
        os.write = forged
        def secret(n): return -1
    """)


def test_a_patched_read_hears_only_its_own_orders(endings):
    assert "passed" not in endings("""
        import os
        os.read = lambda fd, count: b""
        def secret(n): return -1
    """)


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


def test_a_finder_for_imports_serves_only_itself(endings):
    assert "passed" not in endings("""
        import importlib.abc, sys
        class Finder(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                raise KeyError(name)
        sys.meta_path.insert(0, Finder())
        sys.modules.clear()
        def secret(n): return -1
    """)


def test_a_codec_of_its_own_changes_only_its_output(endings):
    assert "passed" not in endings("""
        import codecs
        codecs.register(lambda name: None)
        codecs.register_error("strict", lambda error: ("112648", error.end))
        def secret(n): return "\\udc80"
    """)


def test_a_profiler_that_changes_return_values_changes_only_its_own(endings):
    assert "passed" not in endings("""
        import sys
        def profile(frame, event, value):
            frame.f_locals["value"] = frame.f_locals["data"] = b"i3;"
        sys.setprofile(profile)
        def secret(n): return -1
    """)


def test_a_trace_that_rewrites_the_harness_locals_speaks_only_for_itself(endings):
    assert "passed" not in endings("""
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
    """)


def test_code_objects_swapped_in_the_harness_speak_only_for_themselves(endings):
    assert endings("""
        import gc, types
        def secret(n):
            for function in gc.get_objects():
                if type(function) is types.FunctionType and function.__name__ == "encode":
                    if function.__code__.co_argcount == 1:
                        function.__code__ = (lambda value, *, unify=False: b"i4;").__code__
            return -1
    """) <= {WRONG, "raised", "died"}


def test_types_of_builtins_patched_through_ctypes_hurt_only_the_program(endings):
    assert "passed" not in endings("""
        import ctypes
        def mappings(kind):
            address = id(kind.__dict__) + 2 * ctypes.sizeof(ctypes.c_void_p)
            return ctypes.cast(address, ctypes.POINTER(ctypes.py_object))[0]
        mappings(int)["__eq__"] = lambda self, other: True
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(int))
        def secret(n): return -1
    """)


def test_main_rebound_to_a_lying_module_changes_nothing(comes_to):
    assert comes_to("""
        import sys, types
        lie = types.ModuleType("__main__")
        lie.secret = lambda n: -2
        sys.modules["__main__"] = sys.modules["solution"] = lie
        def secret(n): return -1
    """) == {(WRONG, "-1")}


def test_globals_with_a_lying_lookup_change_only_its_own_names(endings):
    assert "passed" not in endings("""
        class Builtins(dict):
            __missing__ = lambda self, name: -2
        __builtins__ = Builtins()
        secret = lambda n: -1
    """)


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


def test_a_candidate_that_is_a_copy_of_the_harness_protocol_module_is_just_a_program(comes_to):
    assert comes_to("""
        import sys
        sys.modules["sandbox"] = sys.modules["sandbox.values"] = sys
        sys.encode = lambda value: b"i5;"
        def secret(n): return -1
    """) == {(WRONG, "-1")}


def test_warnings_turned_into_errors_hurt_only_the_program(comes_to):
    assert comes_to("""
        import warnings
        warnings.simplefilter("error")
        def secret(n): return -1
    """) == {(WRONG, "-1")}


def test_a_recursion_limit_of_its_own_hurts_only_the_program(endings):
    assert "passed" not in endings("""
        import sys
        def secret(n):
            try:
                sys.setrecursionlimit(20)
            except RecursionError:
                pass
            return [[[[[[[[-1]]]]]]]]
    """)
