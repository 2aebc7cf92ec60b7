"""``code-a1 score``: rollouts through extraction, judge and rewards, to JSON lines. Resumable; loads no torch."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from reward_fns.registry import ADVERSARIAL_READINGS
from sandbox import Limits, SandboxConfigError, SandboxUnavailableError
from sandbox.confine import OPTIONAL_FEATURES
from sandbox.judge_processes import DEFAULT_QUESTIONS_PER_WORKER, JudgeProcesses, WorkerSettings
from sandbox.tiers import LOCAL_TIERS

from .adapters import ADAPTERS
from .argument_types import assignment, column, positive
from .questions import QuestionError
from .score_file import ScoreFile, ScoreFileError
from .score_input import FLAT_COLUMNS, ROLES, Item, ScoreInputError, question_table, read_items, rollout_files
from .score_rows import Scorer, is_outage, score_items
from .score_run import RecordedRun, find_run
from .score_summary import Summary
from .settings import RewardSettings, SettingsError

DONE, OUTAGES_LEFT, REFUSED, INTERRUPTED = 0, 1, 2, 130


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSettings:
    """What decides a reward, beside the rows themselves."""

    rewards: RewardSettings
    num_cases: int
    limits: Limits
    tier: int
    allow_missing: tuple[str, ...]
    """Protections to do without; not told in the settings file, since it changes no reward."""
    seed: int

    def described(self) -> dict[str, Any]:
        """Plain values for the settings file, in the words of the command line."""
        return {
            "alpha": self.rewards.alpha,
            "adversarial": self.rewards.adversarial,
            "nonprintable_penalty": self.rewards.nonprintable_penalty,
            "cases": self.num_cases,
            "limits": asdict(self.limits),
            "tier": self.tier,
            "seed": self.seed,
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 scored, 1 outages are left or the sandbox is down, 2 refused before any work, 130 interrupted."""
    options = _parser().parse_args(arguments)
    try:
        run = find_run(options.inputs)
        settings = settings_of(options, run)
        files = rollout_files(options.inputs)
        question_files = list(options.questions) or (run.question_files if run else [])
        table = question_table(question_files, **_question_options(options, run))
        items = read_items(files, table, role=options.role)
        described = {**settings.described(), "role": options.role, "inputs": _fingerprints(files)}
        output = ScoreFile(options.output, settings={**described, "questions": _fingerprints(question_files)})
    except (ScoreInputError, ScoreFileError, QuestionError, SettingsError, SandboxConfigError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    with output:
        try:
            _score(items, output, settings, num_workers=options.workers)
        except SandboxConfigError as error:
            sys.stderr.write(f"error: {error}\n")
            return REFUSED
        except SandboxUnavailableError as error:
            sys.stderr.write(
                f"error: the sandbox is down: {error}. What was judged is in {output.path}; try `python -m sandbox "
                "check`, then repeat the command to go on\n"
            )
            return OUTAGES_LEFT
        except OSError as error:
            sys.stderr.write(f"error: {output.path}: {error}. Make room, then repeat the command to go on\n")
            return OUTAGES_LEFT
        except KeyboardInterrupt:
            sys.stderr.write(f"\ninterrupted; repeat the command to go on ({len(output.done)} of {len(items)} done)\n")
            return INTERRUPTED
        summary = Summary.of(output.rows())
    sys.stdout.write(f"{output.path}: {summary.text()}")
    return OUTAGES_LEFT if summary.num_outages else DONE


def settings_of(options: argparse.Namespace, run: RecordedRun | None) -> ScoreSettings:
    """The command line over the recorded run's own settings over the recipe's defaults.

    Raises:
        SettingsError, SandboxConfigError: a value is out of its range.
    """
    rewards = run.rewards if run else RewardSettings(alpha=0.5, adversarial="release", nonprintable_penalty=False)
    if rewards.code_tests != "suites":
        raise SettingsError(
            f"the run trained with rewards.code_tests={rewards.code_tests}, whose rewards are made of tests beyond a "
            "row's own suites; score rewards programs on their own suites. Copy the rollouts out of the run folder and "
            "name the questions by --questions to score them so"
        )
    if run and run.share_suites:
        raise SettingsError(
            "the run trained with episode.share_suites=true, where identical programs have the suites of the first of "
            "them; score rewards programs on their own suites. Copy the rollouts out of the run folder and name the "
            "questions by --questions to score them so"
        )
    stated = {name: getattr(options, name) for name in ("alpha", "adversarial", "nonprintable_penalty")}
    limits = asdict(run.limits) if run else {}
    return ScoreSettings(
        rewards=replace(rewards, **{name: value for name, value in stated.items() if value is not None}),
        num_cases=options.cases or (run.num_cases if run else 8),
        limits=Limits.from_mapping({**limits, **dict(options.limits)}, where="--limits"),
        tier=options.tier if options.tier is not None else (run.tier if run else 0),
        allow_missing=tuple(options.allow_missing) or (run.allow_missing if run else ()),
        seed=run.seed if run else 0,
    )


def _score(items: Sequence[Item], output: ScoreFile, settings: ScoreSettings, *, num_workers: int) -> None:
    """Judge what is not there yet, then put the rows in order."""
    done = output.done
    left = [item for item in items if item.index not in done]
    if output.num_repaired:
        tqdm.write("the last row had been cut off; its item is scored again", file=sys.stderr)
    if left:
        scorer = Scorer(rewards=settings.rewards, num_cases=settings.num_cases)
        with (
            _judges(settings, num_workers=num_workers) as judges,
            tqdm(total=len(items), initial=len(done), unit="item", desc="score", file=sys.stderr) as bar,
            contextlib.closing(
                score_items(
                    left,
                    lambda piece: scorer.score(piece, judges.judge_all),
                    num_threads=num_workers * DEFAULT_QUESTIONS_PER_WORKER,
                )
            ) as rows,
        ):
            num_outages = 0
            for row in rows:
                output.append(row)
                num_outages += is_outage(row)
                bar.set_postfix(outages=num_outages, refresh=False)
                bar.update()
    output.sort()


def _judges(settings: ScoreSettings, *, num_workers: int) -> JudgeProcesses:
    runner = {"limits": settings.limits, "tier": settings.tier, "allow_missing": settings.allow_missing}
    return JudgeProcesses(num_workers, settings=WorkerSettings(seed=settings.seed, runner=runner))


def _question_options(options: argparse.Namespace, run: RecordedRun | None) -> dict[str, Any]:
    if options.questions or run is None:
        return {"adapter": options.adapter, "columns": dict(options.columns) or None}
    return {"adapter": run.adapter, "columns": run.columns}


def _fingerprints(files: Sequence[Path]) -> list[str]:
    """Name and content of each file, in order; a folder that moved still holds the same ones."""
    found = []
    for path in files:
        with path.open("rb") as handle:
            found.append(f"{path.name} {hashlib.file_digest(handle, 'sha256').hexdigest()[:16]}")
    return found


def _limit(text: str) -> tuple[str, int | float]:
    key, value = assignment(text)
    try:
        return key, int(value)
    except ValueError:
        try:
            return key, float(value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"limits are numbers, got {text!r}") from error


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, FLAT_COLUMNS))
    columns = "\n".join(f"  {name:{width}}  {meaning}" for name, meaning in FLAT_COLUMNS.items())
    parser = argparse.ArgumentParser(
        prog="code-a1 score",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"columns of INPUT (JSON lines, JSON or parquet):\n{columns}\n\n"
        "A run folder, or its rollouts/*.jsonl, is read as it is: the run's own settings and questions are then the\n"
        "defaults, so that the same command gives its rewards again, and --alpha and the rest say what differs.",
    )
    parser.add_argument("inputs", nargs="+", type=Path, metavar="INPUT", help="rollout files, or a run folder")
    parser.add_argument("--output", type=Path, required=True, help="JSON lines; taken up again where they stop")
    parser.add_argument("--questions", nargs="+", type=Path, default=[], metavar="FILE", help="as data.train_files")
    parser.add_argument("--adapter", default="auto", choices=["auto", *ADAPTERS], help="how to read the questions")
    parser.add_argument("--columns", nargs="+", type=column, default=[], metavar="NAME=COLUMN", help="as data.columns")
    parser.add_argument("--role", default="auto", choices=["auto", *ROLES], help="what flat rows are")
    parser.add_argument(
        "--workers", type=positive, default=os.cpu_count() or 1, help="judge processes (default: one a core)"
    )
    parser.add_argument("--tier", type=int, choices=LOCAL_TIERS, help="how programs are confined (default 0)")
    parser.add_argument(
        "--allow-missing",
        nargs="+",
        default=[],
        choices=OPTIONAL_FEATURES,
        metavar="NAME",
        help="protections this kernel lacks: landlock, seccomp",
    )
    parser.add_argument("--alpha", type=float, help="weight of validity in the test reward (default 0.5)")
    parser.add_argument("--adversarial", choices=sorted(ADVERSARIAL_READINGS), help="default: release")
    parser.add_argument("--cases", type=positive, help="K, the cases a suite was asked for (default 8)")
    parser.add_argument("--nonprintable-penalty", action=argparse.BooleanOptionalAction, help="default: no")
    parser.add_argument(
        "--limits", nargs="+", type=_limit, default=[], metavar="KEY=NUMBER", help="of one program, as sandbox.limits"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
