"""A run's own validation, on a checkpoint, outside training.

The same episodes, seeds, prompts and judge as in training, so the figures are those that training wrote down.
"""

import asyncio
import functools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from code_a1_recipe.algorithm.episode import EpisodeRunner
from code_a1_recipe.algorithm.episode_types import Episode, EpisodeTask
from code_a1_recipe.algorithm.mistake_book import MistakeBook
from code_a1_recipe.algorithm.sampling import SamplingParameters
from code_a1_recipe.algorithm.tasks import tasks_of
from code_a1_recipe.evaluation.models.response_store import RESPONSES, ResponseStore, StoredSampler, finish_all
from code_a1_recipe.files import write_whole
from code_a1_recipe.jobs.progress import Progress
from code_a1_recipe.runs.metrics import accumulate_episode, validation_metrics
from code_a1_recipe.runs.rollout_record import encode_records, episode_records
from code_a1_recipe.stats.tables import Table, table_of
from code_a1_recipe.training.checkpoint.export import find_step
from examples.recorded_pair import LocalAsyncJudge, RecordedPair

_COMPARED = ("val/code/", "val/test/")
_OF_SERVING = ("val/test/prompt_cached_frac",)
"""About servers, not about models."""


async def validate(
    pair: RecordedPair, tasks: Sequence[EpisodeTask], *, step: str, work_folder: Path, stored_only: bool = False
) -> list[Episode]:
    """The validation episodes of ``tasks``; each response is stored as soon as it is there.

    Raises:
        InputError: a model cannot be loaded; or, with ``stored_only``, a response is not stored.
    """
    settings = pair.settings
    tester = pair.tester
    code = pair.model("code", step, work_folder=work_folder, stored_only=stored_only)
    test = pair.model(tester, step, work_folder=work_folder, stored_only=stored_only)
    with (
        ResponseStore(work_folder / RESPONSES) as store,
        LocalAsyncJudge.start(settings.sandbox, seed=settings.seed) as judge,
        Progress(f"validate step {step}", total=len(tasks), unit="question") as progress,
    ):
        engines: dict[str, asyncio.Future[Any]] = {}

        async def open_shared(policy: str, parameters: SamplingParameters) -> Any:
            """Greedy and sampled requests go to one engine of a policy, whose own parameters only bound the lengths."""
            if policy not in engines:
                engines[policy] = asyncio.ensure_future((code if policy == "code" else test).open(parameters))
            return (await engines[policy]).with_parameters(parameters)

        def sampler(policy: str, model: Any, *, greedy: bool = False) -> StoredSampler:
            parameters = pair.sampling(policy).greedy() if greedy else pair.sampling(policy)
            opener = None if stored_only else functools.partial(open_shared, policy)
            return StoredSampler(store, model=model.fingerprint, parameters=parameters, open_model=opener)

        samplers = [sampler("code", code), sampler(tester, test), sampler("code", code, greedy=True)]
        runner = EpisodeRunner(
            code=samplers[0],
            test=samplers[1],
            greedy=samplers[2],
            judge=judge,
            episode=settings.episode,
            rewards=settings.rewards,
            prompts=settings.prompts,
            judge_timeout_seconds=settings.sandbox.judge_timeout_seconds,
        )

        async def run_episode(task: EpisodeTask) -> Episode:
            episode = await runner.run(task)
            progress.advance()
            return episode

        return await finish_all(map(run_episode, tasks), samplers=samplers)


def run_validation(
    folder: Path, *, step: str, output: Path, limit: int | None = None, stored_only: bool = False
) -> tuple[Table, int]:
    """Validate a checkpoint and compare with what training wrote; records and table are in ``output``.

    Args:
        folder: of the run.
        step: latest, best, a saved step, or 0 for the models that training began with.
        output: responses in it are not sampled again.
        limit: only the first so many questions; nothing is compared then.
        stored_only: no model is started.

    Returns:
        The figures, and how many of them are not those of training.

    Raises:
        InputError, SandboxConfigError: something cannot be used.
        OutageError, SandboxUnavailableError: a model or the sandbox is down.
    """
    pair = RecordedPair.open(folder)
    number = int(step) if step.isdecimal() else find_step(folder, step).step
    questions = pair.held_out(limit)
    tasks = tasks_of(
        questions, settings=pair.settings, book=MistakeBook(), step=number, started_at=time.time(), validate=True
    )
    episodes = asyncio.run(validate(pair, tasks, step=str(number), work_folder=output, stored_only=stored_only))
    lines = b"".join(encode_records(episode_records(episode, selected=())) for episode in episodes)
    part = "" if limit is None else f"_first_{limit}"
    write_whole(output / f"val_{number:06d}{part}.jsonl", lines)
    sums = [(episode.task.question.data_source, accumulate_episode(episode, seconds=0.0)) for episode in episodes]
    rows = [row for row in pair.records.metrics if row["step"] == number and limit is None]
    before = {name: value for row in rows for name, value in row.items() if name.startswith("val/")}
    table, num_different = comparison_table(validation_metrics(sums), before, step=number)
    table.write(output, f"validation_{number:06d}{part}")
    return table, num_different


def comparison_table(metrics: dict[str, float], before: dict[str, float], *, step: int) -> tuple[Table, int]:
    """Figures of both policies beside those of training; and how many of them differ."""
    names = [name for name in metrics if name.startswith(_COMPARED) and name not in _OF_SERVING]
    rows, num_different = [], 0
    for name in names:
        row = {"metric": name, "here": f"{metrics[name]:.6g}"}
        if before:
            known = before.get(name)
            is_same = known is not None and abs(known - metrics[name]) <= 1e-9 * max(1.0, abs(known))
            num_different += not is_same
            row |= {"training": "" if known is None else f"{known:.6g}", "same": "yes" if is_same else "NO"}
        rows.append(row)
    note = (
        f"{len(names) - num_different} of {len(names)} figures are those of training."
        if before
        else "Training wrote no figures for these questions at this step."
    )
    return table_of(f"Validation at step {step}", rows, note=note), num_different
