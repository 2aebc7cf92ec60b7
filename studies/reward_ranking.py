"""Measures how often R_C ranks a correct program above an incorrect program of the same question, on a real model.

    python -m studies.reward_ranking                              # the stored rollouts
    python -m studies.reward_ranking RUN --questions FILE         # a run of yours

Every program of the training rollouts is judged by the tests of its question, which were not used for its reward. The
study counts pairs of a correct and an incorrect program of one question, and correct and incorrect programs with full
reward. Responses without a program, and programs without a reward, are left out. A program with examples that fail when
it loads counts as incorrect, as in the judge that gave the stored rewards.

The stored rollouts are three steps with Qwen2.5-Coder-0.5B-Instruct as both LLMs. Each step has 16 MBPP questions, 8
programs for each question, and 4 suites of 4 asserts for each program (commit 903dc83, one H100).
"""

import gzip
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from code_a1_recipe.algorithm.question import Question, request_for
from code_a1_recipe.algorithm.rewards import FULL_REWARD
from code_a1_recipe.data.reader import question_table
from code_a1_recipe.errors import InputError, OutageError
from code_a1_recipe.runs.reader import RunRecords
from sandbox import CandidateVerdict, JudgeProcesses, SandboxUnavailableError
from studies.command_line import run_study, study_app

STORED = Path(__file__).with_name("reward_ranking.jsonl.gz")
app = study_app()


class Rollouts(msgspec.Struct, frozen=True):
    """The programs for one question, each with its R_C."""

    question: Question
    programs: list[tuple[str, float]]

    @property
    def tests(self) -> tuple[str, ...]:
        """All tests of the question. A prepared file may have moved some of them to ``golden_tests``."""
        return (*self.question.golden_tests, *self.question.tests)


@dataclass(kw_only=True)
class Ranking:
    """Counts over all questions."""

    num_correct: int = 0
    num_incorrect: int = 0
    full_correct: int = 0
    """Correct programs with R_C = 1."""
    full_incorrect: int = 0
    right: int = 0
    """Pairs whose correct program has the higher R_C."""
    wrong: int = 0
    ties: int = 0

    def add(self, correct: Sequence[float], incorrect: Sequence[float]) -> None:
        """Count one question, given the rewards of its correct and of its incorrect programs."""
        self.num_correct += len(correct)
        self.num_incorrect += len(incorrect)
        self.full_correct += sum(reward > FULL_REWARD for reward in correct)
        self.full_incorrect += sum(reward > FULL_REWARD for reward in incorrect)
        for high in correct:
            for low in incorrect:
                self.right += high > low
                self.wrong += high < low
                self.ties += high == low

    def __str__(self) -> str:
        pairs = self.right + self.wrong + self.ties
        return (
            f"R_C ranks the correct program above the incorrect one in {self.right} of {pairs} pairs of one question; "
            f"{self.wrong} wrong, {self.ties} ties\n"
            f"R_C = 1: {self.full_correct} of {self.num_correct} correct programs, "
            f"{self.full_incorrect} of {self.num_incorrect} incorrect ones"
        )


def read_run(folder: Path, questions: Path | None) -> list[Rollouts]:
    """Collect the training rollouts of a run by question.

    Args:
        folder: the run.
        questions: a file with the questions and their ``tests``; None for the run's own file.

    Raises:
        InputError: a file cannot be read, or a question has no tests.
    """
    run = RunRecords.open(folder)
    by_id = run.questions("train_files") if questions is None else question_table([questions])
    programs: dict[str, list[tuple[str, float]]] = {}
    for step in run.training_steps:
        for record in run.training(step):
            if record.source is not None and record.reward is not None:
                programs.setdefault(record.question, []).append((record.source, record.reward.total))
    rollouts = []
    for name, written in programs.items():
        if name not in by_id or not Rollouts(by_id[name], written).tests:
            raise InputError(f"question {name!r} of {folder} has no tests; name a file that has them with --questions")
        rollouts.append(Rollouts(by_id[name], written))
    return rollouts


def read_stored(path: Path) -> list[Rollouts]:
    """Read what :func:`store` wrote."""
    lines = gzip.decompress(path.read_bytes()).splitlines()
    return [msgspec.json.decode(line, type=Rollouts) for line in lines]


def store(rollouts: Sequence[Rollouts], path: Path) -> None:
    """Write the rollouts that the study needs, one question on a line. The same rollouts give the same bytes."""
    lines = [msgspec.json.encode(one) + b"\n" for one in rollouts]
    path.write_bytes(gzip.compress(b"".join(lines), mtime=0))


def rank(rollouts: Sequence[Rollouts]) -> Ranking:
    """Judge every program by the tests of its question, and compare the rewards.

    Raises:
        OutageError: the sandbox could not judge a program.
    """
    ranking = Ranking()
    requests = []
    for one in rollouts:
        requests += [request_for(one.question, source, one.tests, given=True) for source, _ in one.programs]
    with JudgeProcesses() as judges:
        verdicts = iter(judges.judge_all(requests))
        for one in rollouts:
            rewards: dict[bool, list[float]] = {True: [], False: []}
            for _, reward in one.programs:
                rewards[_is_correct(next(verdicts))].append(reward)
            ranking.add(rewards[True], rewards[False])
    return ranking


def _is_correct(verdict: CandidateVerdict | SandboxUnavailableError) -> bool:
    if isinstance(verdict, SandboxUnavailableError):
        raise OutageError(f"the sandbox could not judge a program: {verdict}; repeat the command") from verdict
    cases = verdict.suites[0].cases
    # In the judge that gave the stored rewards, a program whose examples fail counted as one that does not load.
    return bool(cases) and not verdict.example_failure and not any(case.outcome.failed for case in cases)


@app.command()
def reward_ranking(
    run: Annotated[Path | None, typer.Argument(help="folder of a run; default: the stored rollouts")] = None,
    questions: Annotated[Path | None, typer.Option(help="questions with tests; default: the run's own file")] = None,
    output: Annotated[Path | None, typer.Option(help="a file .jsonl.gz that also receives the rollouts")] = None,
) -> None:
    """Count how often R_C ranks a correct program above an incorrect one of the same question."""
    rollouts = read_stored(STORED) if run is None else read_run(run, questions)
    if output is not None:
        store(rollouts, output)
    typer.echo(rank(rollouts))


if __name__ == "__main__":
    sys.exit(run_study(app, None, name="reward_ranking"))
