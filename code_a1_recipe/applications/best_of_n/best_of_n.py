"""Best of N: programs of a Code LLM, tests of a Test LLM, and what each rule makes of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sandbox import Runner, SandboxUnavailableError

from ...algorithm.question import Question
from ...evaluation.benchmarks.tasks import CodeVerdict, Grading
from ...files import fingerprint
from ...stats.estimates import bootstrap, paired_bootstrap
from ...stats.tables import Table, table_of
from .answer_matrix import answer_matrix
from .selection_rules import ORACLE, RULES, best_programs, expected_passes

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What was sampled for one question."""

    question: Question
    programs: tuple[str, ...]
    """N; responses without a program are not among them."""
    suites: tuple[tuple[str, ...], ...]
    """M suites of asserts, as written."""
    num_responses: int
    """N and those without a program."""

    @property
    def key(self) -> str:
        """Changes with the question, its tests, the programs and the suites: a choice is never that of others."""
        content = repr((self.question, self.programs, self.suites, self.num_responses))
        return f"{self.question.id} {fingerprint(content)}"


def judged_row(pool: Pool, runner: Runner, grading: Grading | None, *, num_threads: int) -> Row:
    """One question: the choice of every rule, and where it has tests, the chance that the choice is right.

    A response without a program counts as a wrong choice of ``random``; no rule chooses it, as any user could.

    Returns:
        ``chosen`` maps a rule to the source of its choice (the first of those with the highest score), ``expected``
        maps a rule to a value in [0, 1]; with ``outage`` both are null.
    """
    head: Row = {
        "key": pool.key,
        "question": pool.question.id,
        "num_responses": pool.num_responses,
        "num_programs": len(pool.programs),
        "outage": "",
    }
    if not pool.programs:
        nothing = dict.fromkeys((*RULES, ORACLE), 0.0)
        return {**head, "num_tests": 0, "chosen": {}, "expected": nothing if grading else None}
    try:
        passes, answers = answer_matrix(
            pool.programs,
            pool.suites,
            runner,
            entry_points=pool.question.entry_points,
            prelude=pool.question.prelude,
            num_threads=num_threads,
        )
        expected = _expected(pool, passes, answers, grading) if grading else None
    except SandboxUnavailableError as error:
        return {**head, "num_tests": 0, "chosen": None, "expected": None, "outage": f"{type(error).__name__}: {error}"}
    chosen = {name: pool.programs[int(best_programs(rule.scores(passes, answers))[0])] for name, rule in RULES.items()}
    return {**head, "num_tests": passes.shape[1], "chosen": chosen, "expected": expected}


def _expected(pool: Pool, passes: Any, answers: Any, grading: Grading) -> dict[str, float]:
    distinct = list(dict.fromkeys(pool.programs))
    verdicts: dict[str, CodeVerdict] = {}
    for program, verdict in zip(distinct, grading.grade(distinct), strict=True):
        if isinstance(verdict, SandboxUnavailableError):
            raise verdict
        verdicts[program] = verdict
    is_right = np.array([verdicts[program].passed for program in pool.programs], dtype=np.bool_)
    found = expected_passes(passes, answers, is_right)
    return {**found, "random": found["random"] * len(pool.programs) / pool.num_responses}


def rules_table(rows: Sequence[Mapping[str, Any]], *, title: str) -> Table | None:
    """pass@1 of every rule's choice with intervals, and its difference from random choice; None without tests."""
    graded = {str(row["question"]): row["expected"] for row in rows if row["expected"]}
    if not graded:
        return None
    random = {question: expected["random"] for question, expected in graded.items()}
    cells = []
    for name in (*RULES, ORACLE):
        values = {question: expected[name] for question, expected in graded.items()}
        difference = paired_bootstrap(values, random)
        cells.append(
            {
                "rule": name,
                "right": bootstrap(list(values.values())).text(),
                "minus random": "" if name == "random" else difference.text(signed=True),
                "settled": "" if name == "random" else "yes" if difference.excludes_zero else "no",
                "what it is": RULES[name].source
                if name in RULES
                else "any of the N programs is right: the upper bound",
            }
        )
    num_outages = sum(bool(row["outage"]) for row in rows)
    note = f"Percent of {len(graded)} questions; 95 % bootstrap intervals over questions, ties as expected values."
    if num_outages:
        note += f" {num_outages} questions were lost to an outage and are not among them."
    return table_of(title, cells, note=note)
