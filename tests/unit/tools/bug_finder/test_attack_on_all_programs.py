"""The attack on every program of the corpus: all bugs found, small calls, tests that fail until the bug is mended."""

import ast
import contextlib

import pytest

from code_a1_recipe.tools.bug_finder import command
from code_a1_recipe.tools.bug_finder.options import AttackOptions

from .attack_programs import PROGRAMS
from .conftest import outcomes_of_pytest

LONGEST_MINIMAL_ARGUMENTS = 20
"""Characters between the parentheses of a minimal call; those of the calls found have up to ten times as many."""


@pytest.fixture(scope="module")
def attacks(tmp_path_factory, share_of, runner):
    """``[(program, report, bugs, folder)]``; what each attack wrote lies in its folder."""
    root = tmp_path_factory.mktemp("attacks")
    found = []
    seen = []
    written = command.pytest_text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "pytest_text", lambda bugs, **names: seen.append(bugs) or written(bugs, **names))
        patch.setattr(command, "LocalRunner", lambda **options: contextlib.nullcontext(runner))
        for program in share_of(PROGRAMS, 7):
            folder = root / program.entry
            folder.mkdir()
            (folder / "solution.py").write_text(program.buggy, encoding="utf-8")
            (folder / "reference.py").write_text(program.reference, encoding="utf-8")
            (folder / "tests.txt").write_text("\n".join(program.asserts), encoding="utf-8")
            options = AttackOptions(
                solution=folder / "solution.py",
                entry=program.entry,
                reference=folder / "reference.py",
                suites=(folder / "tests.txt",),
                max_calls=300,
                output=folder / "test_bugs.py",
            )
            seen.clear()
            report = command.attack(options)
            found.append((program, report, seen[0] if seen else [], folder))
    return found


def test_the_bug_is_found_and_its_calls_are_minimal(attacks):
    for program, report, bugs, _ in attacks:
        assert report.failure, program.entry
        assert bugs, program.entry
        for bug in bugs:
            tree = ast.walk(ast.parse(bug.call.expression))
            arguments = [ast.unparse(node) for node in tree if isinstance(node, ast.Call)]
            assert len(arguments[0]) - len(program.entry) - 2 <= LONGEST_MINIMAL_ARGUMENTS, program.entry
        assert any(bug.failure.kind == "time-out" for bug in bugs) == program.hangs, program.entry


def test_the_written_tests_fail_on_each_buggy_program_and_pass_on_its_reference(attacks, tmp_path):
    programs, expected = {}, {}
    for program, _, _, attacked in attacks:
        for kind, text, outcome in (("buggy", program.buggy, "FAILED"), ("right", program.reference, "PASSED")):
            name = f"{kind}/{program.entry}"
            programs[name], expected[name] = (text, attacked / "test_bugs.py"), {outcome}
    assert outcomes_of_pytest(tmp_path, programs) == expected
