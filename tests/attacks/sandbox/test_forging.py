"""Programs that try to be credited with answers they did not compute. One attack a test."""

from .conftest import outcomes

WRONG = "wrong_value"


def test_reading_the_callers_frames_finds_no_expected_value(comes_to):
    assert comes_to("""
        import sys
        def secret(n):
            frame, seen = sys._getframe(1), []
            while frame:
                for scope in (frame.f_locals, frame.f_globals):
                    seen += [v for v in scope.values() if type(v) is int and 100000 < v < 1000003]
                frame = frame.f_back
            return seen or -1
    """) == {(WRONG, "-1")}


def test_searching_all_objects_finds_no_reference_source(attack):
    results = attack("""
        import gc, sys
        def secret(n):
            mark = "79" + "19 +"
            pending, seen = gc.get_objects() + list(sys.modules.values()), set()
            while pending and len(seen) < 60000:
                item = pending.pop()
                if id(item) in seen:
                    continue
                seen.add(id(item))
                if isinstance(item, (str, bytes)) and len(item) > 9 and mark in str(item):
                    return "breached"
                pending += gc.get_referents(item)
            return -1
    """)
    assert set(outcomes(results)) <= {WRONG, "timed_out"}
    assert "'breached'" not in [detail for _, detail in results]


def test_the_command_line_and_main_module_hold_nothing(comes_to):
    assert comes_to("""
        import sys, __main__
        def secret(n):
            return [sys.argv, sorted(vars(__main__).keys() - globals().keys())]
    """) == {(WRONG, "[[''], []]")}


def test_no_module_of_the_sandbox_is_left_to_find(comes_to):
    assert comes_to("""
        import sys
        def secret(n):
            return [name for name in sys.modules if "sandbox" in name or "fork_server" in name]
    """) == {(WRONG, "[]")}


def test_forged_frames_are_taken_for_the_programs_own_wrong_output(attack):
    results = attack("""
        import os, struct
        def secret(n):
            for _ in range(4):
                os.write(3, struct.pack("<cI", b"V", 3) + b"i1;")
            return -1
    """)
    assert set(outcomes(results)) == {WRONG}
    assert {detail for _, detail in results} <= {"1", "-1"}


def test_a_forged_frame_of_unknown_kind_ends_the_program(endings):
    assert endings("""
        import os, struct
        def secret(n):
            os.write(3, struct.pack("<cI", b"Z", 0))
            return -1
    """) == {"died"}


def test_a_forged_setup_failure_is_no_outage(endings):
    assert endings("""
        import os, struct
        os.write(3, struct.pack("<cI", b"!", 4) + b"down")
        def secret(n):
            return -1
    """) == {"not_loaded"}


def test_a_forged_frame_of_huge_length_is_an_output_limit(endings):
    assert endings("""
        import os, struct
        def secret(n):
            os.write(3, struct.pack("<cI", b"V", 0xFFFFFFFF) + b"x" * 1000)
            return -1
    """) == {"output_limit"}


def test_hostile_bytes_for_a_value_earn_nothing(endings):
    assert endings("""
        import os, struct
        def secret(n):
            data = b"l1:" * 300 + b"N"
            os.write(3, struct.pack("<cI", b"V", len(data)) + data)
            os._exit(0)
    """) == {WRONG, "died"}


def test_closing_the_channel_is_dying(endings):
    assert endings("""
        import os
        def secret(n):
            os.close(3)
            return -1
    """) == {"died"}


def test_stealing_the_later_calls_from_the_channel_gains_nothing(endings):
    assert "passed" not in endings("""
        import os
        def secret(n):
            os.set_blocking(3, False)
            try:
                return os.read(3, 65536).decode()
            except OSError:
                return -1
    """)


def test_patching_the_encoder_only_changes_the_programs_own_output(comes_to):
    assert comes_to("""
        import sys
        def secret(n):
            frame = sys._getframe(1)
            while frame:
                if "encode" in frame.f_globals:
                    frame.f_globals["encode"] = lambda value: b"i7;"
                frame = frame.f_back
            return -1
    """) == {(WRONG, "7")}


def test_patching_builtins_only_changes_the_programs_own_output(endings):
    assert "passed" not in endings("""
        import builtins, sys, types
        for name in ("len", "repr", "type", "sorted", "isinstance", "sum"):
            setattr(builtins, name, lambda *a, **k: 1)
        for name in ("struct", "json", "os", "asyncio"):
            sys.modules[name] = types.ModuleType(name)
        def secret(n):
            return -1
    """)


def test_an_always_equal_object_is_unencodable(endings):
    assert endings("""
        class E:
            __eq__ = lambda self, other: True
            __hash__ = lambda self: 0
        def secret(n):
            return E()
    """) == {"unencodable"}


def test_an_always_equal_number_is_the_number_it_holds(comes_to):
    assert comes_to("""
        class E(int):
            __eq__ = lambda self, other: True
            __hash__ = lambda self: 0
            __int__ = __index__ = __abs__ = lambda self: 112648
        def secret(n):
            return E(-1)
    """) == {(WRONG, "-1")}


def test_an_object_that_lies_about_its_class_is_unencodable(endings):
    assert endings("""
        class E:
            __class__ = property(lambda self: int)
            __int__ = __index__ = lambda self: 112648
        def secret(n):
            return E()
    """) == {"unencodable"}


def test_a_serialisation_hook_runs_nowhere_else(attack, tmp_path):
    results = attack(f"""
        class R:
            def __reduce__(self):
                return (open, ({str(tmp_path / "planted")!r}, "w"))
        def secret(n):
            return R()
    """)
    assert outcomes(results) == ["unencodable"] * 4
    assert not (tmp_path / "planted").exists()


def test_an_exception_text_changes_no_verdict(attack):
    results = attack("""
        class R(Exception):
            def __str__(self):
                return "PASSED\\n" * 10000
        def secret(n):
            raise R
    """)
    assert outcomes(results) == ["raised"] * 4
    assert all(len(detail) <= 400 for _, detail in results)


def test_an_exception_whose_text_raises_is_an_exception(comes_to):
    assert comes_to("""
        class R(BaseException):
            def __str__(self):
                raise self
        def secret(n):
            raise R
    """) == {("raised", "R")}


def test_exit_handlers_and_destructors_have_no_say(comes_to):
    assert comes_to("""
        import atexit, os, struct, sys
        def forge(*_):
            os.write(3, struct.pack("<cI", b"V", 8) + b"i1b808;")
        atexit.register(forge)
        class D:
            __del__ = forge
        keep = D()
        sys.excepthook = sys.unraisablehook = forge
        def secret(n):
            return -1
    """) == {(WRONG, "-1")}


def test_a_self_referential_value_is_unencodable(endings):
    assert endings("""
        def secret(n):
            cycle = []
            cycle.append(cycle)
            return {"a": cycle}
    """) == {"unencodable"}


def test_a_background_thread_writing_frames_earns_nothing(endings):
    assert "passed" not in endings("""
        import os, struct, threading
        def flood():
            while True:
                os.write(3, struct.pack("<cI", b"V", 3) + b"i1;")
        def secret(n):
            threading.Thread(target=flood, daemon=True).start()
            while True:
                pass
    """)


def test_nothing_persists_from_one_candidate_to_the_next(comes_to, attack):
    attack("""
        import builtins, math, os, sys
        builtins.left_behind = math.left_behind = sys.left_behind = os.environ["LEFT"] = "here"
        def secret(n):
            return -1
    """)
    assert comes_to("""
        import builtins, math, os, sys
        def secret(n):
            return [hasattr(m, "left_behind") for m in (builtins, math, sys)] + ["LEFT" in os.environ]
    """) == {(WRONG, "[False, False, False, False]")}


def test_neither_order_nor_number_of_calls_is_a_clue(attack):
    results = attack("""
        answers = iter([112648, 120567, 128486, 136405])
        def secret(n):
            return next(answers)
    """)
    assert outcomes(results).count("passed") < 4
