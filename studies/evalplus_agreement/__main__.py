"""Does our judge say what EvalPlus's own judge says? Both are asked about the same programs, inputs and answers.

The programs are a model's (``--programs``, as ``code-a1 eval code --export-evalplus`` writes them), or made from the
references of HumanEval+ and MBPP+ (see ``samples``), about a third of them meant to be right. Each is judged by
``evalplus_judge``, and by ``untrusted_check`` of the package ``evalplus`` with the defaults of its command line
(``fast_check``). Every difference is listed with what both said and why.

EvalPlus's judge does not confine programs. So here it runs inside the sandbox itself, of tier 1, since it wants a
folder for files.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from code_a1_recipe.cli import status
from code_a1_recipe.errors import InputError, OutageError
from code_a1_recipe.evaluation.benchmarks.evalplus import EvalPlusProblem, read_problems
from code_a1_recipe.evaluation.scoring.evalplus_sanitizer import INSTALL
from code_a1_recipe.files import file_fingerprint
from code_a1_recipe.jobs.jsonl_store import JsonlStore, Row
from code_a1_recipe.jobs.judge_loop import judge_into
from sandbox import LocalRunner

from ..arguments import positive
from .opinions import Opinions
from .report import write_report
from .samples import make_samples, plan_samples, read_programs

_PACKAGES = {"evalplus": INSTALL, "cosmic-ray": "pip install cosmic-ray"}
_EPILOG = """\
example:
  python -m examples.evalplus_agreement evalplus.parquet --samples 200
  python -m examples.evalplus_agreement evalplus.parquet --programs samples.jsonl --output agreement

It writes to --output:
  agreement.md      the counts, and every difference with its reason
  differences.jsonl the programs that the two judges disagree about
  samples.jsonl     one line a program; the same command goes on from there, also with more --samples"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 compared, 1 broke off or outages are left, 2 refused before any work, 130 interrupted."""
    options = _parser().parse_args(arguments)
    return status.run(lambda: compare(options))


def compare(options: argparse.Namespace) -> None:
    """Judge what is not there yet, write the report and print its table.

    Raises:
        InputError: a file or the output cannot be used, or a package is missing.
        SandboxConfigError: programs cannot be confined here with a folder of their own.
        OutageError: programs met an outage of the sandbox.
    """
    settings: dict[str, Any] = {"file": file_fingerprint(options.file), **_versions(options)}
    problems = [problem for _, problem in read_problems(options.file)]
    wanted: dict[str, list[Any]] = {}
    if options.programs:
        settings["programs"] = file_fingerprint(options.programs)
        wanted |= read_programs(options.programs, {problem.id for problem in problems})
    else:
        settings["seed"] = options.seed
        for plan in plan_samples(len(problems), options.samples, seed=options.seed):
            wanted.setdefault(problems[plan.problem].id, []).append(plan)
    items = {one.item for group in wanted.values() for one in group}
    with JsonlStore(options.output / "samples.jsonl", settings=settings) as store, status.resumable(store.path):
        left = {name: [one for one in group if one.item not in store] for name, group in wanted.items()}
        _judge({problem: left[problem.id] for problem in problems if left.get(problem.id)}, store, options, len(items))
        store.sort()
        judged = [row for row in store.rows() if row["item"] in items]
    table = write_report(options.output, judged, settings=settings)
    sys.stdout.write(f"{table}\n{options.output}: agreement.md, differences.jsonl\n")
    if num_outages := sum(bool(row["outage"]) for row in judged):
        raise OutageError(f"{num_outages} programs met an outage of the sandbox; repeat the command to judge them")


def _judge(
    left: dict[EvalPlusProblem, list[Any]], store: JsonlStore, options: argparse.Namespace, num_samples: int
) -> None:
    """Ask both judges about what is left: programs of a file, or plans of programs by problem."""
    workers = options.workers
    with LocalRunner(num_workers=workers) as ours, Opinions.start_theirs(workers) as theirs:
        opinions = Opinions(ours=ours, theirs=theirs)

        def rows_of(one: tuple[EvalPlusProblem, list[Any]]) -> list[Row]:
            problem, group = one
            samples = group if options.programs else make_samples(group, problem)
            return [opinions.row(problem, sample) for sample in samples]

        judge_into(
            store,
            list(left.items()),
            rows_of,
            num_threads=workers,
            total=max(num_samples, len(store)),
            what="compare",
            unit="program",
        )


def _versions(options: argparse.Namespace) -> dict[str, str]:
    found = {}
    for name, hint in _PACKAGES.items():
        if options.programs and name == "cosmic-ray":
            continue
        try:
            found[name] = version(name)
        except PackageNotFoundError as error:
            raise InputError(f"the comparison needs the package {name}, which is not installed: {hint}") from error
    return {**found, "python": ".".join(map(str, sys.version_info[:3]))}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.evalplus_agreement",
        description=(__doc__ or "").replace("``", ""),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="HumanEval+ and MBPP+ as one parquet, as Code-A1 has it"
    )
    parser.add_argument("--samples", type=positive, default=2000, help="programs to judge (default 2000)")
    parser.add_argument(
        "--programs", type=Path, metavar="FILE.jsonl", help="a model's, in EvalPlus's format; in place of --samples"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the choice of programs (default 0)")
    parser.add_argument(
        "--output", type=Path, default=Path("evalplus_agreement"), metavar="DIR", help="default: evalplus_agreement"
    )
    parser.add_argument("--workers", type=positive, default=os.cpu_count() or 1, help="default: one a core")
    return parser


if __name__ == "__main__":
    sys.exit(main())
