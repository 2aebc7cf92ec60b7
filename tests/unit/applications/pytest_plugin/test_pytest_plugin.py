"""The fixture ``code_a1`` as a project's tests use it: what it finds, skips, and leaves alone."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

# Imported here, for each inner run of pytest forgets what it has imported itself.
import code_a1_recipe.applications.pytest_plugin.check  # noqa: F401

pytest_plugins = "pytester"
PLUGIN = "code_a1_recipe.applications.pytest_plugin.plugin"
BUGGY = """
def median(values):
    "The median of a list of numbers."
    return sorted(values)[len(values) // 2]
"""
RIGHT = """
def median(values):
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
"""
TEST = """
import statistics
from programs import median

def test_median(code_a1):
    code_a1.check(median, reference=statistics.median)
"""
ASSERTS = "def asserts():\n    assert median([3, 1, 2]) == 2\n"
MINIMAL = "E         assert median([0, 1]) == 0.5  # your function: 1"


@pytest.fixture
def project(pytester, monkeypatch):
    """``project(options, name=text, ...)`` writes ``name.py`` and runs its tests in this process."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(*options, **texts):
        for name, text in texts.items():
            (pytester.path / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        for name in {"programs", *texts}:
            sys.modules.pop(name, None)
        # The plug-in for unraisable errors collects garbage five times, seconds each where other tests have left much.
        left_out = ("-p", "no:cacheprovider", "-p", "no:unraisableexception")
        return pytester.runpytest_inprocess("-p", PLUGIN, *left_out, "--strict-markers", *options)

    return run


def test_a_failure_is_shrunk_and_its_assert_may_be_pasted_where_the_others_stand(project):
    found = project(programs=BUGGY, test_it=TEST + ASSERTS)
    found.stdout.fnmatch_lines(["*median breaks on these calls, of * calls that were made", MINIMAL])
    pasted = "def asserts():\n    assert median([0, 1]) == 0.5\n"
    project("--code-a1-max-calls", "1", test_it=TEST + pasted).stdout.fnmatch_lines(["*of 1 call that *", MINIMAL])
    project(programs=RIGHT).assert_outcomes(passed=1)
    project(test_it=TEST).assert_outcomes(skipped=1)


def test_asserts_may_name_the_function_by_its_module_or_as_a_method(project):
    asserts = "def asserts():\n    assert programs.median([3, 1]) == 2\n    assert self.owner.median([7]) == 7\n"
    project(programs=BUGGY, test_it=TEST + asserts).stdout.fnmatch_lines([MINIMAL])


@pytest.mark.nightly
def test_a_mutant_of_an_installed_package_is_found(project):
    """``packaging`` replaces runs of separators; the mutant, each single one."""
    mutant = """
    import re
    from packaging.utils import canonicalize_name as right

    def canonicalize_name(name):
        return re.sub(r"[-_.]", "-", name).lower()

    def test_name(code_a1):
        code_a1.check(canonicalize_name, reference=right, suites="asserts.txt")
    """
    Path("asserts.txt").write_text('assert canonicalize_name("Foo.Bar__baz") == ""\n')
    project(test_it=mutant).stdout.fnmatch_lines(
        ["E         assert canonicalize_name('__') == '-'  # your function: '--'"]
    )
    project(test_it=mutant.replace("[-_.]", "[-_.]+")).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("check(lambda x: x, reference=abs)", "that asserts can call by its name"),
        ("check(abs)", "either reference=FUNCTION or holds=PROPERTY"),
        ("check(abs, reference=abs, raises=ValueError)", "raises= goes with holds= alone"),
        ("check(abs, reference=abs, suites='absent.py')", "absent.py cannot be read"),
        ("check(boxed, reference=boxed)", "with a plain value (unencodable "),
    ],
)
def test_a_check_that_cannot_be_made_is_an_error(project, check, words):
    test = (
        f"def boxed(n):\n    return object()\n\ndef test_it(code_a1):\n    code_a1.{check}\n    assert boxed(1) == 0\n"
    )
    found = project(test_it=test)
    found.assert_outcomes(skipped=1, errors=1)
    assert words in found.stdout.str()


@pytest.mark.nightly
def test_a_property_decides_and_refused_arguments_do_not_count(project):
    found = project(
        test_it="""
        import pytest

        def biggest(values):
            if not values:
                raise ValueError("no values")
            return sorted(set(values))[-1] if len(values) < 3 else values[0]

        def is_biggest(result, values):
            return all(result >= value for value in values)

        @pytest.mark.code_a1(holds=is_biggest)
        class TestBiggest:
            def test_without_refusals(self, code_a1):
                code_a1.check(biggest)

            def test_with_refusals(self, code_a1):
                code_a1.check(biggest, raises=ValueError)

        def asserts():
            assert biggest([2, 3]) == 3
            assert biggest([3, 2, 1]) == 3
        """
    )
    found.assert_outcomes(failed=2)
    out = found.stdout.str()
    with_refusals = out.partition("TestBiggest.test_with_refusals")[2]
    assert "  biggest([0, 0, 1])  # your function: AssertionError: not so for the result 0" in with_refusals


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit('bye')"])
def test_a_function_that_would_end_pytest_fails_its_own_test_only(project, error):
    found = project(
        test_it=f"""
        def f(x):
            if x == 0:
                raise {error}
            return x

        def test_f(code_a1):
            code_a1.check(f, reference=lambda x: x)

        def asserts():
            assert f(0) == 0

        def test_other():
            pass
        """
    )
    found.assert_outcomes(failed=1, passed=1)
    found.stdout.fnmatch_lines(["*f breaks on these calls*"])


@pytest.mark.parametrize(
    ("holds", "words"),
    [
        ("lambda result, x: 1 / 0", "*holds= raises ZeroDivisionError: division by zero for the result*"),
        ("lambda result: True", "*holds= raises TypeError: *positional argument*"),
        ("lambda result, x: None", "*not so for the result*; holds= must return whether it is right*"),
    ],
)
def test_a_property_that_cannot_be_asked_is_named(project, holds, words):
    test = f"def f(x):\n    return x\ndef test_f(code_a1):\n    code_a1.check(f, holds={holds})\n"
    found = project(test_it=test + "def asserts():\n    assert f(1) == 1\n")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines([words])


@pytest.mark.nightly
def test_state_iterators_and_coroutines(project):
    found = project(
        test_it="""
        async def double(n):
            return n + n if n < 100 else 0

        def pairs(values):
            return zip(values, values[2:] if len(values) > 3 else values[1:])

        def collect(value, seen=[]):
            seen.append(value)
            print("noise")
            return list(seen)

        def test_double(code_a1):
            code_a1.check(double, reference=lambda n: 2 * n)

        def test_pairs(code_a1):
            code_a1.check(pairs, reference=lambda values: [*zip(values, values[1:])])

        def test_collect(code_a1):
            code_a1.check(collect, reference=lambda value: [value])

        async def asserts():
            assert await double(3) == 6
            assert list(pairs([1, 2, 3])) == [(1, 2), (2, 3)]
            assert collect(7)[0] == 7
        """
    )
    found.assert_outcomes(failed=3)
    out = found.stdout.str()
    assert "assert await double(100) == 200  # your function: 0" in out
    assert "assert pairs([0, 0, 0, 0]) == [(0, 0), (0, 0), (0, 0)]  # your function: [(0, 0), (0, 0)]" in out
    assert "collect(0); assert collect(0) == [0]  # your function: [0, 0]" in out
    assert "noise" not in out


def test_tests_that_do_not_use_it_run_as_without_it(project, pytester):
    def lines(*options):
        (pytester.path / "test_other.py").write_text("def test_it():\n    pass\n")
        found = pytester.runpytest_subprocess("-W", "error", "--strict-markers", "-p", "no:cacheprovider", *options)
        return [re.sub(r"in [\d.]+s", "", line) for line in found.outlines if not line.startswith("plugins:")]

    assert lines("-p", PLUGIN) == lines()
    assert not (pytester.path / ".code_a1").exists()


def test_the_plugin_is_declared_and_imports_pytest_alone(repository):
    declared = (repository / "pyproject.toml").read_text(encoding="utf-8")
    assert f'[project.entry-points.pytest11]\ncode_a1 = "{PLUGIN}"' in declared
    program = (
        f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=repository, capture_output=True, text=True, check=True)
    packages = ("code_a1_recipe", "code_a1_recipe.applications", "code_a1_recipe.applications.pytest_plugin")
    assert eval(done.stdout) == sorted([*packages, "code_a1_recipe.errors", PLUGIN])


def test_the_example_of_the_readme(project, repository):
    text = (repository / "code_a1_recipe" / "applications" / "README.md").read_text(encoding="utf-8")
    section = text.partition("## In your own tests\n")[2].partition("\n## ")[0]
    example, output = re.findall(r"```(?:python|text)\n(.*?)```", section, re.DOTALL)
    found = project(test_median=example)
    assert output in "\n".join(found.outlines)
