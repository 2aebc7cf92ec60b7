"""Bounds that the layout keeps: ``LIMITS`` of ``house_figures``, and that its counting rules count."""

import pytest

from .house_figures import (
    FIGURES,
    LIMITS,
    House,
    Source,
    deep_imports,
    function_lines,
    lines,
    long_files,
    long_functions,
    names_run_files,
    root_files,
)


@pytest.fixture(scope="module")
def house(repository):
    return House(repository)


def test_the_packages_stay_small(house):
    assert lines(house) <= LIMITS["lines"]


def test_files_are_short(house):
    assert long_files(house, LIMITS["file_lines"]) == {}


def test_functions_are_short(house):
    assert long_functions(house, LIMITS["function_lines"]) == {}


def test_the_sandbox_is_imported_by_its_face_only(house):
    packages = [place for place in deep_imports(house) if not place.startswith("examples/")]
    assert len(packages) <= LIMITS["deep_imports"], packages


def test_the_readme_is_read_in_one_sitting(house):
    assert house.lines_of("README.md") <= LIMITS["readme_lines"]


@pytest.mark.parametrize("package", ["code_a1_recipe", "sandbox"])
def test_packages_hold_folders(house, package):
    files = root_files(house, package)
    assert len(files) <= LIMITS[f"{package.removeprefix('code_a1_')}_root_files"], files


def test_every_goal_is_met_but_those_that_never_were(house):
    rows = {figure.name: figure.row(house) for figure in FIGURES}
    assert [row.count("|") for row in rows.values()] == [5] * len(FIGURES)
    assert {name for name, row in rows.items() if not row.endswith("| met |")} <= {"files under 30 lines"}


def test_a_docstring_does_not_lengthen_its_function():
    source = Source("a.py", 'def f():\n    """One.\n\n    Two.\n    """\n    return 1\n')
    assert list(function_lines(source)) == [("a.py:1 f", 2)]


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("rows = (folder / 'metrics.jsonl').read_text()", True),
        ("rows = list(run.rollouts.glob('*'))", True),
        ("there = run.resolved_config.exists()", False),
        ("there = (folder / 'rollouts').is_dir()", False),
        ("run.resolved_config.write_text('')", False),
        ("raise ValueError('rollouts')", False),
    ],
)
def test_who_reads_a_run_folder(text, reads):
    assert names_run_files(Source("a.py", text)) is reads
