"""A function of the user's that writes the suites."""

import pytest

from code_a1_recipe.errors import CodeA1Error, SettingsError
from code_a1_recipe.extensions.scripted_tester import find_scripted_tester

TESTER = """def write(question, program, *, num_suites, num_cases, seed):
    return ["assert f(%d) == 1  # %s" % (s, program[-1]) for s in range(num_suites)]
def short(question, program, **sizes):
    return []
def raises(question, program, **sizes):
    return 1 / 0
def long(question, program, **sizes):
    return ["a", "b", "c"]
"""


def write_suites(tmp_path, name):
    (tmp_path / "tester.py").write_text(TESTER)
    write = find_scripted_tester(f"{tmp_path}/tester.py:{name}")
    return write("Add one.", "def f(x): return 2", num_suites=2, num_cases=1, seed=0)


def test_its_suites_are_texts(tmp_path):
    assert write_suites(tmp_path, "write") == ["assert f(0) == 1  # 2", "assert f(1) == 1  # 2"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("short", "must return 2 suites, got 0"),
        ("long", "must return 2 suites, got 3"),
        ("raises", "ZeroDivisionError"),
    ],
)
def test_a_script_that_fails_ends_the_run_with_its_name(tmp_path, name, words):
    with pytest.raises(CodeA1Error, match=rf"tester.py:{name}.*{words}"):
        write_suites(tmp_path, name)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("write", "must name a module and a function; give pkg"),
        (":write", "must name a module and a function"),
        ("tester.py:1st", "must name a module and a function"),
        ("/nowhere/tester.py:write", "cannot be loaded"),
        ("pkg://math:pi", "has no function 'pi'"),
    ],
)
def test_a_path_that_leads_to_no_function_is_refused(path, words):
    with pytest.raises(SettingsError, match=words):
        find_scripted_tester(path)
