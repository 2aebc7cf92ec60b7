"""One policy: its worker group, vLLM servers, weight sync, tokenizer, and verl's update phases.

``Policy`` is itself a verl V1 trainer without a loop of its own. The update phases (log-probabilities, group-relative
advantage, actor update, metrics) are verl's methods, called here on this policy's rows; used twice, for "code" and
"test", they never see each other's configuration.
"""

import logging
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import ray
from omegaconf import OmegaConf
from ray.exceptions import RayError
from verl.checkpoint_engine import CheckpointEngineManager
from verl.single_controller.ray import (
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    create_colocated_worker_cls,
)
from verl.trainer.ppo.utils import Role
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.engine_workers import ActorRolloutRefWorker

from ..algorithm.sampling import SamplingParameters
from ..config.run_config import RunConfig
from ..errors import OutageError, SettingsError
from ..verl_plugin.client import PolicyServerManager
from ..verl_plugin.compat import SYNC_MODE
from ..verl_plugin.row_queue import clear_rows
from .episode_actors import load_tokenizer
from .lifecycle.time_limit import in_background, within
from .policy_updates import PolicyUpdates
from .reporting import profiler_arguments
from .sampler import PolicyEndpoint
from .trajectories import StoredRows

logger = logging.getLogger(__name__)

# Above the ports of Ray's workers, below those that Linux hands out by itself.
_FIRST_PORT, _LAST_PORT, _TRIED_PORTS = 20_000, 32_000, 200
_ABANDON_SECONDS = 20.0
_QUEUED = 2
"""Responses asked for of a server at a time, as a multiple of those that it works on at once: an abort or a new weight
does not wait behind a thousand others."""


def _rendezvous_ports() -> list[int]:
    """A random range for torch.distributed's rendezvous.

    verl looks for a free port and lets go of it until the workers listen. One that the system had picked may by then
    belong to any outgoing connection, the first of a fixed range to another run that looked at the same time.
    """
    first = random.SystemRandom().randrange(_FIRST_PORT, _LAST_PORT - _TRIED_PORTS)
    return [first, first + _TRIED_PORTS]


def _sees(_: Any, folder: str) -> bool:
    return Path(folder).is_dir()


def check_shared_folder(folder: str, workers: Sequence[Any]) -> None:
    """Wait until all workers answer, and raise SettingsError where one of them does not see the run's checkpoints.

    Each writes a part of a checkpoint there, and would find out at the first save.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    if not all(ray.get([worker.__ray_call__.remote(_sees, folder) for worker in workers])):
        raise SettingsError(
            f"run_dir: {folder} (trainer.default_local_dir) is not the same folder on every node that trains; name one "
            "that all nodes share"
        )


class Policy(PolicyUpdates):
    """A policy inside :class:`~code_a1_recipe.training.trainer.CodeA1Trainer`.

    Args:
        name: "code" or "test"; also the TransferQueue partition and the prefix of its metrics.
        config: of the run; verl's part of it as this policy sees it becomes ``self.config``.
        pool: the GPUs this policy's workers and servers live on.
        total_updates: actor updates in the whole run, the horizon of the learning-rate schedule.
    """

    def __init__(self, name: str, config: RunConfig, *, pool: RayResourcePool, total_updates: int) -> None:
        for_verl = config.for_policy(name)
        for_verl.actor_rollout_ref.actor.optim.total_training_steps = total_updates
        if name == "code":
            # Room for all repair turns: they add no optimizer step; where few programs failed a step may take fewer.
            for_verl.actor_rollout_ref.actor.ppo_mini_batch_size *= 1 + config.episode.repair_turns
        super().__init__(for_verl)
        self.settings = config
        self.name = name
        self.pool = pool
        self.global_steps = 0

    def _build_replay_buffer(self) -> None:
        """Episodes are awaited, not sampled from a buffer; verl's other branches follow its own sync trainer."""
        self.trainer_mode = SYNC_MODE

    @classmethod
    def start(cls, name: str, config: RunConfig, *, pool: RayResourcePool, total_updates: int) -> Self:
        """Load the model into its workers and start its servers; they sleep until the first weight sync."""
        policy = cls(name, config, pool=pool, total_updates=total_updates)
        start_servers = partial(PolicyServerManager.beside_workers, policy.config, pool)
        servers = in_background(start_servers, name=f"start-{name}-servers")
        policy._start_workers()
        # verl's `_init_tokenizer` would load it twice: the second time to find that a text model has no processor.
        policy.tokenizer = load_tokenizer(config, name)
        check_shared_folder(config.trainer.default_local_dir, policy.actor_rollout_wg.workers)
        policy.actor_rollout_wg.init_model()
        policy.llm_server_manager = servers.result()
        policy.checkpoint_manager = CheckpointEngineManager(
            config=omega_conf_to_dataclass(policy.config.actor_rollout_ref.rollout.checkpoint_engine),
            actor_wg=policy.actor_rollout_wg,
            replicas=policy.llm_server_manager.get_replicas(),
        )
        policy.sleep()
        logger.info("policy=%s model=%s servers=%s", name, config.policy(name).model.path, policy.addresses)
        return policy

    def _start_workers(self) -> None:
        model = self.config.actor_rollout_ref.model
        rank = self.settings.policy(self.name).model.rank_of_lora
        self.ref_in_actor = rank > 0 or model.get("lora_adapter_path") is not None
        is_trained = self.settings.schedule.every(self.name) > 0
        separate_ref = self.use_reference_policy and not self.ref_in_actor and is_trained
        role = str(Role.ActorRolloutRef if separate_ref else Role.ActorRollout)
        worker_class = RayClassWithInitArgs(
            cls=ray.remote(ActorRolloutRefWorker),
            config=self.config.actor_rollout_ref,
            distillation_config=self.config.get("distillation"),
            role=role,
        )
        group = RayWorkerGroup(
            resource_pool=self.pool,
            ray_cls_with_init=create_colocated_worker_cls({role: worker_class}),
            device_name=self.settings.trainer.device,
            master_port_range=_rendezvous_ports(),
            **profiler_arguments(self.config),
        )
        self.actor_rollout_wg = group.spawn(prefix_set=[role])[role]
        self.ref_policy_wg = self.actor_rollout_wg

    @property
    def addresses(self) -> list[str]:
        """OpenAI-compatible HTTP addresses of the servers."""
        return list(self.llm_server_manager.get_addresses())

    def processes(self) -> dict[str, Any]:
        """Handles of the workers and servers, by what a user would call them."""
        workers = {f"worker {rank}": worker for rank, worker in enumerate(self.actor_rollout_wg.workers)}
        servers = {f"server {rank}": one for rank, one in enumerate(self.llm_server_manager.server_handles)}
        return {f"{self.name} policy's {name}": handle for name, handle in (workers | servers).items()}

    def endpoint(self) -> PolicyEndpoint:
        """What an episode worker needs to sample from this policy."""
        rollout = self.config.actor_rollout_ref.rollout
        # The client reads the rollout block alone. Small constructor arguments travel inside Ray's actor specification,
        # without which a dead worker could not be started again.
        plain_rollout = OmegaConf.to_container(rollout, resolve=True)
        client_config = OmegaConf.create({"actor_rollout_ref": {"rollout": plain_rollout}})
        return PolicyEndpoint(
            client=self.llm_server_manager.client(client_config),
            is_seeded=self.settings.deterministic or self.settings.trainer.device == "cpu",
            max_calls=max(1, _QUEUED * rollout.max_num_seqs * len(self.addresses) // self.settings.episode.num_workers),
            training=SamplingParameters.of_rollout(rollout),
            validation=SamplingParameters.of_rollout(rollout, validation=True),
        )

    def sleep(self) -> None:
        """Free the servers' memory for training; they keep no weights.

        Raises:
            OutageError: a server does not answer.
        """
        self._ask_servers(self.checkpoint_manager.sleep_replicas)

    def abandon(self) -> None:
        """End every response under way, whose askers are gone, and free the servers' memory for what is to be saved.

        A server that is gone too, or does not answer within ``_ABANDON_SECONDS``, is passed over: the weights are the
        workers'.
        """

        def give_up() -> None:
            try:
                self.checkpoint_manager.abort_replicas(reject_request=True)
                self.checkpoint_manager.sleep_replicas()
            except RayError as error:
                logger.warning("policy=%s: its servers do not answer: %s", self.name, error)

        if not within(_ABANDON_SECONDS, give_up, name=f"servers-{self.name}"):
            logger.warning("policy=%s: its servers do not answer within %g s", self.name, _ABANDON_SECONDS)

    def sync_weights(self, step: int) -> None:
        """Wake the servers with the trainer's current weights, labelled ``step``.

        Raises:
            OutageError: a server does not answer.
        """
        self._ask_servers(lambda: self.checkpoint_manager.update_weights(step))

    def _ask_servers(self, call: Callable[[], object]) -> None:
        """Call verl's manager, which waits for its servers without a limit of its own."""
        limit = self.settings.episode.generation_timeout_seconds
        if not within(limit, call, name=f"servers-{self.name}"):
            raise OutageError(
                f"a server of the {self.name} policy did not answer within episode.generation_timeout_seconds="
                f"{limit:g} s: it hangs, or the limit is too low"
            )

    def discard(self, rows: StoredRows) -> None:
        """Remove rows of a step in which this policy does not update."""
        if rows.keys:
            clear_rows(keys=list(rows.keys), partition_id=self.name)

    def save(self, folder: Path, *, step: int) -> None:
        """Weights, optimizer, scheduler and random state of every rank, in verl's own format."""
        self.actor_rollout_wg.save_checkpoint(str(folder / "actor"), None, step, max_ckpt_to_keep=None)

    def load(self, folder: Path) -> None:
        self.actor_rollout_wg.load_checkpoint(local_path=str(folder / "actor"), del_local_after_load=False)
        self._empty_caches()

    def _get_n_gpus_for_throughput(self) -> int:
        return int(self.pool.world_size)
