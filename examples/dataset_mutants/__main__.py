"""``python -m examples.dataset_mutants``: how many small mistakes in its references do a data set's tests notice?"""

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.cli import status
from code_a1_recipe.cli.declared import with_options
from code_a1_recipe.data.reader import read_questions
from code_a1_recipe.files import file_fingerprint
from code_a1_recipe.jobs import options as shared
from code_a1_recipe.jobs.confinement import Confinement, JudgeAll, judge_confined
from code_a1_recipe.jobs.jsonl_store import JsonlStore, Row
from code_a1_recipe.jobs.outputs import Report
from code_a1_recipe.test_quality.mutants import OPERATORS, MutantSet, cosmic_ray_version, family_of, make_mutants
from code_a1_recipe.test_quality.mutation_kill import STAGES, kill_mutants
from examples.arguments import run_study, study_app
from sandbox import SandboxUnavailableError

app = study_app()


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantsOptions:
    """Of the command."""

    file: Annotated[Path, typer.Argument(help="questions: parquet, JSON or JSON lines")]
    output: shared.ResumedFile
    adapter: shared.Adapter = "auto"
    max_mutants: Annotated[int | None, typer.Option(min=1, help="a question", show_default="all")] = None
    seed: shared.ChoiceSeed = 0
    limit: shared.Limit = None
    cache: Annotated[Path | None, typer.Option(metavar="FOLDER", help="keep mutants there for other runs")] = None
    workers: shared.Workers = shared.NUM_CORES
    tier: shared.Tier = 0
    allow_missing: shared.AllowMissing = ()

    def described(self) -> dict[str, Any]:
        """What decides the rows.

        Raises:
            InputError: the file is not there, or cosmic-ray is not installed.
        """
        return {
            "file": file_fingerprint(self.file),
            "adapter": self.adapter,
            "tests": "own",
            "max_mutants": self.max_mutants,
            "seed": self.seed,
            "tier": self.tier,
            "cosmic_ray": cosmic_ray_version(),
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of a command line; see ``code_a1_recipe.cli.status``."""
    return run_study(app, arguments, name="examples.dataset_mutants")


@app.command()
@with_options
def dataset_mutants(options: MutantsOptions) -> None:
    """How many small mistakes in its references do a file's own tests notice?

    Each line of the output is a question with its survivors and the lines they change.

    Examples:

    - `python -m examples.dataset_mutants mbpp.jsonl --output killed.jsonl`
    - `python -m examples.dataset_mutants train.parquet --max-mutants 20 --output try.jsonl`
    """
    status.resume(options.output, kill_all, options)


def kill_all(options: MutantsOptions) -> Report:
    """Judge the mutants of all questions; reports on all rows of the output.

    Raises:
        InputError, SandboxConfigError: something cannot be used.
        OutageError, SandboxUnavailableError: the sandbox is down; what was judged is kept.
    """
    questions = list(read_questions(options.file, adapter=options.adapter).questions)[: options.limit]
    started = time.monotonic()

    def work(one: tuple[int, Question], judge_all: JudgeAll) -> Row:
        item, question = one
        found = make_mutants(
            question.reference, cache_dir=options.cache, max_mutants=options.max_mutants, seed=options.seed
        )
        return row_of(item, question, found, judge_all)

    with JsonlStore(options.output, settings=options.described()) as store:
        done_before = store.done
        judge_confined(
            store,
            list(enumerate(questions)),
            work,
            key=lambda one: one[0],
            confinement=Confinement(tier=options.tier, allow_missing=options.allow_missing),
            num_workers=options.workers,
            what="kill",
        )
        store.sort()
        rows = list(store.rows())
    num_judged = sum(row.get("num_mutants", 0) for row in rows if row["item"] not in done_before)
    text = report(rows, num_judged=num_judged, seconds=time.monotonic() - started)
    num_outages = sum(bool(row["outage"]) for row in rows)
    return Report(
        text=f"{options.output}: {text.rstrip()}",
        failure=f"{num_outages} questions met an outage; repeat the command" if num_outages else "",
    )


def row_of(item: int, question: Question, found: MutantSet, judge_all: JudgeAll) -> Row:
    """One line of the output; ``outage`` says why there is no result."""
    started = time.monotonic()
    row: Row = {"item": item, "question": question.id, "num_tests": len(question.tests), "outage": None}
    try:
        result = kill_mutants(question, [mutant.source for mutant in found.mutants], question.tests, judge_all)
    except SandboxUnavailableError as error:
        return row | {"outage": str(error)}
    survivors = [found.mutants[place] for place in result.survivors]
    return row | {
        "num_right_tests": result.num_right_tests,
        "num_mutants": len(found.mutants),
        "killed": len(found.mutants) - len(survivors),
        "killed_by_stage": result.killed_by_stage,
        "mutants_by_operator": Counter(family_of(mutant.operator) for mutant in found.mutants),
        "dropped": found.dropped,
        "survivors": [
            {"operator": one.operator, "occurrence": one.occurrence, "line": one.line, "diff": one.diff}
            for one in survivors
        ],
        "seconds": round(time.monotonic() - started, 3),
    }


def report(rows: Sequence[Mapping[str, Any]], *, num_judged: int = 0, seconds: float = 0.0) -> str:
    """The summary of all rows as text; this run judged ``num_judged`` mutants in ``seconds``."""
    judged = [row for row in rows if not row["outage"]]
    tested = [row for row in judged if row["num_right_tests"] and row["num_mutants"]]
    untested = [row for row in judged if row["num_mutants"] and not row["num_right_tests"]]
    total, killed = sum(row["num_mutants"] for row in tested), sum(row["killed"] for row in tested)
    dropped = sum((Counter[str](row["dropped"]) for row in judged), Counter[str]())
    by_stage = [sum(stage) for stage in zip(*(row["killed_by_stage"] for row in tested), strict=True)]
    lines = [
        f"{len(judged)} questions, {len(tested)} with mutants and right tests, "
        f"{len(untested)} with mutants but no right test; {len(rows) - len(judged)} outages",
        f"mutants {total}, killed {killed}{_percent(killed, total)}, survivors {total - killed}",
    ]
    if num_judged:
        rate = num_judged / max(seconds, 1e-9)
        lines.append(f"this run judged {num_judged} mutants in {seconds:.1f} s, {rate:.1f} mutants/s")
    if tested:
        rates = [row["killed"] / row["num_mutants"] for row in tested]
        names = [f"within {stage} tests" if stage else "by the rest" for stage in STAGES]
        stages = ", ".join(f"{name} {count}" for name, count in zip(names, by_stage, strict=True))
        lines.append(f"killed {stages}; mean over questions {100 * sum(rates) / len(rates):.2f} %")
    lines.append(f"dropped: {', '.join(f'{name} {count}' for name, count in sorted(dropped.items())) or 'none'}")
    lines += _operator_table(tested)
    return "\n".join(lines) + "\n"


def _operator_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    mutants = sum((Counter[str](row["mutants_by_operator"]) for row in rows), Counter[str]())
    survivors = Counter(family_of(one["operator"]) for row in rows for one in row["survivors"])
    width = max(map(len, OPERATORS))
    lines = [f"  {'operator':{width}}  mutants  survivors"] if mutants else []
    for name, count in mutants.most_common():
        lines.append(f"  {name:{width}}  {count:7d}  {survivors[name]:9d}{_percent(survivors[name], count)}")
    return lines


def _percent(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.2f} %)" if whole else ""


if __name__ == "__main__":
    sys.exit(main())
