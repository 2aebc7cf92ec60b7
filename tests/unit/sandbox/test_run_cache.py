"""Identical candidates run only once, and their verdicts do not change."""

from dataclasses import replace

import pytest

from sandbox import Judge
from sandbox.judge.bounded_cache import BoundedCache
from sandbox.text import syntax_key

REFERENCE = "def f(x):\n    return x + 1"
SAME = "def f(x): return x"


def test_formatting_and_comments_do_not_tell_programs_apart_names_do():
    one = "def f(x):\n    return x+1  # so\n\n\n"
    assert syntax_key(one) == syntax_key("def f(x): return x + 1")
    assert syntax_key(one) != syntax_key("def f(y): return y + 1")
    assert syntax_key("def f(:") != syntax_key("def f(: ")
    assert syntax_key("(" * 90_000) != syntax_key("(" * 90_001)
    for line in ("import inspect", "x = error.tb_lineno", "f.__code__.co_lines()"):  # a program may read its lines
        assert syntax_key(line) != syntax_key(f"\n{line}")


def test_an_identical_program_with_the_same_calls_is_not_run_again(ask, counting):
    judge = Judge(counting, reuse_results=True)
    asserts = ("assert f(1) == 2", "assert f(2) == 3")
    first = ask(REFERENCE, SAME, *asserts, judge=judge)
    again = ask(REFERENCE, "def f(x):\n    return x  # the same", *asserts, judge=judge)
    assert counting.roles.count("candidate") == 2  # one is the reference
    assert (first.was_cached, again.was_cached, again.cpu_seconds) == (False, True, 0.0)
    assert again.suites == first.suites
    assert not ask(REFERENCE, SAME, asserts[0], judge=judge).was_cached


@pytest.mark.parametrize(
    ("candidate", "is_kept"),
    [
        ("def f(x): return x + 1", True),
        ("def f(x): return 1 // x", True),
        ("def f(x): return object()", True),
        # State that grows from call to call: the answers to another list of calls would differ.
        ("def f(x, seen=[]):\n    seen.append(x)\n    return x + len(seen)", True),
        ("def f(x:", False),
        ("def f(x):\n    while x == 2: pass\n    return x + 1", False),
        ("import os\ndef f(x):\n    os._exit(3)", False),
    ],
)
def test_the_verdict_is_the_one_of_a_fresh_judge_and_no_time_out_or_death_is_kept(ask, runner, candidate, is_kept):
    remembering = Judge(runner, reuse_results=True)
    first, second, third = "assert f(0) == 1", "assert f(2) == 3", "assert f(5) == 6"
    were_cached = []
    for asserts, history in (
        ((first, second), ()),
        ((second, third), ("f(0)",)),
        ((first, second), ()),
        ((second,), ()),
    ):
        cached = ask(REFERENCE, candidate, *asserts, history=history, judge=remembering)
        fresh = ask(REFERENCE, candidate, *asserts, history=history)
        were_cached.append(cached.was_cached)
        assert replace(cached, cpu_seconds=0.0, wall_seconds=0.0, was_cached=False) == replace(
            fresh, cpu_seconds=0.0, wall_seconds=0.0
        )
    assert were_cached == [False, False, is_kept, False]


def test_what_is_kept_has_a_bound_and_is_counted_once():
    known = BoundedCache(list, max_bytes=40_000)
    for name in "abacd":
        key, entry = known.find(name, "text")
        assert known.note_size(key, entry, 14_000)
    assert [name for name, _ in known._entries] == ["c", "d"]
    assert known.note_size(key, entry, 20_000)
    known.forget("c")
    assert known._bytes == 20_000 + 1024
    known.forget("d")
    assert not known.note_size(key, entry, 9)  # it was dropped while its program ran
    assert (known._bytes, known._sizes, len(known._entries)) == (0, {}, 0)


def test_forgetting_a_question_forgets_its_programs(ask, counting):
    judge = Judge(counting, reuse_results=True)
    for _ in range(2):
        ask(REFERENCE, SAME, "assert f(1) == 2", judge=judge)
        judge.forget("q")
    assert counting.roles.count("candidate") == 4  # two are the reference
