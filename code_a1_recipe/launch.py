"""From a composed configuration to a finished run, in this process: checks, Ray, TransferQueue, trainer."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from . import shared_memory
from .compose import pool_spec, to_yaml
from .cpu.environment import cpu_environment
from .failures import explain
from .interruption import InterruptedRunError, Interruption
from .last_words import have_spoken, last_words
from .run_folder import FolderInUseError, RunFolder
from .schedule import POLICY_NAMES
from .settings import SettingsError
from .versions import versions_text

logger = logging.getLogger(__name__)

CPU_THREADS = 1
_OF_A_CLUSTERS_START = ("num_cpus", "num_gpus", "object_store_memory", "include_dashboard")
"""Arguments of ``ray.init`` that a cluster which runs already has had."""
_CLOSE_SECONDS = 60.0
"""That the processes of a run may take to end."""
VLLM_SOCKETS = "VLLM_RPC_BASE_PATH"


def name_run(config: DictConfig, preset: str) -> None:
    """Fill ``run_dir`` where the user left it open: ``outputs/<preset>-<time>``."""
    if not config.run_dir:
        config.run_dir = str(Path("outputs") / f"{Path(preset).stem}-{datetime.now():%Y%m%d-%H%M%S}")
    config.run_dir = str(Path(config.run_dir).absolute())


def apply_resume(config: DictConfig) -> None:
    """Put ``resume`` into verl's own keys, which the rest reads.

    Raises:
        SettingsError: it is neither auto, never nor a path.
    """
    resume = config.resume
    if not isinstance(resume, str) or not resume:
        raise SettingsError(f"resume must be auto, never or the path of a checkpoint or run, got {resume!r}")
    if resume == "never":
        config.trainer.resume_mode = "disable"
    elif resume != "auto":
        config.trainer.resume_mode = "resume_path"
        config.trainer.resume_from_path = str(Path(resume).expanduser().absolute())


def prepare_environment(config: DictConfig) -> dict[str, str]:
    """Set this process's environment before verl is imported; the same variables go to every Ray worker."""
    variables = {
        "TENSORBOARD_DIR": str(RunFolder(Path(config.run_dir)).tensorboard),
        "RAY_USAGE_STATS_ENABLED": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VERL_LOGGING_LEVEL": os.environ.get("VERL_LOGGING_LEVEL", "WARN"),
        "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"),
        # verl is imported for its text models; transformers reports that torchvision is missing all the same.
        "TRANSFORMERS_VERBOSITY": os.environ.get("TRANSFORMERS_VERBOSITY", "error"),
    }
    rollout = config.actor_rollout_ref.rollout
    if rollout.full_determinism:
        variables |= {"VERL_FULL_DETERMINISM": "1", "VLLM_BATCH_INVARIANT": "1", "PYTHONHASHSEED": str(rollout.seed)}
    if config.trainer.device == "cpu":
        variables |= cpu_environment(threads=CPU_THREADS)
        # vLLM leaves its sockets behind; in a folder of their own they can be removed.
        variables[VLLM_SOCKETS] = os.environ.get(VLLM_SOCKETS) or tempfile.mkdtemp(prefix="code-a1-")
    os.environ.update(variables)
    return variables


def _ray_arguments(config: DictConfig, variables: dict[str, str]) -> dict[str, Any]:
    from verl.trainer.constants_ppo import get_ppo_ray_runtime_env

    arguments: Any = OmegaConf.to_container(config.ray_kwargs.ray_init, resolve=True)
    # A cluster of its own unless one is named: without an address Ray would join whatever runs on this machine.
    arguments["address"] = arguments.get("address") or os.environ.get("RAY_ADDRESS") or "local"
    if arguments["address"] != "local":
        arguments = {key: value for key, value in arguments.items() if key not in _OF_A_CLUSTERS_START}
    elif config.trainer.device == "cpu" and arguments.get("num_gpus") is None:
        # Logical: verl's placement groups count devices.
        arguments["num_gpus"] = sum(sum(gpus) for gpus in pool_spec(config, POLICY_NAMES).values())
    runtime_env = get_ppo_ray_runtime_env(config)
    given = {key: value for key, value in (arguments.pop("runtime_env", None) or {}).items() if value is not None}
    runtime_env["env_vars"] = {
        **runtime_env["env_vars"],
        **variables,
        "TRANSFER_QUEUE_ENABLE": "1",
        # The recipe must be importable in every worker, also from a checkout that is not installed.
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")])),
        **given.pop("env_vars", {}),
    }
    return {**arguments, "runtime_env": {**runtime_env, **given}}


def train(config: DictConfig, *, command: str = "") -> RunFolder:
    """Train as the configuration says; returns the folder with everything the run wrote.

    ``command`` is what the user typed, kept in the folder.

    Raises:
        SettingsError: the configuration cannot work; nothing was started.
        Exception: what ended the run early; whatever was written until then stays.
    """
    apply_resume(config)
    variables = prepare_environment(config)
    try:
        return _train(config, variables, command)
    finally:
        _remove_sockets(variables)


def _train(config: DictConfig, variables: dict[str, str], command: str) -> RunFolder:
    folder = RunFolder(Path(config.run_dir))
    # verl loads the plugin by itself and hides what goes wrong there; imported by name, it says so.
    import verl  # noqa: F401

    from . import plugin  # noqa: F401
    from .preflight import check_run

    with contextlib.redirect_stdout(io.StringIO()):  # verl prints that it is content
        check_run(config)
    try:
        folder.create()
    except OSError as error:
        raise SettingsError(f"run_dir={config.run_dir!r} cannot be made: {error}; choose another") from error
    config.transfer_queue.enable = True
    OmegaConf.resolve(config)
    try:
        words = "the trainer's process was ended from outside: killed, out of memory, or with Ray's own processes"
        with folder.lock(), last_words(f"\nerror: {words}\n{how_to_go_on(config.run_dir)}\n"):
            _train_in(folder, config, variables, command)
    except FolderInUseError as error:
        raise SettingsError(f"run_dir={config.run_dir!r}: {error}, or choose another folder") from error
    return folder


def _train_in(folder: RunFolder, config: DictConfig, variables: dict[str, str], command: str) -> None:
    folder.resolved_config.write_text(to_yaml(config), encoding="utf-8")
    with folder.command.open("a", encoding="utf-8") as handle:  # for each start, what it ran on
        handle.write(f"{command}\n# {versions_text()}\n")

    with folder.driver_log.open("a", encoding="utf-8") as log, contextlib.redirect_stdout(log):
        _run_on_ray(config, variables, folder)


def ray_log_folder() -> Path:
    """Where the workers of the running Ray session log, on each node."""
    from ray._private.worker import global_worker

    node = global_worker.node
    return Path(node.get_logs_dir_path()) if node else Path("/tmp/ray/session_latest/logs")


def _run_on_ray(config: DictConfig, variables: dict[str, str], folder: RunFolder) -> None:
    import ray

    from . import trainer  # noqa: F401  # its imports take seconds and end before Ray's processes start

    limit = float(config.checkpoint.leave_within_seconds)
    leftovers = _Leftovers(variables)
    interruption = Interruption(leave_within_seconds=limit, say=folder.show, clean_up=leftovers.remove)
    ray.init(**_ray_arguments(config, variables))
    with interruption.listening():  # in place of Ray's own handlers
        folder.show(f"run folder: {folder.root}\nworker logs: {ray_log_folder()}")
        folder.show("starting two policies and their servers (about a minute on a small machine)")
        try:
            _fit(config, interruption, leftovers)
        except KeyboardInterrupt:  # Ray raises one of its own, without words, where a signal meets it waiting
            if interruption.signal_number is None:
                raise
            raise InterruptedRunError(interruption.signal_number, "left at once") from None


@dataclass
class _Leftovers:
    """What outlives the processes of a run on this machine, for whoever ends this one without unwinding."""

    variables: dict[str, str]
    segments: set[Path] = field(default_factory=set)

    def remove(self) -> None:
        shared_memory.remove(self.segments)
        _remove_sockets(self.variables)


def _fit(config: DictConfig, interruption: Interruption, leftovers: _Leftovers) -> None:
    import transfer_queue as tq

    from .process_watch import ProcessWatch
    from .trainer import CodeA1Trainer

    trainer = None
    failure: BaseException | None = None
    try:
        tq.init(config.transfer_queue)
        trainer = CodeA1Trainer(config, interruption=interruption)
        trainer.init()
        leftovers.segments = shared_memory.segments_below(os.getpid())

        def give_up(lost: str) -> None:
            RunFolder.show(f"\nerror: the {lost} was lost, and the run waits for it\n{how_to_go_on(config.run_dir)}")
            leftovers.remove()
            have_spoken()
            os._exit(1)

        with ProcessWatch(trainer.processes(), give_up):
            trainer.fit(None)
    except BaseException as error:
        failure = error
        raise
    finally:
        _close(trainer, failure, leftovers, run_dir=config.run_dir)


def _close(trainer: Any, failure: BaseException | None, leftovers: _Leftovers, *, run_dir: str) -> None:
    """End everything that the run started. With a part of it lost the rest may never answer: that has a limit."""
    import ray
    import transfer_queue as tq

    def give_up() -> None:
        """What is to be said is said here: the process does not come back to where it would be."""
        have_spoken()
        leftovers.remove()
        if failure is None:
            RunFolder.show("trained; a process of the run did not end and was left behind")
            os._exit(0)
        if isinstance(failure, InterruptedRunError):
            RunFolder.show(f"interrupted by {failure}; {how_to_go_on(run_dir)}")
            os._exit(failure.exit_status)
        RunFolder.show(f"error: {explain(failure, run_dir=run_dir) or failure}\n{how_to_go_on(run_dir)}")
        os._exit(1)

    timer = threading.Timer(_CLOSE_SECONDS, give_up)
    timer.daemon = True
    timer.start()
    tracking = getattr(trainer, "logger", None)
    steps: list[Callable[[], object]] = [trainer.close] if trainer is not None else []
    steps += [lambda: tracking.finish(exit_code=0 if failure is None else 1)] if tracking is not None else []
    try:
        for step in (*steps, tq.close, ray.shutdown, leftovers.remove):
            try:
                step()
            except Exception as error:  # noqa: BLE001  # what ended the run matters, not what its end runs into
                logger.info("closing: %s", error)
    finally:
        timer.cancel()


def how_to_go_on(run_dir: str) -> str:
    """What a user whose run broke off can do."""
    again = f"repeat the command with run_dir={run_dir}"
    return f"what was written is in {run_dir}. To go on from its newest checkpoint, {again}"


def _remove_sockets(variables: dict[str, str]) -> None:
    folder = Path(variables.get(VLLM_SOCKETS, ""))
    if folder.name.startswith("code-a1-"):  # made by this run, not named by the user
        shutil.rmtree(folder, ignore_errors=True)


def configure_logging() -> None:
    """Warnings of everyone and infos of the recipe, on stderr."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    # verl warns at import about every engine that is not installed, and about the critic that GRPO has none of.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"(verl|torchdata)\.")
    # Levels of their own, because importing vLLM raises the root logger's.
    for package in ("code_a1_recipe", "reward_fns", "sandbox"):
        logging.getLogger(package).setLevel(os.environ.get("CODE_A1_LOGGING_LEVEL", "WARNING"))
