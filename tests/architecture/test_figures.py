"""The layout keeps its figures, and ``house_figures`` counts by its rules."""

import pytest

from .house_figures import FIGURES, House, Source, function_lines, names_run_files


@pytest.fixture(scope="module")
def house(repository):
    return House(repository)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_meets_its_goal_or_is_no_worse_than_it_was(house, figure):
    value = figure.count(house)
    assert figure.is_held(value), f"{figure.name}: {value}, goal {figure.goal}, limit {figure.limit}"


def test_docstrings_and_comments_are_no_code_tokens():
    source = Source("a.py", '"""Words."""\n\n# a reason\nx = f(1)  # another\n')
    assert (source.tokens, source.code_lines, source.comments) == (6, 1, 2)


def test_how_tightly_code_is_set_changes_density_and_no_tokens():
    tight, loose = Source("a.py", "f(a, b)\n"), Source("a.py", "f(\n    a, b\n)\n")
    assert tight.tokens == loose.tokens == 6
    assert (tight.density, loose.density) == (6, 2)


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
