"""A finished run as an evaluation needs it: settings, held-out questions, and both policies at a saved step."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.algorithm.sampling import SamplingParameters
from code_a1_recipe.algorithm.settings import SandboxSettings
from code_a1_recipe.config.run_config import RunConfig
from code_a1_recipe.data.torch_dataset import QuestionDataset
from code_a1_recipe.evaluation.models.source import ModelChoice, checkpoint_model, folder_fingerprint
from code_a1_recipe.jobs.confinement import Confinement
from code_a1_recipe.runs.reader import RunRecords
from sandbox import (
    DEFAULT_QUESTIONS_PER_WORKER,
    CandidateVerdict,
    Closing,
    JudgeProcesses,
    JudgeRequest,
    SandboxUnavailableError,
)

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
"""Of a policy's block ``rollout``, under vLLM's own names; they decide kernels and rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPair:
    """Both policies of a run."""

    records: RunRecords
    settings: RunConfig

    @classmethod
    def open(cls, folder: Path) -> "RecordedPair":
        """Raises InputError where ``folder`` holds no run, SettingsError where its settings are not this recipe's."""
        records = RunRecords.open(folder)
        return cls(records=records, settings=records.settings)

    @property
    def tester(self) -> str:
        """The policy that writes suites; "code" in a run with one model."""
        return "test" if "test" in self.settings.policy_names else "code"

    def held_out(self, limit: int | None = None) -> list[Question]:
        """The questions of the run's validation, in its order.

        Raises:
            InputError: a file is not there any more, or has changed.
        """
        data = self.settings.data
        questions = QuestionDataset(data.val_files, config=dict(data), max_samples=data.val_max_samples).questions
        return questions[:limit]

    def sampling(self, policy: str) -> SamplingParameters:
        """As the run's validation samples."""
        return SamplingParameters.of_rollout(self.settings.policy(policy).rollout, validation=True)

    def model(self, policy: str, step: str, *, work_folder: Path, stored_only: bool = False) -> ModelChoice:
        """One policy at a saved step; "0" is the model that training began with.

        Raises:
            InputError: the step was not saved.
        """
        engine = self._engine(policy)
        if step == "0":
            path = str(self.settings.policy(policy).model.path)
            fingerprint = folder_fingerprint(Path(path)) if Path(path).is_dir() else path
            return ModelChoice(label=f"{policy} step 0", fingerprint=fingerprint, path=path, engine=engine)
        return checkpoint_model(
            self.records.folder, step, policy, work_folder=work_folder, engine=engine, stored_only=stored_only
        )

    def _engine(self, policy: str) -> Mapping[str, Any]:
        rollout = self.settings.policy(policy).rollout
        return {
            **{name: getattr(rollout, name) for name in _ENGINE_KEYS},
            "tensor_parallel_size": rollout.tensor_model_parallel_size,
            "gpu_memory_utilization": min(rollout.gpu_memory_utilization, 0.45),  # two engines, beside each other
            **(rollout.engine_kwargs.get("vllm") or {}),
        }


class LocalAsyncJudge(Closing):
    """An ``AsyncJudge`` over judge processes of this machine, without Ray.

    Raises:
        SandboxConfigError, SandboxUnavailableError: programs cannot be confined here.
    """

    def __init__(self, processes: JudgeProcesses) -> None:
        self._processes = processes
        number = processes.num_workers * DEFAULT_QUESTIONS_PER_WORKER
        self._threads = ThreadPoolExecutor(number, thread_name_prefix="async-judge")

    @classmethod
    def start(cls, settings: SandboxSettings, *, seed: int) -> "LocalAsyncJudge":
        """With the confinement, limits and seed of a run; one process a core."""
        return cls(Confinement.of_run(settings).judges(None, seed=seed))

    async def judge(self, request: JudgeRequest) -> CandidateVerdict:
        """Raises SandboxUnavailableError on an outage, which is never a verdict."""
        loop = asyncio.get_running_loop()
        (result,) = await loop.run_in_executor(self._threads, lambda: list(self._processes.judge_all([request])))
        if isinstance(result, SandboxUnavailableError):
            raise result
        return result

    def close(self) -> None:
        """Idempotent; what is being judged becomes an outage."""
        self._processes.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
