"""The report of a cross-play: tables, signs of forgetting and cycling, all figures as JSON, and the picture."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl

from code_a1_recipe.analysis.figures import STYLE
from code_a1_recipe.files import replacing, write_whole
from code_a1_recipe.stats.estimates import Estimate
from code_a1_recipe.stats.tables import Table, table_of

from .figure import draw_crossplay
from .matches import NO_USABLE_PROGRAM, PLAYED, CrossPlay, Result, Tally
from .ratings import Change, PlayerRating, RatingTable, changes, rate, turns, win_rates

ROLES = {"code": "Code LLM", "test": "Test LLM"}
_BY_CHANCE = 0.025
"""Chance that a 95 % interval lies below zero where nothing changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All figures of a cross-play."""

    steps: tuple[str, ...]
    win: str
    rates: list[list[Estimate]]
    """``[code step][test step]``: win rates of the Code LLM."""
    ratings: RatingTable
    changes: Mapping[str, list[Change]]
    """By role: every pair of its steps against every step of the other role."""
    tally: Tally

    @classmethod
    def of(cls, tally: Tally, *, steps: Sequence[str], win: str) -> "Findings":
        """All figures from the counts."""
        lost = (tally.played - tally.wins).transpose(1, 0, 2)
        return cls(
            steps=tuple(steps),
            win=win,
            rates=win_rates(tally.wins, tally.played),
            ratings=rate(tally.wins, tally.played),
            changes={"code": changes(tally.wins, tally.played), "test": changes(lost, tally.played.transpose(1, 0, 2))},
            tally=tally,
        )

    @property
    def largest_misfit(self) -> float:
        """Greatest distance between a win rate and what the ratings expect, in [0, 1]; NaN without a match."""
        pairs = zip(self.rates, self.ratings.expected, strict=True)
        gaps = [abs(cell.value - expected) for row, line in pairs for cell, expected in zip(row, line, strict=True)]
        return max((gap for gap in gaps if not math.isnan(gap)), default=math.nan)


def win_table(findings: Findings) -> Table:
    """Rows are Code LLM steps, columns Test LLM steps."""
    rows = []
    for i, step in enumerate(findings.steps):
        cells = {f"Test LLM step {other}": findings.rates[i][j].text() for j, other in enumerate(findings.steps)}
        counts: Counter[Result] = sum(findings.tally.results[i], Counter())
        unusable = sum(counts[result] for result in NO_USABLE_PROGRAM) / max(1, counts.total())
        rows.append({"Code LLM": f"step {step}", **cells, "left out": f"{unusable:.1%}"})
    everything: Counter[Result] = sum((cell for row in findings.tally.results for cell in row), Counter())
    num_played = sum(everything[result] for result in PLAYED)
    breaks = {
        "broke": "some valid case breaks the program, whatever the case expects: the reference's return value decides",
        "detected": "some case that is valid and right as written breaks the program",
    }[findings.win]
    note = (
        "Matches that the Code LLM wins, in percent, with 95 % bootstrap intervals over questions (a rate of 0 or 100 "
        "has none: there is nothing to draw again). A match is one program and one suite that the Test LLM wrote for "
        f"it; the Test LLM wins where {breaks}. Nobody draws, and a suite without a valid case loses "
        f"({everything[Result.NO_VALID_CASE]} of {num_played} matches). Left out: programs that are none or do not "
        "load, since any suite breaks them (last column: their share); programs too long for the Test LLM's prompt "
        f"({everything[Result.TEST_PROMPT_TOO_LONG]} matches); outages of the sandbox ({everything[Result.OUTAGE]})."
    )
    return table_of("Cross-play: win rate of the Code LLM", rows, note=note)


def rating_table(findings: Findings) -> Table:
    """A row for each player."""
    first = findings.steps[0]
    rows = []
    for role, players in (("code", findings.ratings.code), ("test", findings.ratings.test)):
        for step, player in zip(findings.steps, players, strict=True):
            gained = "" if step == first else _points(player.gained, signed=True)
            rows.append({"player": f"{ROLES[role]} step {step}", "rating": _points(player.rating), "gained": gained})
    misfit = findings.largest_misfit
    note = (
        "Bradley-Terry maximum likelihood on Elo's scale, 95 % bootstrap intervals over questions. Only a Code LLM and "
        f"a Test LLM meet, so only differences mean something: Code LLM step {first} is set to 1000. Gained: points "
        "above the same LLM's first step. One number a player cannot tell who is strong against whom: between the win "
        f"rates and what the ratings expect lie {misfit * 100:.1f} percentage points at most."
    )
    return table_of("Ratings", rows, note=note)


def _points(estimate: Estimate, *, signed: bool = False) -> str:
    if math.isnan(estimate.value):
        return "–"
    sign = "+" if signed else ""
    value, low, high = (f"{number:{sign}z.0f}" for number in (estimate.value, estimate.low, estimate.high))
    return value if estimate.low == estimate.high else f"{value} [{low}, {high}]"


def signs(findings: Findings) -> list[str]:
    """Lines on forgetting and cycling, for each policy."""
    lines = []
    for role, other in (("code", "test"), ("test", "code")):
        found = findings.changes[role]
        lines.append(_newest_line(findings, role, other))
        drops = [change for change in found if change.is_drop]
        lines.append(
            f"  forgetting: {len(drops)} of {len(found)} comparisons of a step with an earlier one, against the same "
            f"{ROLES[other]}, are significantly worse; about {len(found) * _BY_CHANCE:.1f} would be by chance alone"
        )
        lines += [f"    {_change_text(findings, other, change)}" for change in drops]
        cycles = turns(found)
        lines.append(f"  cycling: {len(cycles)} such drops are followed by a significant rise")
        lines += [
            f"    {_change_text(findings, other, drop)}; then {_change_text(findings, other, rise)}"
            for drop, rise in cycles
        ]
    return lines


def _newest_line(findings: Findings, role: str, other: str) -> str:
    """Does the newest step do at least as well as all earlier ones, against the opponents of earlier steps?"""
    last = len(findings.steps) - 1
    found = [one for one in findings.changes[role] if one.later == last and one.opponent < last]
    if not found:
        return f"{ROLES[role]}: one step alone, nothing to compare"
    num_kept = sum(change.difference.value >= 0 for change in found)
    num_dropped = sum(change.is_drop for change in found)
    answer = "yes" if num_kept == len(found) else "no" if num_dropped else "not quite"
    return (
        f"{ROLES[role]}: does step {findings.steps[last]} do at least as well as every earlier step, against every "
        f"earlier {ROLES[other]}? {answer}: in {num_kept} of {len(found)} comparisons; significantly worse in "
        f"{num_dropped}"
    )


def _change_text(findings: Findings, other: str, change: Change) -> str:
    earlier, later, opponent = (findings.steps[n] for n in (change.earlier, change.later, change.opponent))
    difference = change.difference.text(signed=True)
    return f"step {earlier} -> {later} against {ROLES[other]} step {opponent}: {difference} points"


def as_json(findings: Findings, cross: CrossPlay) -> dict[str, Any]:
    """Everything, for programs; rates are shares, ratings Elo points. NaN is null."""
    steps = findings.steps

    def shown(estimate: Estimate) -> dict[str, float | None]:
        values = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
        return {name: None if math.isnan(value) else value for name, value in values.items()}

    def player(step: str, one: PlayerRating) -> dict[str, Any]:
        return {"step": int(step), "rating": shown(one.rating), "gained": shown(one.gained)}

    def changed(role: str, one: Change) -> dict[str, Any]:
        names = {"earlier": one.earlier, "later": one.later, "opponent": one.opponent}
        marks = {"is_drop": one.is_drop, "is_rise": one.is_rise}
        return {"role": role, **{name: int(steps[n]) for name, n in names.items()}, **shown(one.difference), **marks}

    cells = [
        {
            "code_step": int(steps[i]),
            "test_step": int(steps[j]),
            "wins": int(findings.tally.wins[i, j].sum()),
            "matches": int(findings.tally.played[i, j].sum()),
            "win_rate": shown(findings.rates[i][j]),
            "results": {result.value: count for result, count in sorted(findings.tally.results[i][j].items())},
        }
        for i in range(len(steps))
        for j in range(len(steps))
    ]
    return {
        "run": str(cross.pair.records.folder),
        "win": findings.win,
        "questions": len(cross.questions),
        "candidates": cross.options.candidates,
        "suites": cross.options.suites,
        "cells": cells,
        "ratings": {
            role: [player(step, one) for step, one in zip(steps, players, strict=True)]
            for role, players in (("code", findings.ratings.code), ("test", findings.ratings.test))
        },
        "changes": [changed(role, one) for role, found in findings.changes.items() for one in found],
        "cycles": [
            [changed(role, drop), changed(role, rise)]
            for role, found in findings.changes.items()
            for drop, rise in turns(found)
        ],
    }


def write_results(findings: Findings, cross: CrossPlay) -> str:
    """All files of the output folder; returns the text for the terminal."""
    folder = cross.options.output
    wins, ratings = win_table(findings), rating_table(findings)
    wins.write(folder, "table")
    ratings.write(folder, "ratings")
    text = json.dumps(as_json(findings, cross), indent=2, allow_nan=False) + "\n"
    write_whole(folder / "crossplay.json", text)
    with mpl.rc_context(STYLE), replacing(folder / "crossplay.png") as partial:
        draw_crossplay(findings.steps, findings.rates, findings.ratings).savefig(partial, format="png")
    lines = "\n".join(signs(findings))
    files = (
        f"picture {folder / 'crossplay.png'}; tables beside it in table.* and ratings.*, all figures in crossplay.json"
    )
    return f"{wins.markdown()}\n{ratings.markdown()}\n{lines}\n\n{files}"
