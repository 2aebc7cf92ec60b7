"""``RunConfig``: the checked, frozen configuration of a run.

The recipe's own blocks are in ``algorithm`` and ``extensions``. This module has the parts of verl's configuration that
the recipe reads. verl's code gets the whole tree from ``RunConfig.for_verl`` or ``RunConfig.for_policy``.
"""

import os
import pickle
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from omegaconf import DictConfig, OmegaConf
from pydantic import BeforeValidator, ConfigDict, Field, PrivateAttr, SkipValidation, ValidationError

from ..algorithm.schedule import POLICY_NAMES
from ..algorithm.settings import SeedSettings
from ..algorithm.settings_block import Amount, Block, Count, Precision, Seconds, describe, key_of
from ..errors import SettingsError
from ..extensions.settings import ExtendedSettings
from .verl_keys import origin

CONFIG_FORMAT = 3
"""Format of ``resolved_config.yaml``. Raise this number if a release cannot read the files of the previous release."""
COLOCATED, SEPARATE = "colocated", "separate"

_MISSING = "???"
Paths = Annotated[
    tuple[str, ...],
    Field(strict=False),
    BeforeValidator(lambda raw: () if raw in (None, _MISSING) else (raw,) if isinstance(raw, str) else raw),
]
OpenPath = Annotated[str | None, BeforeValidator(lambda raw: None if raw == _MISSING else raw)]


class VerlBlock(Block):
    """A block of verl's configuration. verl checks the keys that the recipe does not read."""

    model_config = ConfigDict(extra="ignore")


class DataConfig(SeedSettings, VerlBlock):
    train_files: Paths
    val_files: Paths
    adapter: str
    """How rows become questions."""
    columns: dict[str, str]
    """Names of the columns in the user's files, if they differ."""
    train_batch_size: Count
    """Questions of a step."""
    train_max_samples: int
    val_max_samples: int
    max_prompt_length: Count
    max_response_length: Count
    shuffle: bool
    filter_overlong_prompts: bool
    """Leave out questions whose prompt is too long for the Code LLM."""
    left_out: tuple[str, ...] = Field(strict=False)
    """Ids of questions that the run leaves out."""
    dataloader_num_workers: Amount
    apply_chat_template_kwargs: dict[str, Any]
    """Arguments of both models' chat templates, such as ``enable_thinking``."""


class ModelConfig(VerlBlock):
    path: OpenPath
    tokenizer_path: str | None
    lora_rank: Amount
    lora_alpha: Count
    lora: dict[str, Any]
    trust_remote_code: bool
    """Run the Python files of the model's folder."""
    custom_chat_template: str | None
    enable_gradient_checkpointing: bool
    use_fused_kernels: bool


class OptimizerConfig(VerlBlock):
    lr: Annotated[float, Field(ge=0)]


class ShardingConfig(VerlBlock):
    param_offload: bool
    optimizer_offload: bool
    offload_policy: bool
    model_dtype: Precision
    mixed_precision: dict[str, Precision] | None = None


class CheckpointConfig(VerlBlock):
    save_contents: list[str]


class ActorConfig(VerlBlock):
    strategy: Literal["fsdp", "fsdp2"]
    ppo_mini_batch_size: Count
    """Number of GRPO groups in an optimizer step."""
    use_dynamic_bsz: bool
    ppo_max_token_len_per_gpu: Count | None
    """With ``use_dynamic_bsz``: tokens of a forward and backward pass. null: one sequence of full length."""
    ppo_micro_batch_size_per_gpu: int | None
    """Without ``use_dynamic_bsz``: responses of a forward and backward pass."""
    use_kl_loss: bool
    optim: OptimizerConfig
    fsdp_config: ShardingConfig
    checkpoint: CheckpointConfig


class ReferenceConfig(VerlBlock):
    fsdp_config: ShardingConfig


class SamplingConfig(VerlBlock):
    do_sample: bool
    """False: always take the likeliest token."""
    temperature: Annotated[float, Field(ge=0)]
    top_p: Annotated[float, Field(gt=0, le=1)]
    top_k: int


class RolloutConfig(SamplingConfig):
    """Settings of a policy's servers. Other keys are kept too, because an evaluation starts its engines with them."""

    model_config = ConfigDict(extra="allow")

    name: str
    n: Annotated[int, SkipValidation]
    """Size of a GRPO group."""
    seed: int
    full_determinism: bool
    prompt_length: Count
    response_length: Count
    tensor_model_parallel_size: Count
    calculate_log_probs: Literal[True]
    """The recipe trains on the log-probabilities that the servers return."""
    val_kwargs: SamplingConfig
    dtype: Literal["auto", "float32", "float", "bfloat16", "float16", "half"]
    max_model_len: Count | None
    enable_chunked_prefill: bool
    max_num_seqs: Count
    max_num_batched_tokens: Count
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)]
    free_cache_engine: bool
    checkpoint_engine: dict[str, Any]
    engine_kwargs: dict[str, Any]


class PolicyConfig(VerlBlock):
    """Settings of one policy: verl's ``actor_rollout_ref`` with the policy's own values."""

    model: ModelConfig
    actor: ActorConfig
    ref: ReferenceConfig
    rollout: RolloutConfig


class PoliciesConfig(VerlBlock):
    code: PolicyConfig
    test: PolicyConfig


class PoolConfig(Block):
    nnodes: Count
    n_gpus_per_node: Count


class PoolsConfig(Block):
    code: PoolConfig
    test: PoolConfig


class TrainerModeConfig(VerlBlock):
    trainer_mode: Literal["code_a1"]
    """Chooses the recipe's trainer. Users leave it out."""


class TrainerConfig(VerlBlock):
    device: Literal["cpu", "cuda"]
    nnodes: Count
    n_gpus_per_node: Count
    total_training_steps: Count | None
    save_freq: int
    test_freq: int
    """Number of steps between two saves or validations. -1: never."""
    val_before_train: bool
    logger: Annotated[list[str], BeforeValidator(lambda raw: [raw] if isinstance(raw, str) else raw)]
    """One name, such as tensorboard, or a list of names."""
    rollout_data_dir: str | None
    validation_data_dir: str | None
    max_actor_ckpt_to_keep: Count | None
    """Number of checkpoints that are kept. null: all."""
    default_local_dir: str
    resume_mode: Literal["auto", "disable", "resume_path"]
    resume_from_path: str | None
    v1: TrainerModeConfig


class CorrectionConfig(VerlBlock):
    bypass_mode: bool
    """Use the servers' log-probabilities instead of computing them in the trainer."""


class AdvantageConfig(VerlBlock):
    rollout_correction: CorrectionConfig
    adv_estimator: Literal["grpo", "grpo_vectorized", "rloo"]
    """Estimators that compare a response only with its group. Others need a critic or would count padding rows."""


class RayConfig(VerlBlock):
    ray_init: dict[str, Any]

    @property
    def address(self) -> str:
        """Address of the cluster to join, or "local". If none were given, Ray would join any local cluster."""
        return str(self.ray_init.get("address") or os.environ.get("RAY_ADDRESS") or "local")


class QueueConfig(VerlBlock):
    backend: dict[str, Any]

    @property
    def num_storage_units(self) -> int:
        """Number of processes that hold the rows of a step."""
        return int(self.backend["SimpleStorage"]["num_data_storage_units"])


class RunConfig(ExtendedSettings):
    """The configuration of a run. ``config.compose.read_config`` makes it."""

    model_config = ConfigDict(extra="ignore")

    config_format: Literal[3]
    """Format of ``resolved_config.yaml``. Users leave it out."""
    run_dir: str
    """The folder that the run writes."""
    resume: Annotated[str, Field(min_length=1)]
    """Checkpoint from which the run continues: auto, never, or the path of a checkpoint or of a run."""
    layout: Literal["colocated", "separate"]
    """colocated: both policies share all GPUs. separate: each policy has its own GPUs."""
    pools: PoolsConfig
    deterministic: bool
    """True: the same seed on the same devices gives the same weights."""
    check_resources: bool = True
    """Refuse a run that this machine has no room for."""
    start_timeout_seconds: Seconds = 3600
    """Longest time in seconds of a start. After this time, the run ends and names what it was waiting for."""
    micro: dict[str, Any] | None
    """Settings of the micro world. null: the user names questions and models."""
    data: DataConfig
    policies: PoliciesConfig
    trainer: TrainerConfig
    algorithm: AdvantageConfig
    ray_kwargs: RayConfig
    transfer_queue: QueueConfig
    _tree: DictConfig = PrivateAttr()

    def __getstate__(self) -> dict[Any, Any]:
        """Leave out hydra's tree. Without the tree, Ray can keep the state to restart a lost worker."""
        return {**super().__getstate__(), "__pydantic_private__": None}

    @classmethod
    def from_tree(cls, tree: DictConfig) -> tuple[Self | None, dict[str, str]]:
        """Check a composed configuration.

        Returns:
            The configuration, or None with a message for each key whose value is out of bounds.
        """
        raw: Any = OmegaConf.to_container(tree, resolve=True)
        for name in POLICY_NAMES:
            policy = merged_policy(tree, name).actor_rollout_ref
            raw["policies"][name] = OmegaConf.to_container(policy, resolve=True)
        try:
            config = cls.model_validate(raw)
        except ValidationError as error:
            problems: dict[str, str] = {}
            for item in error.errors():
                key = origin(tree, key_of(item))
                problems.setdefault(key, describe(item, key, cls))
            return None, problems
        config._tree = tree
        return config, {}

    def policy(self, name: str) -> PolicyConfig:
        policy: PolicyConfig = getattr(self.policies, name)
        return policy

    def num_devices(self, policy: str) -> int:
        """Return the number of a policy's GPUs, or of its processes on a CPU."""
        pool = getattr(self.pools, policy) if self.layout == SEPARATE else self.trainer
        return int(pool.nnodes * pool.n_gpus_per_node)

    def sequence_parts(self, policy: str) -> int:
        """Return the number of devices that share each sequence (Ulysses). verl reads one of two keys."""
        actor = self.for_policy(policy).actor_rollout_ref.actor
        return int(max(actor.ulysses_sequence_parallel_size, actor.fsdp_config.ulysses_sequence_parallel_size))

    def pool_spec(self) -> dict[str, list[int]]:
        """Map the name of each of verl's resource pools to its GPUs on each node. All policies may share one pool."""
        if self.layout == COLOCATED:
            return {COLOCATED: [self.trainer.n_gpus_per_node] * self.trainer.nnodes}
        pools = {name: getattr(self.pools, name) for name in self.policy_names}
        return {name: [pool.n_gpus_per_node] * pool.nnodes for name, pool in pools.items()}

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Make a copy with other values by dotted keys. SettingsError: a value is out of bounds."""
        tree = self.for_verl()
        for key, value in values.items():
            OmegaConf.update(tree, key, value, force_add=True)
        config, problems = self.from_tree(tree)
        if config is None:
            raise SettingsError(*problems.values())
        return config

    def for_verl(self) -> DictConfig:
        """Copy the whole tree for verl's code."""
        return copied(self._tree)

    def for_policy(self, name: str) -> DictConfig:
        """Make the tree of one policy for verl's code. The tree has no block ``policies`` and no interpolations."""
        view = merged_policy(self._tree, name)
        OmegaConf.resolve(view)
        return view

    def to_plain(self) -> dict[str, Any]:
        """Return the whole tree as plain dictionaries with all interpolations resolved."""
        plain: Any = OmegaConf.to_container(self._tree, resolve=True)
        return dict(plain)

    def to_yaml(self) -> str:
        """Return the whole tree as YAML with all interpolations resolved."""
        return OmegaConf.to_yaml(self._tree, resolve=True)


def copied(tree: DictConfig) -> DictConfig:
    """Make a deep copy. Unlike ``copy.deepcopy``, this is fast and thread-safe, and keeps nodes attached."""
    copy: DictConfig = pickle.loads(pickle.dumps(tree))
    return copy


def merged_policy(tree: DictConfig, name: str) -> DictConfig:
    """Merge a policy's own values into ``actor_rollout_ref``.

    Interpolations refer to the merged tree. So a reference to ``actor_rollout_ref.actor`` gives the policy's value.
    """
    view = copied(tree)
    overrides = OmegaConf.to_container(view.pop("policies")[name], resolve=False)
    view.actor_rollout_ref.merge_with(overrides)  # `OmegaConf.merge` would copy both trees again
    if tree.layout == SEPARATE:
        view.trainer.update(tree.pools[name])
    return view
