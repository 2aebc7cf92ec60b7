"""Rollouts through extraction, judge and rewards, to JSON lines. Resumable; loads no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from code_a1_recipe.algorithm.rewards import RewardSettings
from code_a1_recipe.data.reader import question_table
from code_a1_recipe.errors import InputError, SettingsError
from code_a1_recipe.files import file_fingerprint
from code_a1_recipe.jobs import options as shared
from code_a1_recipe.jobs.confinement import Confinement, JudgeAll
from code_a1_recipe.jobs.jsonl_store import JsonlStore
from code_a1_recipe.jobs.judge_loop import judge_into
from code_a1_recipe.jobs.outputs import Report
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.runs.reader import RunRecords
from reward_fns import ADVERSARIAL_READINGS
from sandbox import DEFAULT_QUESTIONS_PER_WORKER, Limits

from .input import ROLES, Item, read_items
from .rows import Scorer, in_pieces
from .summary import Summary

if TYPE_CHECKING:
    from code_a1_recipe.config.run_config import RunConfig

_REWARD_OPTIONS = ("alpha", "adversarial", "nonprintable_penalty")
_NOT_SO = "Copy the rollouts out of the run folder and name the questions by --questions to score them so"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions:
    """Of ``score``. None, here and below: the recorded run's own value, or the recipe's default."""

    inputs: Annotated[Sequence[Path], typer.Argument(metavar="INPUT...", help="rollout files, or a run folder")]
    output: shared.ResumedFile
    questions: Annotated[Sequence[Path], typer.Option(metavar="FILE", help="as data.train_files; repeatable")] = ()
    adapter: shared.Adapter = "auto"
    columns: shared.Columns = field(default_factory=dict)
    role: Annotated[
        str, typer.Option(callback=shared.one_of(("auto", *ROLES)), help="what flat rows are: auto, code or test")
    ] = "auto"
    workers: shared.Workers = shared.NUM_CORES
    tier: shared.RunTier = None
    allow_missing: shared.AllowMissing = ()
    alpha: Annotated[float | None, typer.Option(help="weight of validity in the test reward", show_default="0.5")] = (
        None
    )
    adversarial: Annotated[
        str | None,
        typer.Option(
            callback=shared.one_of(tuple(sorted(ADVERSARIAL_READINGS))),
            help=f"reading of the adversarial term: {', '.join(sorted(ADVERSARIAL_READINGS))}",
            show_default="release",
        ),
    ] = None
    cases: Annotated[int | None, typer.Option(min=1, help="K, the cases a suite was asked for", show_default="8")] = (
        None
    )
    nonprintable_penalty: Annotated[
        bool | None, typer.Option(help="subtract the share of characters that are not printable", show_default="no")
    ] = None
    limits: Annotated[
        Mapping[str, int | float],
        typer.Option(metavar="KEY=NUMBER", help="of one program, as sandbox.limits; repeatable"),
        shared.Numbers,
    ] = field(default_factory=dict)


def _rewards(options: ScoreOptions, run: "RunConfig | None") -> RewardSettings:
    """The options over the recorded run's own rewards over the recipe's defaults.

    Raises:
        SettingsError: a value is out of its range, or the run's rewards are made of other tests than a row has.
    """
    rewards = run.rewards if run else RewardSettings(alpha=0.5, adversarial="release", nonprintable_penalty=False)
    if rewards.code_tests != "suites":
        raise SettingsError(
            f"the run trained with rewards.code_tests={rewards.code_tests}, whose rewards are made of tests beyond "
            f"a row's own suites; score rewards programs on their own suites. {_NOT_SO}"
        )
    if run and run.episode.share_suites:
        raise SettingsError(
            "the run trained with episode.share_suites=true, where identical programs have the suites of the first "
            f"of them; score rewards programs on their own suites. {_NOT_SO}"
        )
    named = {name: getattr(options, name) for name in _REWARD_OPTIONS}
    return rewards.replaced(where="rewards", **{name: value for name, value in named.items() if value is not None})


def score(options: ScoreOptions) -> Report:
    """Score what ``options.output`` lacks, in the order of the items; reports on all rows.

    Raises:
        InputError, SandboxConfigError: something cannot be used; nothing was judged.
        OutageError, SandboxUnavailableError: the sandbox is down; what was judged is kept.
    """
    run = find_run(options.inputs)
    rewards = _rewards(options, run)
    recorded = Confinement.of_run(run.sandbox) if run else Confinement()
    confinement = Confinement(
        limits=Limits.from_mapping({**asdict(recorded.limits), **options.limits}, where="--limits"),
        tier=recorded.tier if options.tier is None else options.tier,
        allow_missing=tuple(options.allow_missing) or recorded.allow_missing,
    )
    num_cases = options.cases or (run.episode.cases_per_suite if run else 8)
    seed = run.seed if run else 0
    files = rollout_files(options.inputs)
    question_files: Sequence[Path] = options.questions
    if run is None or options.questions:
        questions = question_table(question_files, adapter=options.adapter, columns=options.columns)
    else:
        question_files = [Path(file) for file in (*run.data.train_files, *run.data.val_files)]
        questions = question_table(question_files, adapter=run.data.adapter, columns=run.data.columns)
    items = read_items(files, questions, role=options.role)
    scorer = Scorer(rewards=rewards, num_cases=num_cases)
    described = {  # plain values, in the words of the command line
        **{name: getattr(rewards, name) for name in _REWARD_OPTIONS},
        "reward_functions": [dict(rewards.code), dict(rewards.test)],
        "user_files": {key: file_fingerprint(file) for key, file in rewards.user_files.items()},
        "cases": num_cases,
        **confinement.described(),
        "seed": seed,
        "role": options.role,
        "inputs": [file_fingerprint(path) for path in files],
        "questions": [file_fingerprint(path) for path in question_files],
    }
    with JsonlStore(options.output, settings=described) as store:
        if len(store) < len(items):
            with confinement.judges(options.workers, seed=seed) as judges:
                num_threads = options.workers * DEFAULT_QUESTIONS_PER_WORKER
                judge_items(items, store, scorer, judges.judge_all, num_threads=num_threads)
        store.sort()
        summary = Summary(store.rows())
    return Report(
        text=f"{options.output}: {summary.text().rstrip()}",
        failure=f"{summary.num_outages} items met an outage; repeat the command" if summary.num_outages else "",
    )


def find_run(inputs: Sequence[Path]) -> "RunConfig | None":
    """The configuration of the run that wrote the inputs: one of them is its folder, or lies in it; None without one.

    Raises:
        SettingsError: the inputs come from several runs, or its configuration cannot be read.
    """
    # From an input up to its run: run/rollouts/train_000001.jsonl.
    runs = [RunRecords.find(path, levels=1 if path.is_dir() else 2) for path in inputs]
    found = {run.folder.resolve(): run for run in runs if run}
    if len(found) > 1:
        raise SettingsError(
            f"the inputs belong to {len(found)} runs ({', '.join(map(str, sorted(found)))}); score each run with a "
            "command and an output of its own"
        )
    return found.popitem()[1].settings if found else None


def judge_items(
    items: Sequence[Item], store: JsonlStore, scorer: Scorer, judge_all: JudgeAll, *, num_threads: int
) -> None:
    """Append the rows that ``store`` lacks. An episode is rewarded as a whole, so its other items are judged again."""
    episodes = {item.episode for item in items if item.index not in store}
    judge_into(
        store,
        in_pieces([item for item in items if item.episode in episodes]),
        lambda piece: scorer.score(piece, judge_all),
        num_threads=num_threads,
        total=len(items),
        what="score",
        unit="item",
        num_attempts=2,
    )


def rollout_files(inputs: Sequence[Path]) -> list[Path]:
    """The files to read: a folder (a run, or its ``rollouts``) stands for its ``*.jsonl`` in order of name.

    Raises:
        InputError: nothing is there.
    """
    files: list[Path] = []
    for path in inputs:
        if path.is_dir():
            rollouts = RunFolder(path).rollouts
            folder = rollouts if rollouts.is_dir() else path
            found = sorted(folder.glob("*.jsonl"))
            if not found:
                raise InputError(f"{folder}: holds no *.jsonl; name the rollout files, or a folder that has some")
            files += found
        elif path.is_file():
            files.append(path)
        else:
            raise InputError(f"{path}: no such file or folder (relative paths start at {Path.cwd()})")
    return files
