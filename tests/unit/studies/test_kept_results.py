"""The figures in the documentation are those of the results that are kept beside it, never typed by hand."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from code_a1_recipe.stats.estimates import paired_difference
from studies.experiment.results import load_results
from studies.experiment.summary import ExperimentSummary, equal_table, headline_table, time_table

ROOT = Path(__file__).resolve().parents[3]
STUDIES = ROOT / "studies"
MICRO, REAL = STUDIES / "micro_results", STUDIES / "real_results"
FP, FN, FN_NEW = "reward_false_positive_rate", "false_negative_rate", "false_negative_rate_without_replay"
REJECTED, DETECTED, DISTINCT = "false_rejection_rate", "detection_rate", "distinct_call_rate"
TABLES = {
    "arms": ("pass@1", "greedy", FP, FN, FN_NEW, "valid", "kill_per_case", DETECTED),
    "ablations": ("pass@1", "valid", "kill_per_case", DETECTED, DISTINCT, FN, FN_NEW, REJECTED, "forgotten"),
    "wide": ("pass@1", "greedy", FP, FN),
    "adversary": ("pass@1", "greedy", FP, FN, FN_NEW, DISTINCT),
    "usable": ("pass@1", "greedy", FP, FN, FN_NEW, REJECTED, DISTINCT),
}
"""Columns of each grid's table in the README."""
ALPHAS = ("alpha_0", "code_a1", "alpha_05", "alpha_075", "alpha_1")


def words_of(path):
    """A document without its line breaks."""
    return " ".join(path.read_text(encoding="utf-8").split())


def summary_of(folder):
    return ExperimentSummary(load_results(folder / "results.json").runs)


class Figures:
    """Figures of a grid as the documentation writes them."""

    def __init__(self, grid, step=40):
        self.summary = summary_of(MICRO / grid)
        self.leader, self.step = self.summary.leader, step

    def mean(self, measure, arm=None, step=None):
        return self.summary.interval(arm or self.leader, measure, step=self.step if step is None else step).value

    def share(self, measure, arm=None):
        return f"{self.mean(measure, arm):.0%}".replace("%", " %")

    def lead(self, other, measure="pass@1", *, arm=None, step=None):
        return self.summary.lead(arm or self.leader, other, measure, step=step or self.step).plus_minus(signed=True)

    def at_equal_seconds(self, other):
        return next(row[5] for row in equal_table(self.summary, "pass@1").rows if row[1] == other).removesuffix(" *")

    def step_seconds(self, arm):
        table = time_table(self.summary)
        return next(row[table.columns.index("step")] for row in table.rows if row[0] == arm)


def findings_of_arms():
    arms = Figures("arms")
    return [
        f"({arms.lead('golden_full')}; it was behind at step 20, {arms.lead('golden_full', step=20)})",
        f"by {arms.lead('golden_1')} and {arms.lead('golden_2')} in pass@1",
        f"{arms.share(FP)} are undeserved, of theirs {arms.share(FP, 'golden_1')} and {arms.share(FP, 'golden_2')}.",
        f"({arms.at_equal_seconds('golden_1')}, {arms.at_equal_seconds('golden_2')}): a step of `code_a1`",
        f"two asserts reach {arms.mean('pass@1', 'golden_2', 160):.3f} after 160 steps",
        f"go from {arms.mean(DETECTED, step=0):.3f} to {arms.mean(DETECTED):.3f}, `frozen` stays at "
        f"{arms.mean(DETECTED, 'frozen'):.3f}",
        f"over `self_play` is not significant ({arms.lead('self_play', DETECTED)})",
        f"difference is {arms.lead('frozen')} at step 40 and {arms.lead('frozen', step=20)} at step 20",
        f"({arms.step_seconds('code_a1')} seconds, `frozen` {arms.step_seconds('frozen')})",
        f"{arms.share(DISTINCT)} of their pairs are different calls, in `frozen` {arms.share(DISTINCT, 'frozen')}",
    ]


def findings_of_ablations():
    of = Figures("ablations")

    def over_alpha(measure):
        *first, last = [f"{of.mean(measure, arm):.2f}" for arm in ALPHAS]
        return f"{', '.join(first)} and {last}"

    return [
        f"From 0 to 1 validity is {over_alpha('valid')}, kills per valid case {over_alpha('kill_per_case')}.",
        f"`false_negative_rate` {of.mean(FN):.2f} at 0.25, {of.mean(FN, 'alpha_1'):.2f} at 1",
        f"without ({of.lead('no_book', 'forgotten')}",
        f"fewer incorrect programs go unbroken ({of.lead('no_book', FN)})",
        f"({of.lead('black_box', 'kill_per_case')} for seeing the program, not settled)",
        f"({of.mean('pass@1', 'pooled'):.3f}, `code_a1` {of.lead('pooled')} beside it)",
    ]


def findings_of_the_adversary():
    aims, mended, wide = Figures("adversary"), Figures("usable", step=80), Figures("wide")
    repair = Figures("repair").summary
    repaired = paired_difference(repair.values("repair", "pass@1", 24), repair.values("code_a1", "pass@1", 26))
    return [
        f"{wide.lead('frozen', arm='scripted')} in pass@1 after 40 steps over a Test LLM that never learns",
        f"{aims.lead('frozen')} in pass@1. At equal seconds it is behind, {aims.at_equal_seconds('frozen')}",
        f"24 % ({aims.lead('frozen', FN)})",
        f"19 % to 9 % ({aims.lead('frozen', FP)})",
        f"**: {mended.lead('frozen')} in pass@1 after 80 steps over `frozen`",
        f"{mended.lead('frozen_usable')} over `frozen_usable`",
        f"brings nothing ({mended.lead('frozen', arm='frozen_usable')})",
        f"hidden tests** ({mended.lead('golden_full')}), which are {mended.lead('frozen', arm='golden_full')} ahead",
        f"nothing is seen ({mended.lead('frozen', step=40)})",
        f"16 % to 6 % ({mended.lead('frozen', FP)})",
        f"at equal seconds it is behind `frozen` ({mended.at_equal_seconds('frozen')})",
        f"{repaired.plus_minus(signed=True)} in pass@1 over `code_a1`",
    ]


@pytest.mark.parametrize("grid", TABLES)
def test_the_readme_shows_the_table_of_the_kept_results(grid):
    table = headline_table(summary_of(MICRO / grid), TABLES[grid])
    assert replace(table, title="", note="").markdown() in (MICRO / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("finding", [*findings_of_arms(), *findings_of_ablations(), *findings_of_the_adversary()])
def test_the_readmes_findings_are_those_of_the_kept_results(finding):
    assert finding in words_of(MICRO / "README.md")


def test_the_real_models_page_shows_the_table_of_its_results():
    measures = ("pass@1", "loaded_rate", "expected_correct_rate", "broke_candidate_rate", "false_negative_rate")
    table = replace(headline_table(summary_of(REAL), measures), title="", note="")
    assert table.markdown() in (REAL / "README.md").read_text(encoding="utf-8")


def test_the_main_readme_gives_the_kept_differences_from_the_frozen_adversary():
    words = words_of(ROOT / "README.md")
    assert Figures("arms").lead("frozen") in words
    assert Figures("usable", step=80).lead("frozen") in words


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*_results/**/results.json")), ids=lambda path: path.parent.name)
def test_the_results_name_no_folder_of_the_machine_that_made_them(path):
    assert not re.search(r"""[=\s"']/\w""", path.read_text(encoding="utf-8"))


def test_what_the_readme_calls_settled_is_and_what_it_does_not_is_not():
    arms, ablations = summary_of(MICRO / "arms"), summary_of(MICRO / "ablations")
    settled = [arms.lead("code_a1", sparse, "pass@1", step=40) for sparse in ("golden_1", "golden_2")]
    settled += [arms.lead("code_a1", "frozen", measure, step=40) for measure in ("valid", "kill_per_case", DETECTED)]
    settled += [ablations.lead("code_a1", arm, "valid", step=40) for arm in ("alpha_1", "topvar_3", "all_groups")]
    open_questions = [arms.lead("code_a1", arm, "pass@1", step=40) for arm in ("golden_full", "frozen")]
    open_questions.append(ablations.lead("code_a1", "black_box", "kill_per_case", step=40))
    assert all(difference.excludes_zero for difference in settled)
    assert not any(difference.excludes_zero for difference in open_questions)
