"""Results on disk, their tables, and the comparison of two."""

import re
from dataclasses import replace

import pytest

from code_a1_recipe.cli.app import main
from code_a1_recipe.cli.tables import print_table
from code_a1_recipe.errors import InputError
from code_a1_recipe.stats.tables import Table, table_of
from code_a1_recipe.tools.evaluate.results import Results, comparison_table, results_table


def results(label="one", *, right=(1.0, 0.0, 1.0), **changes):
    names = [f"q{place}" for place in range(len(right))]
    ordinary = Results(
        kind="code",
        label=label,
        settings={},
        source_of={name: "first" if name != "q2" else "second" for name in names},
        parts={
            "pass@1": {name: (value, 1.0) for name, value in zip(names, right, strict=True)},
            "cov": {"q0": (3.0, 4.0), "q1": (0.0, 12.0)},
        },
        products={"mul": ("pass@1", "cov")},
        counts={"lost": 2},
    )
    return replace(ordinary, **changes)


def cells(table):
    """The rows as dictionaries."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_the_table_has_a_row_for_each_metric_and_a_column_for_each_source_and_all():
    table = results_table(results())
    assert table.columns == ("metric", "first (2)", "second (1)", "all (3)")
    passed, covered, product = cells(table)
    assert [row["metric"] for row in (passed, covered, product)] == ["pass@1", "cov", "mul"]
    assert passed["first (2)"].startswith("50.0 [")
    assert passed["all (3)"].startswith("66.7 [")
    assert covered["first (2)"].startswith("18.8 [")  # 3 / 16, not the mean of 75 % and 0 %
    assert covered["second (1)"] == "–"
    assert "lost: 2" in table.note


def test_a_product_multiplies_its_factors_over_the_questions_that_have_both():
    found = results()
    counted = found.questions("mul", found.source_of)
    assert counted == ["q0", "q1"]
    assert found.estimate("mul", counted).value == pytest.approx(0.5 * 3 / 16)


@pytest.mark.parametrize(
    ("right", "killed", "published"), [(16.29, 22.30, 3.63), (27.05, 26.41, 7.14), (37.15, 53.14, 19.74)]
)
def test_mul_follows_from_the_parts_that_the_paper_publishes(right, killed, published):
    """pass@5, mut@5 and Mul of tables of arXiv 2603.15611, in percent."""
    parts = {"pass@5": {"q0": (right, 100.0)}, "mut@5": {"q0": (killed, 100.0)}}
    found = results(parts=parts, products={"mul@5": ("pass@5", "mut@5")})
    assert round(100 * found.estimate("mul@5", ["q0"]).value, 2) == published


def test_a_comparison_pairs_by_question_and_gives_the_sign_of_the_second_minus_the_first():
    rows = cells(comparison_table(results("a"), results("b", right=(1.0, 1.0, 1.0))))
    assert [row["questions of"] for row in rows[:3]] == ["first (2)", "second (1)", "all (3)"]
    assert rows[0]["a"].startswith("50.0")
    assert rows[0]["b"].startswith("100.0")
    assert rows[0]["difference"].startswith("+50.0")
    assert rows[0]["settled"] == "too few"  # two questions


def many(label, values, **changes):
    parts = {"pass@1": {f"q{place}": (value, 1.0) for place, value in enumerate(values)}}
    return results(label, source_of=dict.fromkeys(parts["pass@1"], "first"), parts=parts, products={}, **changes)


def test_a_difference_of_many_questions_can_be_settled():
    (row,) = cells(comparison_table(many("a", [0.0] * 30), many("b", [0.0, 1.0, 1.0] * 10)))
    assert row["settled"] == "yes"


def test_settings_that_differ_are_named_under_a_comparison():
    first = many("a", [1.0], settings={"seed": 1, "model": "x"})
    assert "Settings that differ: seed." in comparison_table(first, many("b", [1.0], settings={"seed": 2})).note
    assert "Settings that differ" not in comparison_table(first, replace(first, label="b")).note


def test_questions_that_count_on_one_side_only_are_not_compared():
    first = results("a", parts={"mut": {"q0": (1.0, 1.0), "q1": (0.0, 0.0)}}, products={})
    second = results("b", parts={"mut": {"q0": (0.0, 0.0), "q1": (1.0, 1.0)}}, products={})
    with pytest.raises(InputError, match="share no question"):
        comparison_table(first, second)


def test_a_product_counts_zero_where_no_question_counts_for_a_factor():
    found = many("one", [1.0] * 2 + [0.0] * 38)
    qualifies = {name: (value, value) for name, (value, _) in found.parts["pass@1"].items()}
    found = replace(found, parts=found.parts | {"mut": qualifies}, products={"mul": ("pass@1", "mut")})
    estimate = found.estimate("mul", list(qualifies))
    assert estimate.value == pytest.approx(0.05)
    assert estimate.low == 0.0


def test_pass_at_1_of_several_samples_goes_by_its_other_name_too():
    assert results_table(results(settings={"samples": 32})).rows[0][0] == "pass@1 (avg@32)"


def test_two_evaluations_of_one_label_keep_two_columns():
    table = comparison_table(results("same"), results("same"))
    assert table.columns[2:4] == ("same", "same (second)")
    assert cells(table)[0]["difference"].startswith("+0.0")


def test_evaluations_that_do_not_go_together_are_refused():
    with pytest.raises(InputError, match="cannot be compared"):
        comparison_table(results(), results(kind="test"))
    other = results(parts={"pass@1": {"z": (1.0, 1.0)}}, source_of={"z": "first"}, products={})
    with pytest.raises(InputError, match="share no question"):
        comparison_table(results(), other)


def test_a_table_is_markdown():
    table = table_of("A & B", [{"name": "x|y", "value": "<1>"}, {"value": "2", "more": "3"}], note="Read me.")
    assert table.columns == ("name", "value", "more")
    assert "| x\\|y | &lt;1> |      |" in table.markdown()
    assert table.markdown().startswith("**A & B**\n")
    assert table.markdown().endswith("\nRead me.\n")


def test_a_row_of_another_width_is_refused():
    with pytest.raises(ValueError, match="shorter"):
        Table(title="", columns=("a", "b"), rows=(("1",),)).markdown()


def test_a_terminal_gets_the_table_drawn(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(Table(title="Right [of all]", columns=("a", "b"), rows=(("[1.0]", "x|y"),), note="n"))
    shown = capsys.readouterr().out
    assert "[1.0]" in shown
    assert "x|y" in shown
    assert "---" not in shown


def test_compare_shows_the_table(tmp_path, capsys):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        results(folder.name).save(folder)
        assert results_table(Results.load(folder)) == results_table(results(folder.name))
    assert main(["eval", "compare", *map(str, folders)]) == 0
    assert "b against a" in capsys.readouterr().out


def test_a_folder_without_results_is_refused(tmp_path, capsys):
    assert main(["eval", "compare", str(tmp_path), str(tmp_path)]) == 2
    assert re.search(r"holds no finished evaluation.*--output", capsys.readouterr().err, re.DOTALL)
