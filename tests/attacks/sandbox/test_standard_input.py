"""Programs that read standard input and want credit for what they did not compute, or harm the next program."""

import textwrap

import pytest

from sandbox import Judge, JudgeRequest

from .conftest import outcomes

REFERENCE = "n = int(input())\nprint((n * 7919 + 104729) % 1000003)\n"
SUITE = tuple(f'assert run("{n}") == "{(n * 7919 + 104729) % 1000003}"' for n in range(1, 5))
WRONG, PASSED = "wrong_value", "passed"


@pytest.fixture
def printing(runner):
    """Judge an attacking program that is to read and print; outcome and remark of its four cases."""

    def run(source, *, reference=REFERENCE, suite=SUITE, checker="tokens"):
        request = JudgeRequest(
            question_id=reference,
            reference=reference,
            candidate=textwrap.dedent(source),
            suites=(suite,),
            kind="stdin",
            checker=checker,
        )
        found = Judge(runner).judge(request).suites[0]
        assert found.num_valid == len(suite)
        return [(case.outcome.value, case.detail) for case in found.cases]

    return run


def test_the_reference_passes(printing):
    assert outcomes(printing(REFERENCE)) == [PASSED] * 4


def test_nothing_that_is_expected_lies_in_frames_or_objects(printing):
    results = printing("""
        import gc, sys
        n = int(input())
        made = lambda n: str((n * 7919 + 104729) % 1000003)
        frame, seen = sys._getframe(), []
        while frame:
            seen += [str(v) for v in (*frame.f_locals.values(), *frame.f_globals.values())]
            frame = frame.f_back
        for item in gc.get_objects():
            if type(item) is dict:
                seen += [v for v in item.values() if type(v) is str and len(v) < 9]
        found = [text for text in seen if text.strip() in map(made, range(1, 5))]
        print(found)
    """)
    assert results == [(WRONG, "'[]\\n'")] * 4


def replacing(answer):
    """What runs programs, and the name that calls it, replaced by ``answer``, a function of the input."""
    return f"""
        import sys
        class Anything(str):
            __eq__ = lambda self, other: True
            __hash__ = str.__hash__
        frame = sys._getframe()
        while "self" not in frame.f_locals:
            frame = frame.f_back
        type(frame.f_locals["self"]).__call__ = lambda self, text: {answer}
        while "scope" not in frame.f_locals:
            frame = frame.f_back
        frame.f_locals["scope"]["run"] = lambda text: {answer}
        print(0)
    """


def test_replacing_what_runs_programs_changes_only_its_own_output(printing):
    assert outcomes(printing(replacing("str((int(text) * 7919 + 104729) % 1000003)"))).count(PASSED) == 3  # it can


@pytest.mark.parametrize("answer", ['Anything("x")', "[112648]", "112648", "None", "(lambda: 1)"])
def test_what_is_no_text_or_another_is_no_output(printing, answer):
    assert PASSED not in outcomes(printing(replacing(answer)))


def test_descriptors_closed_or_moved_cost_the_program_and_nobody_else(printing):
    for attack in (
        "import os\nos.close(0)\nos.close(1)\nprint(int(input()))",
        "import os\nos.closerange(0, 3)\n",
        "import os\nfor n in range(64):\n    try:\n        os.dup2(3, n)\n    except OSError:\n        pass\nprint(1)",
        "import os\nos.closerange(0, 64)",
        "import sys\nsys.stdout = sys.stdin = None",
        "import os\nos.dup2(1, 0)\nprint(input())",
        "import os, threading\nthreading.Thread(target=lambda: os.read(os.dup(0), 9), daemon=True).start()",
    ):
        assert PASSED not in outcomes(printing(attack))


def test_a_copy_of_the_output_that_stays_open_costs_time_and_no_verdict(printing):
    assert outcomes(printing("import os\nkept = os.dup(1)\n" + REFERENCE)) == [PASSED] * 4


def test_threads_that_live_on_do_not_print_into_later_answers(printing):
    results = printing("""
        import threading, time
        n = int(input())
        def late():
            time.sleep(0.01)
            print("late")
        threading.Thread(target=late, daemon=True).start()
        print((n * 7919 + 104729) % 1000003)
    """)
    assert PASSED in outcomes(results)  # whatever it does to itself; the fixture asks an honest program afterwards


def test_exit_handlers_and_hooks_do_not_pile_up(printing):
    source = REFERENCE + "import atexit\natexit.register(print, 'bye')\n"
    assert outcomes(printing(source)) == [WRONG] * 4
    assert {detail.count("bye") for _, detail in printing(source)} == {1}


def test_output_without_end_is_cut_and_does_not_fill_memory(printing):
    assert outcomes(printing("while True:\n    print('x' * 65536)")) == ["output_limit"] * 4


def test_output_that_is_no_utf_8_or_holds_anything_is_a_text_all_the_same(printing):
    results = printing("import os\nos.write(1, bytes(range(256)))")
    assert set(outcomes(results)) == {WRONG}


@pytest.mark.parametrize("checker", ["exact", "tokens", "floats", "accepted"])
def test_numbers_and_separators_that_would_please_a_checker(printing, checker):
    for text in ("nan", "inf", "1e999", "---", "0\n---\n112648 120567", "1_12648", "١١٢٦٤٨", "112648 " * 2, ""):
        found = outcomes(printing(f"input()\nprint({text!r})", checker=checker))
        assert PASSED not in found, (checker, text)


@pytest.mark.parametrize(
    ("expected", "wrong", "right"),
    [
        ("float('inf')", ["'nan'", "'1e400'"], "'inf'"),
        ("10**400", ["'inf'", "9 * 10**400"], "10**400"),
    ],
)
def test_a_reference_that_prints_what_looks_like_infinity_is_matched_by_itself_alone(printing, expected, wrong, right):
    question = {"reference": f"input()\nprint({expected})", "suite": ('assert run("1") == "inf"',), "checker": "floats"}
    for printed in wrong:
        assert outcomes(printing(f"print({printed})", **question)) == [WRONG]
    assert outcomes(printing(f"print({right})", **question)) == [PASSED]


def test_a_hang_costs_its_own_case(printing):
    source = "n = int(input())\nwhile n == 2:\n    pass\nprint((n * 7919 + 104729) % 1000003)\n"
    assert outcomes(printing(source)) == [PASSED, "timed_out", PASSED, PASSED]
