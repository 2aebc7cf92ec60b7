"""``code-a1 eval run``: a run's own validation, on a checkpoint, outside training.

The same episodes, seeds, prompts and judge as in training, so the figures are those that training wrote down.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from sandbox import SandboxConfigError, SandboxUnavailableError

from ..analysis.records import RecordsError
from ..argument_types import positive
from ..checkpointing import CheckpointError
from ..episode import EpisodeRunner
from ..episode_data import Episode, EpisodeTask
from ..episode_metrics import episode_sums, validation_metrics
from ..mistake_book import MistakeBook
from ..questions import QuestionError
from ..rollout_log import episode_records
from ..score_file import ScoreFileError, write_whole
from ..settings import SettingsError
from ..step_tasks import tasks_of
from .async_judge import LocalAsyncJudge
from .endpoint import ModelError
from .recorded_run import RecordedPair
from .response_store import RESPONSES, MissingResponseError, ResponseStore, StoredSampler
from .tables import Table, table_of

DONE, DIFFERENT, REFUSED, INTERRUPTED = 0, 1, 2, 130
_COMPARED = ("val/code/", "val/test/")
_OF_SERVING = ("val/test/prompt_cached_share",)
"""About servers, not about models."""


async def validate(
    pair: RecordedPair, tasks: Sequence[EpisodeTask], *, step: str, work_folder: Path, stored_only: bool = False
) -> list[Episode]:
    """The validation episodes of ``tasks``; each response is stored as soon as it is there.

    Raises:
        ModelError: a model cannot be loaded; MissingResponseError: ``stored_only``, and one is not stored.
    """
    settings = pair.settings
    tester = "test" if "test" in settings.policy_names else "code"
    code = pair.model("code", step, work_folder=work_folder, stored_only=stored_only)
    test = pair.model(tester, step, work_folder=work_folder, stored_only=stored_only)
    with (
        ResponseStore(work_folder / RESPONSES) as store,
        LocalAsyncJudge.start(settings.sandbox, seed=settings.seed) as judge,
        tqdm(total=len(tasks), unit="question", desc=f"validate step {step}", disable=None) as bar,
    ):

        def sampler(policy: str, model: Any, *, greedy: bool = False) -> StoredSampler:
            parameters = pair.sampling(policy).greedy() if greedy else pair.sampling(policy)
            opener = None if stored_only else engines[policy]
            return StoredSampler(store, model=model.fingerprint, parameters=parameters, open_model=opener)

        shared = _SharedEngines({"code": code, tester: test})
        engines = {name: shared.opener(name) for name in ("code", tester)}
        samplers = [sampler("code", code), sampler(tester, test), sampler("code", code, greedy=True)]
        runner = EpisodeRunner(
            code=samplers[0],
            test=samplers[1],
            greedy=samplers[2],
            judge=judge,
            episode=settings.episode,
            rewards=settings.rewards,
            prompt_pair=settings.prompts.name,
            black_box=settings.prompts.black_box,
            judge_timeout_seconds=settings.sandbox.judge_timeout_seconds,
        )

        async def one(task: EpisodeTask) -> Episode:
            episode = await runner.run(task)
            bar.update()
            return episode

        try:
            async with asyncio.TaskGroup() as group:
                episodes = [group.create_task(one(task)) for task in tasks]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            for each in samplers:
                await each.close()
        return [episode.result() for episode in episodes]


class _SharedEngines:
    """Greedy and sampled requests of one policy go to one engine, whose own parameters only bound the lengths."""

    def __init__(self, models: dict[str, Any]) -> None:
        self._models = models
        self._open: dict[str, asyncio.Future[Any]] = {}

    def opener(self, policy: str) -> Any:
        async def open_with(parameters: Any) -> Any:
            if policy not in self._open:
                self._open[policy] = asyncio.ensure_future(self._models[policy].open(parameters))
            return (await self._open[policy]).with_parameters(parameters)

        return open_with


def run_validation(folder: Path, *, step: str, output: Path, limit: int | None, stored_only: bool) -> int:
    """Validate a checkpoint, write records and table, compare with what training wrote; returns the exit status."""
    pair = RecordedPair.open(folder)
    number = int(step) if step.isdecimal() else None
    if number is None:
        from ..export import find_step

        number = find_step(folder, step).step
    questions = pair.held_out(limit)
    tasks = tasks_of(
        questions, settings=pair.settings, book=MistakeBook(), step=number, started_at=time.time(), validate=True
    )
    output.mkdir(parents=True, exist_ok=True)
    episodes = asyncio.run(validate(pair, tasks, step=str(number), work_folder=output, stored_only=stored_only))
    records = [record for episode in episodes for record in episode_records(episode, selected=())]
    part = "" if limit is None else f"_first_{limit}"
    write_whole(output / f"val_{number:06d}{part}.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    sums = [(episode.task.question.data_source, episode_sums(episode, seconds=0.0)) for episode in episodes]
    metrics = validation_metrics(sums)
    before = _recorded_metrics(pair, number)
    table, num_different = comparison_table(metrics, before if limit is None else {}, step=number)
    table.write(output, f"validation_{number:06d}{part}")
    sys.stdout.write(table.markdown())
    return DIFFERENT if num_different else DONE


def _recorded_metrics(pair: RecordedPair, step: int) -> dict[str, float]:
    rows = [row for row in pair.records.metrics if row["step"] == step]
    return {name: value for row in rows for name, value in row.items() if name.startswith("val/")}


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


def main(arguments: Sequence[str]) -> int:
    """Exit status: 0 done (and the same as in training), 1 some figure differs, 2 refused, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="code-a1 eval run",
        description="Validates both policies of a run's checkpoint on its held-out questions, with the run's own "
        "settings, and shows the figures beside those that training wrote down.",
        epilog="example:\n  code-a1 eval run outputs/cpu-20260101-120000 --step 40 --output outputs/validation",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--step", default="latest", help="latest (default), best, a saved step, or 0: the base models")
    parser.add_argument("--output", type=Path, required=True, help="folder; responses in it are not sampled again")
    parser.add_argument("--limit", type=positive, help="only the first so many questions; nothing is compared then")
    parser.add_argument("--judge-only", action="store_true", help="judge stored responses; no model is started")
    options = parser.parse_args(arguments)
    try:
        return run_validation(
            options.run, step=options.step, output=options.output, limit=options.limit, stored_only=options.judge_only
        )
    except (RecordsError, SettingsError, QuestionError, CheckpointError, ModelError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    except (ScoreFileError, SandboxConfigError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    except (MissingResponseError, SandboxUnavailableError) as error:
        sys.stderr.write(f"error: {error}\n")
        return DIFFERENT
    except KeyboardInterrupt:
        sys.stderr.write(f"\ninterrupted; repeat the command to go on, responses are in {options.output}\n")
        return INTERRUPTED
