"""Does our judge say what EvalPlus's own judge says? Both are asked about the same programs, inputs and answers.

The programs are made from the references of HumanEval+ and MBPP+ (see ``samples``), about a third of them
meant to be right. Each is judged by ``evalplus_judge`` in the sandbox, and by ``untrusted_check`` of the package
``evalplus`` with the defaults of its command line (``fast_check``). Every difference is listed with what both said and
why.

EvalPlus's check runs a program in a forked process that is not confined. It is asked only about references and small
changes of them, which mean no harm; the agreement cannot be had otherwise. Never give it a model's programs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from code_a1_recipe.cli import status
from code_a1_recipe.errors import InputError, OutageError
from code_a1_recipe.evaluation.benchmarks.evalplus import read_problem, read_problem_rows
from code_a1_recipe.files import file_fingerprint
from code_a1_recipe.jobs.jsonl_store import JsonlStore, Row
from code_a1_recipe.jobs.progress import Progress

from ..arguments import positive
from .opinions import Opinions
from .report import write_report
from .samples import Plan, make_samples, plan_samples

_PACKAGES = {"evalplus": "pip install evalplus==0.3.1", "cosmic-ray": "pip install cosmic-ray"}
_EPILOG = """\
example:
  python -m examples.evalplus_agreement evalplus.parquet --samples 200

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
        InputError: the file or the output cannot be used, or a package is missing.
        OutageError: programs met an outage of the sandbox.
    """
    versions = _versions()
    rows = read_problem_rows(options.file)
    for index, row in enumerate(rows[:1]):
        read_problem(row, where=f"{options.file}: row {index}")
    settings = {"file": file_fingerprint(options.file), "seed": options.seed, **versions}
    with JsonlStore(options.output / "samples.jsonl", settings=settings) as store, status.resumable(store.path):
        _judge(rows, store, options)
        store.sort()
        judged = [row for row in store.rows() if row["item"] < options.samples]
    table = write_report(options.output, judged, settings=settings)
    sys.stdout.write(f"{table}\n{options.output}: agreement.md, differences.jsonl\n")
    if num_outages := sum(bool(row["outage"]) for row in judged):
        raise OutageError(f"{num_outages} programs met an outage of the sandbox; repeat the command to judge them")


def _judge(rows: Sequence[Row], store: JsonlStore, options: argparse.Namespace) -> None:
    left: dict[int, list[Plan]] = {}
    plans = plan_samples(len(rows), options.samples, seed=options.seed)
    for plan in plans:
        if plan.item not in store:
            left.setdefault(plan.problem, []).append(plan)
    num_done = len(plans) - sum(map(len, left.values()))
    with Progress("compare", total=len(plans), done=num_done, unit="program") as progress:
        try:
            for row in _judge_all(rows, left, num_workers=options.workers):
                store.append(row)
                progress.advance()
        except BrokenProcessPool as error:
            raise OutageError(f"a process that asks both judges has died: {error}") from error


def _judge_all(rows: Sequence[Row], left: dict[int, list[Plan]], *, num_workers: int) -> Iterator[Row]:
    """Problems in processes of their own, which fork again for EvalPlus: no daemons, therefore, and no threads."""
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    pool = ProcessPoolExecutor(num_workers, mp_context=context, initializer=_begin, initargs=(stop,))
    running: set[Future[list[Row]]] = set()
    try:
        running = {pool.submit(_judge_problem, rows[problem], plans) for problem, plans in left.items()}
        for future in as_completed(list(running)):
            running.discard(future)
            yield from future.result()
    except KeyboardInterrupt:
        stop.set()  # after the program they are at; what they have is kept
        for future in running:
            future.cancel()
        for future in as_completed(future for future in running if not future.cancelled()):
            yield from future.result()
        raise
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


_opinions: Opinions | None = None
_stop: Any = None


def _begin(stop: Any) -> None:
    """Begin a process; Ctrl-C is handled by its parent."""
    global _opinions, _stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _opinions, _stop = Opinions(), stop


def _judge_problem(row: Row, plans: Sequence[Plan]) -> list[Row]:
    """The rows of one problem's programs; fewer when told to stop, none of a program that met an outage."""
    assert _opinions is not None
    problem = read_problem(row)
    found: list[Row] = []
    for sample in make_samples(plans, problem):
        if _stop.is_set():
            break
        found.append(_opinions.row(problem, sample))
    return found


def _versions() -> dict[str, str]:
    found = {}
    for name, hint in _PACKAGES.items():
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
    parser.add_argument("--seed", type=int, default=0, help="of the choice of programs (default 0)")
    parser.add_argument(
        "--output", type=Path, default=Path("evalplus_agreement"), metavar="DIR", help="default: evalplus_agreement"
    )
    parser.add_argument("--workers", type=positive, default=os.cpu_count() or 1, help="default: one a core")
    return parser


if __name__ == "__main__":
    sys.exit(main())
