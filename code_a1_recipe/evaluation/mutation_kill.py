"""Mutation testing of a data set: how many small mistakes in its references do its own tests notice?

For every question, mutants of the reference (operators of cosmic-ray, see evaluation/mutants.py) go through the judge
as candidates. One is killed when a right test of the question fails on it: another value, an exception, a time-out,
or a program that does not load. Most die on the first tests, so survivors alone meet the rest: 8 tests, up to 64, all.
What survives is either equivalent to the reference or shows which tests are missing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from sandbox import CandidateVerdict, SandboxConfigError, SandboxUnavailableError
from sandbox.confine import OPTIONAL_FEATURES
from sandbox.judge_processes import DEFAULT_QUESTIONS_PER_WORKER, JudgeProcesses, WorkerSettings
from sandbox.tiers import LOCAL_TIERS

from ..adapters import ADAPTERS
from ..argument_types import positive
from ..questions import Question, QuestionError, read_questions
from ..score_file import Row, ScoreFile, ScoreFileError
from .mutants import OPERATORS, MutantSet, make_mutants
from .test_metrics import JudgeAll, request_of, verdicts_of

DONE, BROKE_OFF, REFUSED, INTERRUPTED = 0, 1, 2, 130

STAGES = (8, 64, None)
"""Tests of a question that its mutants have met after each stage; None is all."""
MAX_OUTAGES_IN_A_ROW = 8
"""Then the sandbox is taken to be down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillResult:
    """What a question's tests made of the mutants of its reference."""

    survivors: tuple[int, ...]
    """Places in the list of mutants."""
    killed_by_stage: tuple[int, ...]
    """[stages] mutants killed in each."""
    num_right_tests: int
    """Tests met whose claim equals the reference's answer; without any, the mutants were not tested."""


def kill_mutants(question: Question, sources: Sequence[str], tests: Sequence[str], judge_all: JudgeAll) -> KillResult:
    """Judge mutants of a question's reference on ``tests``, in stages.

    Raises:
        SandboxUnavailableError: something could not be judged.
    """
    alive = list(range(len(sources)))
    killed: list[int] = []
    num_right = 0
    start = 0
    for stage in STAGES:
        batch = tests[start:stage]
        start += len(batch)
        if not batch or not alive:
            killed.append(0)
            continue
        requests = [request_of(question, sources[place], [batch]) for place in alive]
        verdicts = verdicts_of(judge_all, requests)
        num_right += sum(case.claimed_right for suite in verdicts[0].suites for case in suite.cases)
        still = [place for place, verdict in zip(alive, verdicts, strict=True) if not _is_killed(verdict)]
        killed.append(len(alive) - len(still))
        alive = still
    return KillResult(survivors=tuple(alive), killed_by_stage=tuple(killed), num_right_tests=num_right)


def _is_killed(verdict: CandidateVerdict) -> bool:
    """A right test fails; where the mutant does not load, every test does."""
    return any(case.claimed_right and case.outcome.failed for suite in verdict.suites for case in suite.cases)


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
        "mutants_by_operator": Counter(mutant.family for mutant in found.mutants),
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
    dropped = _sum(row["dropped"] for row in judged)
    by_stage = [sum(stage) for stage in zip(*(row["killed_by_stage"] for row in tested), strict=True)]
    lines = [
        f"{len(judged)} questions, {len(tested)} with mutants and right tests, "
        f"{len(untested)} with mutants but no right test; {len(rows) - len(judged)} outages",
        f"mutants {total}, killed {killed}{_share(killed, total)}, survivors {total - killed}",
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
    mutants = _sum(row["mutants_by_operator"] for row in rows)
    survivors = Counter(one["operator"].partition("_")[0] for row in rows for one in row["survivors"])
    width = max(map(len, OPERATORS))
    lines = [f"  {'operator':{width}}  mutants  survivors"] if mutants else []
    for name, count in mutants.most_common():
        lines.append(f"  {name:{width}}  {count:7d}  {survivors[name]:9d}{_share(survivors[name], count)}")
    return lines


def _share(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.2f} %)" if whole else ""


def _sum(counts: Any) -> Counter[str]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return total


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 outages are left or the sandbox is down, 2 refused before any work, 130 interrupted."""
    options = _parser().parse_args(arguments)
    try:
        questions = list(read_questions(options.file, adapter=options.adapter).questions)[: options.limit]
        output = ScoreFile(options.output, settings=_described(options))
    except (QuestionError, ScoreFileError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: mutants need the package cosmic-ray ({error}): pip install cosmic-ray\n")
        return REFUSED
    started = time.monotonic()
    with output:
        try:
            num_judged = _run(questions, output, options)
        except SandboxConfigError as error:
            sys.stderr.write(f"error: {error}\n")
            return REFUSED
        except SandboxUnavailableError as error:
            sys.stderr.write(
                f"error: the sandbox is down: {error}. What was judged is in {output.path}; try `python -m sandbox "
                "check`, then repeat the command to go on\n"
            )
            return BROKE_OFF
        except OSError as error:
            sys.stderr.write(f"error: {output.path}: {error}. Make room, then repeat the command to go on\n")
            return BROKE_OFF
        except KeyboardInterrupt:
            num_done = len(output.done)
            sys.stderr.write(f"\ninterrupted; repeat the command to go on ({num_done} of {len(questions)} done)\n")
            return INTERRUPTED
        rows = list(output.rows())
    sys.stdout.write(f"{output.path}: {report(rows, num_judged=num_judged, seconds=time.monotonic() - started)}")
    return BROKE_OFF if any(row["outage"] for row in rows) else DONE


def _run(questions: Sequence[Question], output: ScoreFile, options: argparse.Namespace) -> int:
    """Judge what is not there yet; the number of mutants judged."""
    num_mutants = 0
    done = output.done
    left = [(item, question) for item, question in enumerate(questions) if item not in done]
    runner = {"tier": options.tier, "allow_missing": tuple(options.allow_missing)}
    if left:
        with (
            JudgeProcesses(options.workers, settings=WorkerSettings(runner=runner)) as judges,
            tqdm(total=len(questions), initial=len(done), unit="question", desc="kill", file=sys.stderr) as bar,
        ):
            num_killed = num_outages = in_a_row = 0
            for row in _rows(left, judges, options):
                output.append(row)
                in_a_row = in_a_row + 1 if row["outage"] else 0
                num_outages += bool(row["outage"])
                if in_a_row == MAX_OUTAGES_IN_A_ROW:
                    raise SandboxUnavailableError(f"{in_a_row} questions in a row were not judged: {row['outage']}")
                num_mutants += row.get("num_mutants", 0)
                num_killed += row.get("killed", 0)
                bar.set_postfix(mutants=num_mutants, killed=num_killed, outages=num_outages, refresh=False)
                bar.update()
    output.sort()
    return num_mutants


def _rows(left: Sequence[tuple[int, Question]], judges: JudgeProcesses, options: argparse.Namespace) -> Iterator[Row]:
    """A row for each question, as they get done; enough of them at once to keep every judge busy."""

    def work(item: int, question: Question) -> Row:
        found = make_mutants(
            question.reference, cache_dir=options.cache, max_mutants=options.max_mutants, seed=options.seed
        )
        return row_of(item, question, found, judges.judge_all)

    num_threads = judges.num_workers * DEFAULT_QUESTIONS_PER_WORKER
    waiting = iter(left)
    running: set[Future[Row]] = set()
    threads = ThreadPoolExecutor(num_threads, thread_name_prefix="kill")
    try:
        while True:
            running |= {threads.submit(work, *one) for one in islice(waiting, 2 * num_threads - len(running))}
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()
    finally:
        # Not waited for: whoever breaks off closes the judges next, which ends what still runs.
        threads.shutdown(wait=False, cancel_futures=True)


def _described(options: argparse.Namespace) -> dict[str, Any]:
    """What decides the rows."""
    digest = hashlib.sha256(options.file.read_bytes()).hexdigest()[:16]
    return {
        "file": f"{options.file.name} {digest}",
        "adapter": options.adapter,
        "tests": options.tests,
        "max_mutants": options.max_mutants,
        "seed": options.seed,
        "tier": options.tier,
        "cosmic_ray": version("cosmic-ray"),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="code-a1 eval mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="examples:\n"
        "  code-a1 eval mutants mbpp.jsonl --output killed.jsonl\n"
        "  code-a1 eval mutants train.parquet --max-mutants 20 --output try.jsonl\n"
        "\n"
        "Each line of the output is a question with its survivors and the lines they change. A run that was stopped\n"
        "goes on where it was when the command is repeated.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="questions: parquet, JSON or JSON lines")
    parser.add_argument("--output", type=Path, required=True, help="JSON lines; taken up again where they stop")
    parser.add_argument("--adapter", default="auto", choices=["auto", *ADAPTERS], help="how to read the columns")
    parser.add_argument("--tests", default="own", choices=["own"], help="which tests kill: the question's own")
    parser.add_argument("--max-mutants", type=positive, metavar="N", help="at most N a question (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of mutants where there are more")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N questions")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep mutants there for other runs")
    parser.add_argument(
        "--workers", type=positive, default=os.cpu_count() or 1, help="judge processes (default: one a core)"
    )
    parser.add_argument("--tier", type=int, default=0, choices=LOCAL_TIERS, help="how programs are confined")
    parser.add_argument(
        "--allow-missing", nargs="+", default=[], choices=OPTIONAL_FEATURES, help="protections this kernel lacks"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
