"""A finished run as an evaluation needs it: settings, held-out questions, and both policies at a saved step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ..analysis.records import RecordsError, RunRecords
from ..compose import policy_view
from ..question_dataset import QuestionDataset
from ..questions import Question
from ..sampling_parameters import SamplingParameters
from ..settings import RecipeSettings
from .endpoint import ModelError
from .models import ModelChoice, checkpoint_model, folder_fingerprint

_ENGINE_KEYS = (
    "dtype",
    "max_model_len",
    "max_num_seqs",
    "enable_chunked_prefill",
    "max_num_batched_tokens",
    "enable_prefix_caching",
    "enforce_eager",
    "tensor_parallel_size",
    "seed",
)
"""Of a policy's block ``rollout``, under vLLM's own names or nearly; they decide kernels and rounding."""
_RENAMED = {"tensor_parallel_size": "tensor_model_parallel_size"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPair:
    """Both policies of a run."""

    records: RunRecords
    config: DictConfig
    settings: RecipeSettings

    @classmethod
    def open(cls, folder: Path) -> RecordedPair:
        """Raises RecordsError where ``folder`` holds no run, SettingsError where its settings are not this recipe's."""
        records = RunRecords.open(folder)
        return cls(
            records=records,
            config=OmegaConf.create(records.config),
            settings=RecipeSettings.from_mapping(records.config),
        )

    def held_out(self, limit: int | None = None) -> list[Question]:
        """The questions of the run's validation, in its order.

        Raises:
            QuestionError: a file is not there any more, or has changed.
        """
        data = self.config.data
        most = int(data.get("val_max_samples", -1))
        questions = QuestionDataset(data.val_files, config=data, max_samples=most).questions
        return questions[:limit]

    def rollout(self, policy: str) -> DictConfig:
        """The policy's block ``rollout``, its overrides merged in."""
        view: DictConfig = policy_view(self.config, policy).actor_rollout_ref.rollout
        return view

    def sampling(self, policy: str) -> SamplingParameters:
        """As the run's validation samples."""
        return SamplingParameters.of_rollout(self.rollout(policy), validation=True)

    def model(self, policy: str, step: str, *, work_folder: Path, stored_only: bool = False) -> ModelChoice:
        """One policy at a saved step; "0" is the model that training began with.

        Raises:
            ModelError: the step was not saved.
        """
        engine = self._engine(policy)
        if step == "0":
            path = str(self.config.policies[policy].model.path)
            fingerprint = folder_fingerprint(Path(path)) if Path(path).is_dir() else path
            return ModelChoice(label=f"{policy} step 0", fingerprint=fingerprint, path=path, engine=engine)
        return checkpoint_model(
            self.records.folder, step, policy, work_folder=work_folder, engine=engine, stored_only=stored_only
        )

    def _engine(self, policy: str) -> Mapping[str, Any]:
        rollout = self.rollout(policy)
        own: Any = OmegaConf.to_container(rollout.get("engine_kwargs", {}).get("vllm", {}) or {}, resolve=True)
        return {
            **{name: rollout[_RENAMED.get(name, name)] for name in _ENGINE_KEYS},
            "gpu_memory_utilization": min(rollout.gpu_memory_utilization, 0.45),  # two engines, beside each other
            **own,
        }


def saved_steps_of(pair: RecordedPair, steps: list[str]) -> list[str]:
    """The steps asked for, or 0 and all that were saved.

    Raises:
        ModelError: a step was not saved.
    """
    from ..checkpointing import CHECKPOINTS, saved_steps

    there = ["0", *map(str, saved_steps(pair.records.folder / CHECKPOINTS))]
    if odd := [step for step in steps if step not in there]:
        raise ModelError(f"{pair.records.folder} has no checkpoint of step {odd[0]}; it has {', '.join(there)}")
    return steps or there


__all__ = ["RecordedPair", "RecordsError", "saved_steps_of"]
