"""The slices of the experiment and their order.

A slice is a pair of arms with one seed on one commit. Slices come in a fixed order, so any machine goes on where the
results file ends: first the pairs of ``FIRST`` for three seeds, then those of ``LATER``, then ``FIRST`` for further
seeds.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .rows import RunRows

FIRST = ("adversary", "frozen")
LATER = ("code_a1", "golden")
NUM_FIRST = 3
"""Seeds of ``FIRST`` before ``LATER`` begins."""


class Slice(NamedTuple):
    """A pair of arms with one seed."""

    seed: int
    arms: tuple[str, str]


def planned(seeds: Sequence[int]) -> list[Slice]:
    """List all slices in their order."""
    first, rest = seeds[:NUM_FIRST], seeds[NUM_FIRST:]
    return [*(Slice(s, FIRST) for s in first), *(Slice(s, LATER) for s in first), *(Slice(s, FIRST) for s in rest)]


def pair_of(runs: Sequence[RunRows], wanted: Slice) -> tuple[RunRows, RunRows] | None:
    """Find complete runs of both arms of a slice on the same commit; the newest pair if there are several."""
    complete = [run for run in runs if run.is_complete and run.started.seed == wanted.seed]
    one, other = ([run for run in complete if run.started.arm == arm] for arm in wanted.arms)
    pairs = [(a, b) for a in one for b in other if a.started.commit == b.started.commit]
    return pairs[-1] if pairs else None


def next_slice(runs: Sequence[RunRows], seeds: Sequence[int]) -> Slice | None:
    """Return the first slice that lacks a complete pair, or None if there is none."""
    return next((wanted for wanted in planned(seeds) if pair_of(runs, wanted) is None), None)


def missing_arms(runs: Sequence[RunRows], wanted: Slice, commit: str) -> list[str]:
    """List the arms of a slice that have no complete run on ``commit``."""
    done = {
        run.started.arm
        for run in runs
        if run.is_complete and run.started.seed == wanted.seed and run.started.commit == commit
    }
    return [arm for arm in wanted.arms if arm not in done]
