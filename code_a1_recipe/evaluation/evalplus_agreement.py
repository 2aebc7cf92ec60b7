"""Does our judge say what EvalPlus's own judge says? Both are asked about the same programs, inputs and answers.

The programs are made from the references of HumanEval+ and MBPP+ (see ``evalplus_samples``), about a third of them
meant to be right. Each is judged by ``evalplus_judge`` in the sandbox, and by ``untrusted_check`` of the package
``evalplus`` with the defaults of its command line (``fast_check``). Every difference is listed with what both said and
why.

EvalPlus's check runs a program in a forked process that is not confined. It is asked only about references and small
changes of them, which mean no harm; the agreement cannot be had otherwise. Never give it a model's programs.
"""

from __future__ import annotations

import argparse
import hashlib
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

from tqdm import tqdm

from sandbox import SandboxConfigError, SandboxUnavailableError

from ..argument_types import positive
from ..score_file import Row, ScoreFile, ScoreFileError
from .evalplus_opinions import Opinions
from .evalplus_report import write_report
from .evalplus_samples import Plan, make_samples, plan_samples
from .evalplus_tests import EvalPlusFormatError, read_problem, read_problem_rows

DONE, BROKE_OFF, REFUSED, INTERRUPTED = 0, 1, 2, 130
_PACKAGES = {"evalplus": "pip install evalplus==0.3.1", "cosmic-ray": "pip install cosmic-ray"}
_EPILOG = """\
example:
  code-a1 eval agreement evalplus.parquet --samples 200

It writes to --output:
  agreement.md      the counts, and every difference with its reason
  differences.jsonl the programs that the two judges disagree about
  samples.jsonl     one line a program; the same command goes on from there, also with more --samples"""


class AgreementError(ValueError):
    """The command cannot begin. Says why, and the cure."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 compared, 1 broke off or outages are left, 2 refused before any work, 130 interrupted."""
    options = _parser().parse_args(arguments)
    try:
        versions = _versions()
        rows = read_problem_rows(options.file)
        for index, row in enumerate(rows[:1]):
            read_problem(row, where=f"{options.file}: row {index}")
        settings = {"file": _fingerprint(options.file), "seed": options.seed, **versions}
        output = ScoreFile(options.output / "samples.jsonl", settings=settings)
    except (AgreementError, EvalPlusFormatError, ScoreFileError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    with output:
        status = _compare(rows, output, options)
        if status != DONE:
            return status
        output.sort()
        found = [row for row in output.rows() if row["item"] < options.samples]
        table = write_report(options.output, found, settings=settings)
    sys.stdout.write(f"{table}\n{options.output}: agreement.md, differences.jsonl\n")
    return BROKE_OFF if any(row["outage"] for row in found) else DONE


def _compare(rows: Sequence[Row], output: ScoreFile, options: argparse.Namespace) -> int:
    """Judge what is not there yet."""
    plans = plan_samples(len(rows), options.samples, seed=options.seed)
    left: dict[int, list[Plan]] = {}
    for plan in plans:
        if plan.item not in output.done:
            left.setdefault(plan.problem, []).append(plan)
    num_done = len(plans) - sum(map(len, left.values()))
    bar = tqdm(total=len(plans), initial=num_done, unit="program", desc="compare", file=sys.stderr)
    going_on = f"Repeat the command to go on: {output.path} keeps what is done"
    try:
        with bar:
            for row in _judge_all(rows, left, num_workers=options.workers):
                output.append(row)
                bar.update()
    except KeyboardInterrupt:
        sys.stderr.write(f"\ninterrupted; {bar.n} of {len(plans)} done. {going_on}\n")
        return INTERRUPTED
    except (SandboxUnavailableError, BrokenProcessPool, OSError) as error:
        sys.stderr.write(f"error: {type(error).__name__}: {error}. {going_on}\n")
        return BROKE_OFF
    except (SandboxConfigError, EvalPlusFormatError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    return DONE


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
    """Of a process: Ctrl-C is the parent's business."""
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
    for name, cure in _PACKAGES.items():
        try:
            found[name] = version(name)
        except PackageNotFoundError as error:
            raise AgreementError(f"the comparison needs the package {name}, which is not installed: {cure}") from error
    return {**found, "python": ".".join(map(str, sys.version_info[:3]))}


def _fingerprint(path: Path) -> str:
    with path.open("rb") as handle:
        return f"{path.name} {hashlib.file_digest(handle, 'sha256').hexdigest()[:16]}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="code-a1 eval agreement",
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
