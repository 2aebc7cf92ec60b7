"""One policy: its workers, vLLM servers, weight sync, tokenizer, and verl's update phases."""

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import ray
from omegaconf import OmegaConf
from ray.exceptions import RayError

from ..algorithm.sampling import SamplingParameters
from ..config.run_config import RunConfig
from ..errors import CodeA1Error, OutageError, SettingsError
from ..runs.metrics import check_served_weights
from ..verl_plugin.client import PolicyServerManager
from ..verl_plugin.compat import rename_training_metrics
from ..verl_plugin.phases import UpdatePhases
from ..verl_plugin.row_queue import clear_rows
from ..verl_plugin.sampler import PolicyEndpoint, load_tokenizer
from ..verl_plugin.trajectories import StoredRows
from ..verl_plugin.workers import start_workers
from .lifecycle.time_limit import in_background, within

logger = logging.getLogger(__name__)

_MOST_LEFT_OUT = 5
"""The run ends after this number of updates in a row without a finite gradient. verl skips such updates."""
_COMPARE_EVERY = 10
"""Number of steps between two looks at a policy that does not train."""
_ABANDON_SECONDS = 20.0
_QUEUED = 2
"""Largest number of open requests of a server, as a multiple of the requests that the server computes at a time. With a
larger multiple, an abort or a weight sync would wait for a thousand requests."""


def _empty_cache(_: Any) -> None:
    import torch

    torch.cuda.empty_cache()


def _sees(_: Any, folder: str) -> bool:
    return Path(folder).is_dir()


def check_shared_folder(folder: str, workers: Sequence[Any]) -> None:
    """Wait until all workers answer, and raise SettingsError if one of them does not see the folder of checkpoints.

    Each worker writes its part of a checkpoint to this folder. Without the check, a run without a shared folder would
    fail at the first save.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    if not all(ray.get([worker.__ray_call__.remote(_sees, folder) for worker in workers])):
        raise SettingsError(
            f"run_dir: {folder} (trainer.default_local_dir) is not the same folder on every node that trains; name a "
            "folder that all nodes share"
        )


class Policy:
    """A policy inside :class:`~code_a1_recipe.training.trainer.CodeA1Trainer`.

    Args:
        name: "code" or "test". The name is also the partition of the TransferQueue and the prefix of metrics.
        config: configuration of the run. ``self.config`` is the part of the configuration that verl reads for this
            policy.
        pool: verl's pool of the GPUs for this policy's workers and servers.
        total_updates: number of actor updates in the whole run, which is the length of the learning-rate schedule.
    """

    def __init__(self, name: str, config: RunConfig, *, pool: Any, total_updates: int) -> None:
        self.config = config.for_policy(name)
        actor = self.config.actor_rollout_ref.actor
        actor.optim.total_training_steps = total_updates
        self.settings = config
        self.name = name
        self.pool = pool
        self._left_out = 0

    @classmethod
    def start(cls, name: str, config: RunConfig, *, pool: Any, total_updates: int) -> Self:
        """Load the model into new workers, and start servers, which sleep until the first weight sync."""
        policy = cls(name, config, pool=pool, total_updates=total_updates)
        # Servers and workers can start at the same time, since both mostly import packages and load weights.
        servers = in_background(
            partial(PolicyServerManager.beside_workers, policy.config, pool), name=f"start-{name}-servers"
        )
        policy.start_workers()
        policy.phases = UpdatePhases(
            policy.config,
            name=name,
            workers=policy.workers,
            tokenizer=load_tokenizer(config, name),
            has_adapter=policy._has_adapter,
            num_gpus=config.num_devices(name),
        )
        check_shared_folder(config.trainer.default_local_dir, policy.workers.workers)
        policy.workers.init_model()
        policy.llm_server_manager = servers.result()
        policy.checkpoint_manager = policy.llm_server_manager.weight_sync(policy.workers)
        policy.sleep()
        logger.info("policy=%s model=%s servers=%s", name, config.policy(name).model.path, policy.addresses)
        return policy

    def start_workers(self) -> None:
        """Start the workers, which wait for ``init_model``."""
        is_trained = self.settings.schedule.every(self.name) > 0
        uses_reference = self.config.actor_rollout_ref.actor.use_kl_loss or self.config.algorithm.use_kl_in_reward
        # With an adapter, the reference is the policy's model without the adapter.
        with_reference = uses_reference and is_trained and not self._has_adapter
        self.workers = start_workers(
            self.config,
            pool=self.pool,
            with_reference=with_reference,
            device=self.settings.trainer.device,
        )

    @property
    def _has_adapter(self) -> bool:
        rank = self.settings.policy(self.name).model.lora_rank
        return rank > 0 or self.config.actor_rollout_ref.model.get("lora_adapter_path") is not None

    def update(self, rows: StoredRows, *, step: int, epoch: int) -> dict[str, float]:
        """Make one GRPO update on the stored rows, and remove them from the queue.

        Returns:
            verl's metrics of the update under verl's names, but without the prefix ``training/``.

        Raises:
            OutageError: the servers sampled with other weights than the trained weights, or the update hangs.
            CodeA1Error: the gradient was NaN or infinite ``_MOST_LEFT_OUT`` times in a row.
        """
        metrics: dict[str, float] = {}

        def update() -> None:
            # An error of the check ends the run, so that no step is saved that learned from responses of wrong weights.
            check = partial(self._check_served, step=step)
            metrics.update(self.phases.update(rows, step=step, epoch=epoch, check=check))

        self._ask_workers(update, step=step)
        self._check_gradient(metrics, step=step)
        self._empty_caches()
        return rename_training_metrics(metrics)

    def _ask_workers(self, call: Callable[[], object], *, step: int) -> None:
        limit = self.settings.schedule.update_timeout_seconds
        if not within(limit, call, name=f"update-{self.name}"):
            raise OutageError(
                f"step {step}: the update of the {self.name} policy did not end within schedule.update_timeout_seconds="
                f"{limit:g} s: a worker or the queue's storage hangs, or the limit is too low"
            )

    def _check_served(self, metrics: dict[str, float], *, step: int) -> None:
        known = {f"{self.name}/{key}": value for key, value in rename_training_metrics(metrics).items()}
        check_served_weights(known, limit=self.settings.episode.max_log_probs_diff, step=step)

    def leave_out(self, rows: StoredRows, *, step: int) -> dict[str, float]:
        """Remove rows on which this policy does not train. At some steps, first check what its servers sampled.

        Returns:
            The metrics of the comparison, or {}.
        """
        metrics: dict[str, float] = {}
        if rows.keys and step % _COMPARE_EVERY == 1:
            self._ask_workers(lambda: self.phases.compare(self.phases.stored(rows), metrics), step=step)
            self._check_served(metrics, step=step)
            self._empty_caches()
        self.discard(rows)
        return rename_training_metrics(metrics)

    def _check_gradient(self, metrics: dict[str, float], *, step: int) -> None:
        """Count the updates in a row that verl skipped because the gradient was NaN or infinite."""
        is_number = math.isfinite(metrics.get("actor/grad_norm", 0.0))
        self._left_out = 0 if is_number else self._left_out + 1
        if self._left_out >= _MOST_LEFT_OUT:
            raise CodeA1Error(
                f"step {step}: the gradient of the {self.name} policy was no number {self._left_out} steps in a row, "
                "so nothing was learned; resume from an earlier step with a lower learning rate"
            )
        metrics["actor/updates_left_out"] = float(self._left_out)

    def _empty_caches(self) -> None:
        """Free the GPU memory that torch caches, since the other policy or vLLM needs it next."""
        if self.settings.trainer.device == "cuda":
            ray.get([worker.__ray_call__.remote(_empty_cache) for worker in self.workers.workers])

    @property
    def addresses(self) -> list[str]:
        """Return the OpenAI-compatible HTTP addresses of the servers."""
        return list(self.llm_server_manager.get_addresses())

    def processes(self) -> dict[str, Any]:
        """Return handles of the workers and servers, by names that a user understands."""
        groups = {"worker": self.workers.workers, "server": self.llm_server_manager.server_handles}
        processes = {}
        for kind, handles in groups.items():
            for rank, handle in enumerate(handles):
                processes[f"{self.name} policy's {kind} {rank}"] = handle
        return processes

    def endpoint(self) -> PolicyEndpoint:
        """Return what an episode worker needs to sample from this policy."""
        settings, rollout = self.settings, self.config.actor_rollout_ref.rollout
        # The client reads only the rollout block. Every episode sends the endpoint to a worker, so the endpoint must be
        # small.
        plain_rollout = OmegaConf.to_container(rollout, resolve=True)
        client_config = OmegaConf.create({"actor_rollout_ref": {"rollout": plain_rollout}})
        most_requests = _QUEUED * rollout.max_num_seqs * len(self.addresses)
        return PolicyEndpoint(
            client=self.llm_server_manager.client(client_config),
            is_seeded=settings.deterministic or settings.trainer.device == "cpu",
            max_calls=max(1, most_requests // settings.episode.num_workers),
            training=SamplingParameters.of_rollout(rollout),
            validation=SamplingParameters.of_rollout(rollout, validation=True),
        )

    def sleep(self) -> None:
        """Free the servers' memory for training. The servers then hold no weights.

        Raises:
            OutageError: a server does not answer.
        """
        self._ask_servers(self.checkpoint_manager.sleep_replicas)

    def abandon(self) -> None:
        """Abort every unfinished response, and free the servers' memory for a save.

        Ignore a server that is gone or does not answer within ``_ABANDON_SECONDS``. Nothing is lost, because the
        workers hold the weights.
        """

        def give_up() -> None:
            try:
                self.checkpoint_manager.abort_replicas(reject_request=True)
                self.checkpoint_manager.sleep_replicas()
            except RayError as error:
                logger.warning("policy=%s: a server does not answer: %s", self.name, error)

        if not within(_ABANDON_SECONDS, give_up, name=f"servers-{self.name}"):
            logger.warning("policy=%s: a server does not answer within %g s", self.name, _ABANDON_SECONDS)

    def sync_weights(self, step: int) -> None:
        """Wake the servers with the workers' current weights, whose version is ``step``.

        Raises:
            OutageError: a server does not answer.
        """
        self._ask_servers(lambda: self.checkpoint_manager.update_weights(step))

    def _ask_servers(self, call: Callable[[], object]) -> None:
        """Call a function of verl's manager with a time limit, since verl would wait for its servers for ever."""
        limit = self.settings.episode.generation_timeout_seconds
        if not within(limit, call, name=f"servers-{self.name}"):
            raise OutageError(
                f"a server of the {self.name} policy did not answer within episode.generation_timeout_seconds="
                f"{limit:g} s: it hangs, or the limit is too low"
            )

    def discard(self, rows: StoredRows) -> None:
        """Remove stored rows that this policy does not train on."""
        if rows.keys:
            clear_rows(keys=list(rows.keys), partition_id=self.name)

    def save(self, folder: Path, *, step: int) -> None:
        """Save weights, optimizer, scheduler and random state of every rank, in verl's own format."""
        self.workers.save_checkpoint(str(folder / "actor"), global_step=step)

    def load(self, folder: Path) -> None:
        """Load what ``save`` has written."""
        self.workers.load_checkpoint(str(folder / "actor"))
        self._empty_caches()
