"""``code-a1 score``: computes the rewards of rollouts by extraction, judge and reward functions. It needs no torch."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import msgspec

from sandbox import SandboxUnavailableError

from ...algorithm.episode_types import CandidateResult
from ...algorithm.question import request_for
from ...algorithm.rewards import QuestionRewards, RewardSettings
from ...data.reader import question_table
from ...errors import InputError, SettingsError
from ...files import file_fingerprint
from ...jobs.confinement import Confinement, JudgeAll
from ...jobs.jsonl_store import JsonlStore, Row
from ...jobs.judge_loop import judge_into
from ...jobs.outputs import Report
from ...runs.reader import RunRecords
from ...runs.rollout_record import reward_record, verdict_record
from .options import ScoreOptions
from .rollout_rows import Item, read_episodes

_PAPER = RewardSettings(
    alpha=0.5,
    adversarial="release",
    nonprintable_penalty=False,
)
_CASES_PER_SUITE = 8


def score(options: ScoreOptions) -> Report:
    """Write the reward of every rollout into ``output``, in the order of the rows. A repeated call resumes.

    Raises:
        InputError, SandboxConfigError: a file, an option or the sandbox cannot be used; nothing was judged.
        OutageError, SandboxUnavailableError: the sandbox is down; judged rows are kept.
    """
    source, questions = options.source, options.questions
    files = _rollout_files(source)
    table = question_table(questions)
    rewards, num_cases, seed = _PAPER, _CASES_PER_SUITE, 0
    confinement = Confinement(allow_missing=options.allow_missing)
    # The folder run/rollouts lies one level below its run, and a file in this folder lies two levels below.
    if run := RunRecords.find(source, levels=1 if source.is_dir() else 2):
        settings = run.settings
        rewards, num_cases, seed = settings.rewards, settings.episode.cases_per_suite, settings.seed
        confinement = Confinement.of_run(settings.sandbox, allow_missing=options.allow_missing)
        if not questions:
            questions = tuple(run.question_files("train_files", "val_files"))
            table = run.questions("train_files", "val_files")
        if rewards.code_tests != "suites":
            raise SettingsError(
                f"the run rewarded programs on rewards.code_tests={rewards.code_tests}, but score uses only the suites "
                "of each row; copy the rollouts out of the run folder and name --questions to score them on suites"
            )
    changes = {"alpha": options.alpha, "adversarial": options.adversarial}
    given = {name: value for name, value in changes.items() if value is not None}
    rewards = rewards.replaced(where="rewards", **given)
    num_cases = options.cases or num_cases
    episodes = read_episodes(files, table)
    read_files = (*files, *questions, *rewards.user_files.values())
    decisive = {
        **rewards.model_dump(mode="json"),
        **confinement.described(),
        "cases": num_cases,
        "seed": seed,
        "files": list(map(file_fingerprint, read_files)),
    }
    trained = QuestionRewards(rewards, num_cases=num_cases)
    by_the_paper = QuestionRewards(rewards.by_the_paper(), num_cases=num_cases)
    with JsonlStore(options.output, settings=decisive, key="item") as store:
        # If a row of an episode is missing, the whole episode is judged, because its programs are rewarded together.
        left = [items for items in episodes if not all(item.row["item"] in store for item in items)]
        if left:
            with confinement.judges(options.workers, seed=seed) as judges:

                def rows_of(items: Sequence[Item]) -> list[Row]:
                    # Validation rewards buggy programs by the paper's rule, whatever rule training has.
                    is_buggy = items[0].row.get("kind") == "buggy_program"
                    return judged_rows(items, judges.judge_all, by_the_paper if is_buggy else trained)

                judge_into(
                    store,
                    left,
                    rows_of,
                    num_workers=options.workers,
                    total=sum(map(len, episodes)),
                    what="score",
                    unit="program",
                )
        store.sort()
        rows = list(store.rows())
    rewarded = [row for row in rows if not row["outage"]]
    num_lost = len(rows) - len(rewarded)
    failure = f"{num_lost} programs met an outage and have no reward; repeat the command" if num_lost else ""
    return Report(text=f"{options.output}: {summary(rewarded)}", failure=failure)


def _rollout_files(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    files = RunRecords(source).rollout_files()
    if not files:
        files = sorted([*source.glob("*.jsonl"), *source.glob("*.jsonl.gz")])
    if not files:
        hint = f"(relative paths start at {Path.cwd()})"
        raise InputError(f"{source} is no rollout file and no folder of *.jsonl or *.jsonl.gz {hint}")
    return files


def judged_rows(items: Sequence[Item], judge_all: JudgeAll, rewards: QuestionRewards) -> list[Row]:
    """Judge the programs of an episode and make their output rows. After an outage a row has no reward."""
    requests = []
    for item in items:
        suites = [suite.asserts for suite in item.result.suites]
        if item.tests:
            suites = [item.tests]
        request = request_for(item.question, item.result.source, *suites, history=item.history, given=bool(item.tests))
        requests.append(request)
    results = []
    for item, answer in zip(items, judge_all(requests), strict=True):
        if isinstance(answer, SandboxUnavailableError):
            results.append(replace(item.result, outage=f"{type(answer).__name__}: {answer}"))
        else:
            results.append(replace(item.result, verdict=answer))
    rewarded = rewards.apply(items[0].question, results)
    return list(map(_row, items, rewarded))


def _row(item: Item, result: CandidateResult) -> Row:
    row: Row = {
        **item.row,
        "source": result.source,
        "extraction_failure": result.extraction_failure,
        "outage": result.outage,
        "verdict": verdict_record(result.verdict),
        "reward": reward_record(result.reward),
    }
    verdicts = list(result.verdict.suites) if result.verdict else [None] * len(result.suites)
    if item.tests:
        row["given_tests"] = verdicts.pop() if verdicts else None
    recorded = item.row.get("suites") or [{}] * len(result.suites)
    suites = []
    for before, suite, verdict in zip(recorded, result.suites, verdicts, strict=True):
        judged = {
            **before,
            "extraction_failure": suite.extraction_failure,
            "reward": reward_record(suite.reward),
            "verdict": verdict,
        }
        suites.append(judged)
    row["suites"] = suites
    return dict(msgspec.to_builtins(row))


def summary(rows: Sequence[Row]) -> str:
    """Describe counts and mean rewards for the terminal."""
    programs = [row for row in rows if row.get("role") != "test"]
    suites = []
    for row in rows:
        suites += row["suites"]
    text = f"{len(rows)} programs judged"
    for kind, responses in (("programs", programs), ("suites", suites)):
        rewards = []
        num_failures = 0
        for response in responses:
            num_failures += bool(response["extraction_failure"])
            if response["reward"] is not None:
                rewards.append(response["reward"]["total"])
        if rewards:
            mean = fmean(rewards)
            text += f"\n  {kind}: mean reward {mean:.4f} of {len(rewards)}, {num_failures} extraction failures"
    return text
