"""The figures in the documentation are those of the results that are kept beside it, never typed by hand."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from code_a1_recipe.stats.estimates import paired_difference
from examples.experiment.results import load_results
from examples.experiment.summary import (
    ExperimentSummary,
    equal_table,
    headline_table,
    tables_of,
    tables_text,
    time_table,
)

ROOT = Path(__file__).resolve().parents[4]
KEPT = ROOT / "examples" / "micro_results"
REAL = ROOT / "examples" / "real_results"
FOLDERS = sorted(path.parent for path in (ROOT / "examples").glob("*_results/**/results.json"))
REAL_MEASURES = ("pass@1", "loaded_rate", "expected_correct_rate", "broke_candidate_rate", "false_negative_rate")
FP, FN, FN_NEW = "reward_false_positive_rate", "false_negative_rate", "false_negative_rate_without_replay"
REJECTED, DETECTED, DISTINCT = "false_rejection_rate", "detection_rate", "distinct_call_rate"
README_MEASURES = ("pass@1", "greedy", FP, FN, FN_NEW, "valid", "kill_per_case", DETECTED)
STEPS = 40


def summary_of(name):
    return kept_in(KEPT / name)


def kept_in(folder):
    return ExperimentSummary(load_results(folder / "results.json").runs)


def cells_of(table):
    """Its Markdown without title and note."""
    return replace(table, title="", note="").markdown()


def words_of(path):
    """A document without its line breaks."""
    return " ".join(path.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_tables_are_those_of_the_results(folder):
    assert (folder / "tables.md").read_text(encoding="utf-8") == tables_text(kept_in(folder))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_results_name_no_folder_of_the_machine_that_made_them(folder):
    text = (folder / "results.json").read_text(encoding="utf-8")
    assert not re.search(r"""[=\s"']/\w""", text)


def test_the_readme_shows_what_the_wide_world_has_to_offer():
    summary = summary_of("wide")
    text = (KEPT / "README.md").read_text(encoding="utf-8")
    assert cells_of(headline_table(summary, ("pass@1", "greedy", FP, FN))) in text
    assert "+0.074 ± 0.022 in pass@1" in text
    assert "| frozen minus |" in (KEPT / "wide" / "tables.md").read_text(encoding="utf-8")
    assert "-0.074 ± 0.022 *" in (KEPT / "wide" / "tables.md").read_text(encoding="utf-8")


def test_the_readme_shows_what_a_test_llm_that_aims_brings():
    summary, text = summary_of("adversary"), words_of(KEPT / "README.md")
    assert cells_of(headline_table(summary, ("pass@1", "greedy", FP, FN, FN_NEW, DISTINCT))) in (
        KEPT / "README.md"
    ).read_text(encoding="utf-8")

    def lead(measure):
        return paired_difference(*(summary.values(arm, measure, STEPS) for arm in ("adversary", "frozen")))

    (row,) = [row for row in equal_table(summary, "pass@1").rows if row[1] == "frozen"]
    assert (row[3], row[5]) == ("+0.015 ± 0.038", "-0.108 ± 0.029 *")
    for figure in ("+0.015 ± 0.038 in pass@1", "-0.108 ± 0.029", f"({lead(FN).plus_minus(signed=True)})"):
        assert figure in text
    assert f"19 % to 9 % ({lead(FP).plus_minus(signed=True)})" in text
    rejected = {arm: summary.interval(arm, REJECTED).plus_minus() for arm in ("adversary", "frozen")}
    assert f"{rejected['adversary']} of them go without full reward, `frozen` {rejected['frozen']}" in text
    detected = (KEPT / "adversary" / "detection.md").read_text(encoding="utf-8")
    for figure in ("0.377 ± 0.053", "0.118 ± 0.040", "3.354 ± 0.999", "0.984 ± 0.058"):
        assert figure in detected
        assert figure in text


def test_the_readme_shows_what_it_brings_where_correct_programs_keep_their_reward():
    summary, raw = summary_of("usable"), (KEPT / "README.md").read_text(encoding="utf-8")
    text = " ".join(raw.split())
    assert cells_of(headline_table(summary, ("pass@1", "greedy", FP, FN, FN_NEW, REJECTED, DISTINCT))) in raw

    def lead(measure, step=80, *, arms=("usable", "frozen")):
        values = (summary.values(arm, measure, step) for arm in arms)
        return paired_difference(*values).plus_minus(signed=True)

    (row,) = [row for row in equal_table(summary, "pass@1").rows if row[1] == "frozen"]
    assert row[3] == f"{lead('pass@1')} *" == "+0.049 ± 0.032 *"
    for figure in (f"**: {lead('pass@1')} in pass@1", f"seen ({lead('pass@1', 40)})", f"(greedy {lead('greedy')})"):
        assert figure in text
    assert f"{lead('pass@1', arms=('usable', 'frozen_usable'))} over `frozen_usable`" in text
    assert f"brings nothing ({lead('pass@1', arms=('frozen_usable', 'frozen'))})" in text
    assert f"hidden tests** ({lead('pass@1', arms=('usable', 'golden_full'))})" in text
    assert f"which are {lead('pass@1', arms=('golden_full', 'frozen'))} ahead" in text
    means = {arm: summary.interval(arm, "pass@1", step=80).value for arm in ("usable", "frozen", "golden_full")}
    way = (means["usable"] - means["frozen"]) / (means["golden_full"] - means["frozen"])
    assert f"{way:.0%} of that way".replace("%", " %") in text
    assert f"at equal seconds it is behind `frozen` ({row[5].removesuffix(' *')})" in text
    assert f"16 % to 6 % ({lead(FP)})" in text
    assert f"(`frozen` {summary.interval('frozen', REJECTED).plus_minus()})" in text
    leads = [
        summary.values("usable", "pass@1", 80)[seed] > summary.values("frozen", "pass@1", 80)[seed]
        for seed in range(25, 30)
    ]
    assert all(leads)
    detected = (KEPT / "usable" / "detection.md").read_text(encoding="utf-8")
    for figure in ("0.532 ± 0.054", "0.115 ± 0.031", "4.770 ± 1.226", "1.012 ± 0.063"):
        assert figure in detected
        assert figure in text
    assert f"bring the Code LLM {lead('pass@1')} after 80 steps" in words_of(ROOT / "README.md")


def test_the_readme_shows_the_headline_of_the_kept_results():
    summary = summary_of("arms")
    text = (KEPT / "README.md").read_text(encoding="utf-8")
    assert cells_of(headline_table(summary, README_MEASURES)) in text
    assert cells_of(equal_table(summary, "pass@1")) in text


def test_the_real_models_page_shows_the_headline_of_its_results():
    text = (REAL / "README.md").read_text(encoding="utf-8")
    assert cells_of(headline_table(kept_in(REAL), REAL_MEASURES)) in text


def test_the_headline_has_five_seeds_and_no_arm_is_left_out():
    summary = summary_of("arms")
    assert {"code_a1", "golden_1", "golden_2", "golden_full", "self_play", "frozen"} <= summary.runs.keys()
    assert all(sorted(runs) == [0, 1, 2, 3, 4] for runs in summary.runs.values())
    assert all(table.rows for table in tables_of(summary))


class Figures:
    """Figures of the kept arms as the documentation writes them."""

    def __init__(self, summary):
        self.summary = summary

    def mean(self, measure, arm="code_a1", step=STEPS):
        return self.summary.interval(arm, measure, step=step).value

    def share(self, measure, arm="code_a1"):
        return percent(self.mean(measure, arm))

    def lead(self, other, measure="pass@1", *, step=STEPS):
        values = (self.summary.values(arm, measure, step) for arm in ("code_a1", other))
        return paired_difference(*values).plus_minus(signed=True)

    def seconds_lead(self, other):
        return next(row[5] for row in equal_table(self.summary, "pass@1").rows if row[1] == other)

    def way(self, sparse):
        sparse, own, full = (self.mean("pass@1", arm) for arm in (sparse, "code_a1", "golden_full"))
        return percent((own - sparse) / (full - sparse))

    def step_seconds(self, arm):
        table = time_table(self.summary)
        return next(row[table.columns.index("step")] for row in table.rows if row[0] == arm)


def percent(value):
    return f"{value:.0%}".replace("%", " %")


def findings_of(summary):
    of = Figures(summary)
    return [
        f"level with complete hidden tests** ({of.lead('golden_full')}; it was behind at step 20, "
        f"{of.lead('golden_full', step=20)})",
        f"by {of.lead('golden_1')} and {of.lead('golden_2')} in pass@1, {of.way('golden_1')} and {of.way('golden_2')} "
        "of the way",
        f"Of its full rewards {of.share(FP)} are undeserved, of theirs {of.share(FP, 'golden_1')} and "
        f"{of.share(FP, 'golden_2')}.",
        f"({of.seconds_lead('golden_1')}, {of.seconds_lead('golden_2')}): a step of `code_a1`",
        f"two asserts reach {of.mean('pass@1', 'golden_2', 160):.3f} after 160 steps",
        f"go from {of.mean(DETECTED, step=0):.3f} to {of.mean(DETECTED):.3f}, `frozen` stays at "
        f"{of.mean(DETECTED, 'frozen'):.3f}",
        f"of the base Code LLM from {of.mean('kill_others', step=0):.3f} to {of.mean('kill_others'):.3f}, on mutants "
        f"from {of.mean('kill_first', step=0):.3f} to {of.mean('kill_first'):.3f} (that gain is not settled)",
        f"over `self_play` is not significant ({of.lead('self_play', DETECTED)})",
        f"the difference is {of.lead('frozen')} at step 40 and {of.lead('frozen', step=20)} at step 20",
        f"({of.step_seconds('code_a1')} seconds, `frozen` {of.step_seconds('frozen')})",
        f"leave {of.share(FN_NEW, 'frozen')} of the incorrect programs unbroken, {of.share(FN, 'frozen')} "
        f"with replays; those of the trained one {of.share(FN_NEW)} and {of.share(FN)} "
        f"({of.lead('frozen', FN)} more with replays, not settled)",
        f"{of.share(DISTINCT)} of their pairs are different calls, in `frozen` {of.share(DISTINCT, 'frozen')}",
    ]


@pytest.mark.parametrize("finding", findings_of(summary_of("arms")))
def test_the_readmes_findings_are_those_of_the_kept_results(finding):
    assert finding in words_of(KEPT / "README.md")


def test_the_main_readme_gives_the_kept_difference_from_the_frozen_adversary():
    assert Figures(summary_of("arms")).lead("frozen") in words_of(ROOT / "README.md")


def test_what_the_readme_calls_settled_is_and_what_it_does_not_is_not():
    summary = summary_of("arms")

    def lead(other, measure="pass@1", step=STEPS):
        return paired_difference(*(summary.values(arm, measure, step) for arm in ("code_a1", other)))

    assert not lead("golden_full").excludes_zero
    assert lead("golden_full", step=20).high < 0
    assert all(lead(sparse).low > 0 and lead(sparse, FP).high < 0 for sparse in ("golden_1", "golden_2"))
    assert not any(
        row[5].endswith("*") for row in equal_table(summary, "pass@1").rows if row[1] in ("golden_1", "golden_2")
    )
    assert all(lead("frozen", measure).low > 0 for measure in ("valid", "kill_per_case", DETECTED))
    assert not lead("self_play", DETECTED).excludes_zero
    before_after = {
        name: paired_difference(*(summary.values("code_a1", name, step) for step in (STEPS, 0)))
        for name in ("valid", "kill_per_case", DETECTED, "kill_first", "kill_others")
    }
    assert {name for name, gain in before_after.items() if gain.low > 0} == before_after.keys() - {"kill_first"}
    assert not lead("frozen").excludes_zero
    assert not lead("frozen", FN).excludes_zero


# ------------------------------ ablations ------------------------------

ABLATION_MEASURES = (*("pass@1", "valid", "kill_per_case", DETECTED, DISTINCT), *(FN, FN_NEW, REJECTED, "forgotten"))
ALPHAS = ("alpha_0", "code_a1", "alpha_05", "alpha_075", "alpha_1")


def ablation_findings_of(summary):
    of = Figures(summary)

    def over_alpha(measure):
        *first, last = [f"{of.mean(measure, arm):.2f}" for arm in ALPHAS]
        return f"{', '.join(first)} and {last}"

    pass_rates = [of.mean("pass@1", arm) for arm in ALPHAS]
    valid, kills = ({arm: f"{of.mean(name, arm):.3f}" for arm in summary.runs} for name in ("valid", "kill_per_case"))
    seconds = {arm: of.step_seconds(arm) for arm in summary.runs}
    without_validity = summary.values("alpha_0", "valid", STEPS).values()
    return [
        f"From 0 to 1 validity is {over_alpha('valid')}, kills per valid case {over_alpha('kill_per_case')}.",
        f"from {min(without_validity):.2f} to {max(without_validity):.2f} by seed",
        f"`detection_rate` {of.mean(DETECTED):.3f}, at 0.5 {of.mean(DETECTED, 'alpha_05'):.3f}",
        f"pass@1 lies between {min(pass_rates):.3f} and {max(pass_rates):.3f}",
        f"`false_negative_rate` {of.mean(FN):.2f} at 0.25, {of.mean(FN, 'alpha_1'):.2f} at 1",
        f"{percent(of.mean('forgotten'))} of the questions are forgotten with it, "
        f"{percent(of.mean('forgotten', 'no_book'))} without ({of.lead('no_book', 'forgotten')}",
        f"fewer incorrect programs go unbroken ({of.lead('no_book', FN)})",
        f"`false_rejection_rate` {of.mean(REJECTED):.3f}, without the book {of.mean(REJECTED, 'no_book'):.3f}",
        f"kills {of.mean('kill_per_case', 'black_box'):.3f} per case ({of.lead('black_box', 'kill_per_case')} for "
        "seeing the program, not settled)",
        f"{of.share(DISTINCT, 'black_box')} of its pairs of asserts differ, {of.share(DISTINCT)} of those",
        f"{valid['topvar_3']} and {valid['all_groups']} instead of {valid['code_a1']}",
        f"{kills['topvar_3']} and {kills['all_groups']} instead of {kills['code_a1']}",
        f"{seconds['topvar_3']} and {seconds['all_groups']} seconds instead of {seconds['code_a1']}",
        f"({of.mean('pass@1', 'pooled'):.3f}, `code_a1` {of.lead('pooled')} beside it)",
        f"`false_negative_rate_without_replay` {of.mean(FN_NEW, 'pooled'):.2f} instead of {of.mean(FN_NEW):.2f}",
    ]


@pytest.mark.parametrize("finding", ablation_findings_of(summary_of("ablations")))
def test_what_is_said_of_the_ablations_is_in_their_results(finding):
    assert finding in words_of(KEPT / "README.md")


def test_the_ablations_are_whole_and_their_table_is_shown():
    summary = summary_of("ablations")
    assert {*ALPHAS, "no_book", "black_box", "topvar_3", "all_groups", "pooled"} == summary.runs.keys()
    assert all(sorted(runs) == [0, 1, 2] for runs in summary.runs.values())
    text = (KEPT / "README.md").read_text(encoding="utf-8")
    assert cells_of(headline_table(summary, ABLATION_MEASURES)) in text


def test_what_is_called_settled_of_the_ablations_is():
    summary = summary_of("ablations")

    def lead(other, measure):
        return paired_difference(*(summary.values(arm, measure, STEPS) for arm in ("code_a1", other)))

    for larger in ("alpha_05", "alpha_075", "alpha_1", "topvar_3", "all_groups"):
        assert lead(larger, "valid").high < 0
        assert lead(larger, "kill_per_case").low > 0
    assert lead("alpha_1", FN).high < 0
    assert lead("no_book", FN).high < 0
    assert lead("no_book", "forgotten").low > 0, "against the book"
    assert not lead("no_book", REJECTED).excludes_zero
    assert not lead("black_box", "kill_per_case").excludes_zero
    assert lead("black_box", DISTINCT).high < 0
    assert lead("pooled", "pass@1").high < 0
    assert not lead("pooled", FN_NEW).excludes_zero
    assert not any(lead(arm, "pass@1").excludes_zero for arm in summary.runs if arm not in ("code_a1", "pooled"))


def test_the_readme_shows_what_repair_turns_bring():
    summary, words = summary_of("repair"), words_of(KEPT / "README.md")
    after = summary.values("repair", "pass@1", 24)
    lead = paired_difference(after=after, before=summary.values("code_a1", "pass@1", 26))
    assert f"{lead.plus_minus(signed=True)} in pass@1 over `code_a1`" in words
    for arm, step in (("repair", 24), ("code_a1", 26)):
        assert f"| {summary.interval(arm, 'pass@1', step=step).plus_minus()} | " in words
