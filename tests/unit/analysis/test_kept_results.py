"""The figures in the documentation are those of the results that are kept beside it, never typed by hand."""

import re
from pathlib import Path

import pytest

from code_a1_recipe.analysis.report import table_sections, tables_text
from code_a1_recipe.analysis.results import load_results
from code_a1_recipe.analysis.summary import ExperimentSummary, equal_rows, headline_rows, markdown_table

ROOT = Path(__file__).resolve().parents[3]
KEPT = ROOT / "examples" / "micro_results"
README_MEASURES = ("pass@1", "greedy", "valid", "kill_per_case", "product", "caught", "fooled", "missed")


def summary_of(name):
    return ExperimentSummary(load_results(KEPT / name / "results.json").runs)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in KEPT.glob("*/results.json")))
def test_the_tables_are_those_of_the_results(name):
    assert (KEPT / name / "tables.md").read_text(encoding="utf-8") == tables_text(summary_of(name))


@pytest.mark.parametrize("name", sorted(path.parent.name for path in KEPT.glob("*/results.json")))
def test_the_results_name_no_folder_of_the_machine_that_made_them(name):
    text = (KEPT / name / "results.json").read_text(encoding="utf-8")
    assert not re.search(r"""[=\s"']/\w""", text)


def test_the_readme_shows_the_headline_of_the_kept_results():
    summary = summary_of("arms")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert markdown_table(headline_rows(summary, README_MEASURES)) in readme
    assert markdown_table(equal_rows(summary, arm="code_a1")) in readme


def test_the_headline_has_five_seeds_and_no_arm_is_left_out():
    summary = summary_of("arms")
    assert {"code_a1", "golden_1", "golden_2", "golden_full", "self_play", "frozen"} <= summary.runs.keys()
    assert all(sorted(runs) == [0, 1, 2, 3, 4] for runs in summary.runs.values())
    assert table_sections(summary)


@pytest.mark.parametrize("sparse", ["golden_1", "golden_2"])
def test_the_readmes_findings_are_those_of_the_kept_results(sparse):
    summary, readme = summary_of("arms"), (ROOT / "README.md").read_text(encoding="utf-8")
    accuracy, fooled = (
        {row[0]: float(row[1].split()[0]) for row in equal_rows(summary, arm="code_a1", measure=measure)[1:]}
        for measure in ("pass@1", "fooled")
    )
    share = (accuracy["code_a1"] - accuracy[sparse]) / (accuracy["golden_full"] - accuracy[sparse])
    assert f"{share:.0%}".replace("%", " %") in readme
    assert fooled["code_a1"] < fooled[sparse] / 3
    assert f"{fooled[sparse]:.3f}" in readme
    for arm in ("code_a1", "frozen"):
        assert f"{summary.interval(arm, 'distinct').mean:.2f}" in readme
