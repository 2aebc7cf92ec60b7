"""``code-a1 validate``: validates a checkpoint of a run again, outside of training.

Episodes, seeds, prompts and judge are the same as in training, so the figures must be the same too.
"""

import asyncio
import functools
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sandbox import CandidateVerdict, JudgeProcesses, JudgeRequest

from ...algorithm.episode_types import Episode, EpisodeTask
from ...algorithm.mistake_book import MistakeBook
from ...algorithm.sampling import SamplingParameters
from ...algorithm.tasks import tasks_of
from ...algorithm.validation import ValidationRunner
from ...data.torch_dataset import QuestionDataset
from ...extensions import extensions_of
from ...extensions.scripted_tester import find_scripted_tester
from ...files import write_whole
from ...jobs.confinement import Confinement
from ...jobs.progress import Progress
from ...runs.metrics import accumulate_episode, validation_metrics
from ...runs.reader import RunRecords
from ...runs.rollout_record import RolloutRecord, encode_records, episode_records
from ...stats.tables import Table, table_of
from ...training.checkpoint.export import find_step
from ..evaluate.models.response_store import RESPONSES, OpenModel, ResponseStore, StoredSampler, finish_all
from ..evaluate.models.source import checkpoint_model
from ..test_quality.metrics import verdicts_of

_OF_SERVERS = "val/test/prompt_cached_frac"
"""A metric of the servers in training. It is not compared, because ``code-a1 validate`` starts an engine with an empty
cache."""
_ENGINE_KEYS = (
    "dtype",
    "max_model_len",
    "max_num_seqs",
    "enable_chunked_prefill",
    "max_num_batched_tokens",
    "enable_prefix_caching",
    "enforce_eager",
    "seed",
)
"""Keys of a policy's block ``rollout`` that may change computed values. The settings have the same names in vLLM."""


def validate(folder: Path, *, step: str, output: Path) -> tuple[Table, int]:
    """Validate both policies of a run at a step: "latest", "best", or a number.

    Responses, records and the table are written to the folder ``output``. Stored responses are not sampled again.

    Returns:
        The table of new figures beside the figures of training, and the number of figures that differ.

    Raises:
        InputError, SandboxConfigError: the run, its models or the sandbox cannot be used.
        OutageError, SandboxUnavailableError: a model or the sandbox is down.
    """
    run = RunRecords.open(folder)
    settings, data = run.settings, run.settings.data
    extensions = extensions_of(settings)
    number = find_step(folder, step).step
    held_out = QuestionDataset(data.val_files, config=dict(data), max_samples=data.val_max_samples)
    tasks = tasks_of(
        held_out.questions,
        settings=settings,
        book=MistakeBook(),
        step=number,
        started_at=time.time(),
        validate=True,
        extensions=extensions,
    )
    with (
        ResponseStore(output / RESPONSES) as store,
        Confinement.of_run(settings.sandbox).judges(None, seed=settings.seed) as judges,
        Progress("validate", total=len(tasks), unit="question") as progress,
    ):
        samplers = []
        for name in settings.policy_names:
            samplers.append(_samplers(name, run, store, step=number, output=output))
        code, greedy = samplers[0]
        test, _ = samplers[-1]  # if one model has both roles, there is only one pair
        runner = ValidationRunner(
            code_llm=code,
            test_llm=test,
            greedy=greedy,
            judge=_AsyncJudge(judges),
            settings=settings.episode,
            rewards=settings.rewards,
            prompts=settings.prompts,
            judge_timeout_seconds=settings.sandbox.judge_timeout_seconds,
            scripted_tester=find_scripted_tester(settings.episode.tester),
            extensions=extensions,
        )

        async def run_episode(task: EpisodeTask) -> Episode:
            episode = await runner.run(task)
            progress.advance()
            return episode

        episodes = asyncio.run(finish_all(map(run_episode, tasks), samplers=[code, test, greedy]))
    records: list[RolloutRecord] = []
    sums = []
    for episode in episodes:
        records += episode_records(episode, selected=())
        source = episode.task.question.data_source
        sums.append((source, accumulate_episode(episode, extensions)))
    write_whole(output / f"val_{number:06d}.jsonl", encode_records(records))
    rows_of_step = [row for row in run.metrics if row["step"] == number]
    before = rows_of_step[0] if rows_of_step else {}
    table, num_different = comparison_table(validation_metrics(sums), before, step=number)
    write_whole(output / f"validation_{number:06d}.md", table.markdown())
    return table, num_different


def comparison_table(metrics: dict[str, float], before: dict[str, Any], *, step: int) -> tuple[Table, int]:
    """Put new figures beside the figures of training. Returns the table and the number of figures that differ."""
    rows = []
    for name, value in metrics.items():
        if not name.startswith(("val/code/", "val/test/")) or name == _OF_SERVERS:
            continue
        row = {"metric": name, "here": f"{value:.6g}", "training": "", "same": ""}
        known = before.get(name)
        if known is not None:
            is_same = abs(known - value) <= 1e-9 * max(1.0, abs(known))
            row["training"] = f"{known:.6g}"
            row["same"] = "yes" if is_same else "NO"
        rows.append(row)
    same = Counter(row["same"] for row in rows)
    note = f"{same['yes']} of {same['yes'] + same['NO']} figures of training are the same here."
    return table_of(f"Validation at step {step}", rows, note=note), same["NO"]


def _samplers(
    name: str, run: RunRecords, store: ResponseStore, *, step: int, output: Path
) -> tuple[StoredSampler, StoredSampler]:
    """Make two samplers of a policy: one with the sampling of validation, and a greedy one.

    Both samplers share an engine, which starts as soon as a response is not in the store.
    """
    rollout = run.settings.policy(name).rollout
    arguments = {key: getattr(rollout, key) for key in _ENGINE_KEYS}
    arguments["tensor_parallel_size"] = rollout.tensor_model_parallel_size
    arguments["gpu_memory_utilization"] = min(rollout.gpu_memory_utilization, 0.45)  # two engines share a GPU
    arguments |= rollout.engine_kwargs.get("vllm") or {}
    model = checkpoint_model(run.folder, str(step), name, work_folder=output, engine=arguments)
    sampling = SamplingParameters.of_rollout(rollout, validation=True)

    @functools.cache
    def engine() -> asyncio.Future[Any]:
        return asyncio.ensure_future(model.open(sampling))

    async def open_model(parameters: SamplingParameters) -> OpenModel:
        opened: OpenModel = replace(await engine(), parameters=parameters)
        return opened

    plain = StoredSampler(store, model=model.fingerprint, parameters=sampling, open_model=open_model)
    return plain, replace(plain, parameters=sampling.greedy())


@dataclass(frozen=True)
class _AsyncJudge:
    """The judge of the episodes: it uses judge processes of this machine instead of Ray."""

    judges: JudgeProcesses

    async def judge(self, request: JudgeRequest) -> CandidateVerdict:
        (verdict,) = await asyncio.to_thread(verdicts_of, self.judges.judge_all, [request])
        return verdict
