"""The driver of a run: prepares the environment, resolves the configuration, starts Ray, and trains."""

import importlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from ...config.compose import keys_without_effect
from ...config.run_config import SEPARATE, RunConfig
from ...errors import SettingsError
from ...jobs.cores import usable_cores
from ...runs.folder import RunFolder, make_writable, versions_text
from ...verl_plugin.compat import ray_runtime_env
from ...verl_plugin.cpu.environment import cpu_environment
from .crash_notifier import crash_notifier, dismiss_notifier
from .failures import explain
from .leftovers import Leftovers, make_sockets_folder, segments_below
from .signals import InterruptedRunError, SignalHandler
from .stage_clock import StageClock

logger = logging.getLogger(__name__)

_OF_A_CLUSTERS_START = ("num_cpus", "num_gpus", "object_store_memory", "include_dashboard")
"""Arguments of ``ray.init`` that Ray accepts only when it starts a new cluster."""
_CLOSE_SECONDS = 60.0
"""Time limit for ending the processes of a run."""
_VLLM_SOCKETS = "VLLM_RPC_BASE_PATH"
_PLUGIN = "code_a1_recipe.verl_plugin.plugin"


def train(config: RunConfig, *, command: str) -> RunFolder:
    """Train, and return the folder with all files of the run.

    Args:
        config: configuration of the run, not yet resolved.
        command: the command that the user typed, which is recorded in the folder.

    Raises:
        SettingsError: models, data or the folder cannot be used. No process was started.
        Exception: any error that ended the run early. Files that are already written stay.
    """
    leftovers = Leftovers(Path(prepare_environment(config).get(_VLLM_SOCKETS, "")))
    stages = StageClock(RunFolder.show)
    try:
        # verl loads the plug-in by itself, but hides the plug-in's errors. The import below shows such errors.
        import verl  # noqa: F401

        from ...verl_plugin import plugin  # noqa: F401
        from ..resolve import resolve

        stages.ended("verl and the recipe are imported")
        config = resolve(config)
        stages.ended("settings, models and questions are checked")
        folder = _create_folder(config)
        crash = "the trainer's process was ended from outside: killed, out of memory, or with Ray's own processes"
        with folder.lock(), crash_notifier(f"\nerror: {crash}\n{resume_hint(config.run_dir)}\n"):
            folder.resolved_config.write_text(config.to_yaml(), encoding="utf-8")
            with folder.command.open("a", encoding="utf-8") as handle:  # a resumed run adds its command
                handle.write(f"{command}\n# {versions_text()}\n")
            with folder.driver_log.open("a", encoding="utf-8") as log, redirect_stdout(log):
                _run_on_ray(config, folder, leftovers, stages)
        return folder
    finally:
        leftovers.remove()


def _create_folder(config: RunConfig) -> RunFolder:
    trainer = config.trainer
    folders = {
        "run_dir": config.run_dir,
        "trainer.rollout_data_dir": trainer.rollout_data_dir,
        "trainer.validation_data_dir": trainer.validation_data_dir,
    }
    for key, path in folders.items():
        try:
            if path is not None:
                make_writable(Path(path))
        except OSError as error:
            raise SettingsError(f"{key}={path!r} cannot be written: {error}; choose another") from error
    return RunFolder(Path(config.run_dir))


def _run_on_ray(config: RunConfig, folder: RunFolder, leftovers: Leftovers, stages: StageClock) -> None:
    import ray

    from .process_watch import process_watch
    from .start_watch import start_watch

    limit = config.checkpoint.leave_within_seconds
    signals = SignalHandler(leave_within_seconds=limit, show=folder.show, clean_up=leftovers.remove)
    with ThreadPoolExecutor(1) as importer:  # imports the trainer, which takes seconds, while Ray starts
        module = importer.submit(importlib.import_module, "code_a1_recipe.training.trainer")
        ray.init(**_ray_arguments(config))
        CodeA1Trainer = module.result().CodeA1Trainer
    stages.ended("Ray has started")
    trainer = None
    with signals.listening():  # replaces Ray's own handlers
        folder.show(f"run folder: {folder.root}\nworker logs: {ray_log_folder()}")
        for line in keys_without_effect(config):
            folder.show(line)
        usual = "a minute" if config.trainer.device == "cpu" else "four minutes"
        folder.show(f"starting {' and '.join(config.policy_names)} policy and servers (about {usual})")
        try:
            with ExitStack() as watches:
                watch = start_watch(
                    config.start_timeout_seconds,
                    note=lambda waiting: folder.show(f"the start waits: {waiting}"),
                    give_up=lambda why: _exit(f"\nerror: {why}", 1, config, leftovers),
                )
                has_started = watches.enter_context(watch)
                trainer = CodeA1Trainer(config, signals=signals)
                # `_setup` and `on_init_end` are the two parts of verl's `init`. The watch starts between these parts,
                # because the second part would wait for ever if a server is lost.
                trainer._setup()
                processes = process_watch(
                    trainer.processes(),
                    lambda lost: _exit(f"\nerror: the {lost} was lost, and the run waits for it", 1, config, leftovers),
                )
                watches.enter_context(processes)
                trainer.on_init_end()
                trainer.stages.ended("the servers have the first weights")
                has_started()
                leftovers.segments = segments_below(os.getpid())
                trainer.fit(None)
        except KeyboardInterrupt:  # Ray also raises KeyboardInterrupt if a signal comes while Ray waits
            if signals.signal_number is None:
                raise
            raise InterruptedRunError(signals.signal_number, "left at once") from None
        finally:
            _close(trainer, sys.exception(), config, leftovers)


def _ray_arguments(config: RunConfig) -> dict[str, Any]:
    arguments = dict(config.ray_kwargs.ray_init)
    arguments["address"] = config.ray_kwargs.address
    if arguments["address"] != "local":
        # If the cluster runs already, Ray refuses the arguments of a cluster's start.
        arguments = {key: value for key, value in arguments.items() if key not in _OF_A_CLUSTERS_START}
    elif config.trainer.device == "cpu" and arguments.get("num_gpus") is None:
        # A CPU run has logical GPUs, since verl's placement groups count GPUs.
        arguments["num_gpus"] = sum(sum(gpus) for gpus in config.pool_spec().values())
    runtime_env = ray_runtime_env(config.for_verl())
    users_env = arguments.pop("runtime_env", None) or {}
    given = {key: value for key, value in users_env.items() if value is not None}
    checkout = str(Path(__file__).parents[3])
    runtime_env["env_vars"] = {
        **runtime_env["env_vars"],
        **prepare_environment(config),
        "TRANSFER_QUEUE_ENABLE": "1",
        # This variable loads the plug-in on nodes whose installation lacks the entry point.
        "VERL_USE_EXTERNAL_MODULES": _with_another("VERL_USE_EXTERNAL_MODULES", ",", _PLUGIN),
        # Workers must find the recipe even if it is not installed but runs from a checkout.
        "PYTHONPATH": _with_another("PYTHONPATH", os.pathsep, checkout),
        **given.pop("env_vars", {}),
    }
    return {**arguments, "runtime_env": {**runtime_env, **given}}


def _with_another(variable: str, separator: str, item: str) -> str:
    """Put an item in front of the items that an environment variable lists."""
    listed = os.environ.get(variable)
    return f"{item}{separator}{listed}" if listed else item


def prepare_environment(config: RunConfig) -> dict[str, str]:
    """Set environment variables of this process before verl is imported, and return them for Ray's workers.

    A second call sets the same values.
    """
    # Each server gets all cores. Suites are written after the programs, so mostly one of the two servers computes at a
    # time.
    server_threads = _threads(config, at_a_time=False)
    training_threads = _threads(config, at_a_time=config.layout == SEPARATE)
    defaults = {
        "TENSORBOARD_DIR": str(RunFolder(Path(config.run_dir)).tensorboard),
        "VERL_LOGGING_LEVEL": "WARN",
        "VLLM_LOGGING_LEVEL": "ERROR",
        # verl disables vLLM's compile cache, because engines that compiled at the same time wrote broken files. torch
        # 2.10 and newer write each file as a whole (pytorch#162432).
        "VLLM_DISABLE_COMPILE_CACHE": "0",
        # By default Ray starts a process for each logical CPU in advance. The run's actors could not use these
        # processes, since the actors have environment variables of their own.
        "RAY_prestart_worker_first_driver": "0",
        # transformers would report that torchvision is missing, which text models do not need.
        "TRANSFORMERS_VERBOSITY": "error",
    }
    variables = {name: os.environ.get(name) or value for name, value in defaults.items()}
    variables |= {"RAY_USAGE_STATS_ENABLED": "0", "VLLM_NO_USAGE_STATS": "1"}
    rollout = config.policies.code.rollout
    if rollout.full_determinism:
        variables |= {"VERL_FULL_DETERMINISM": "1", "VLLM_BATCH_INVARIANT": "1", "PYTHONHASHSEED": str(rollout.seed)}
    if config.trainer.device == "cpu":
        variables |= cpu_environment(threads=server_threads, training_threads=training_threads)
    # The nodes of a running cluster may lack this folder, so the variable is set only if Ray runs on this machine
    # alone.
    if config.trainer.device == "cpu" or config.ray_kwargs.address == "local":
        variables[_VLLM_SOCKETS] = os.environ.get(_VLLM_SOCKETS) or make_sockets_folder()
    os.environ.update(variables)
    return variables


def _threads(config: RunConfig, *, at_a_time: bool) -> int:
    """Return the number of threads for one policy's process: all cores, or a share if both policies compute at once."""
    if not all(config.policy(name).model.path for name in config.policy_names):
        return 1  # the matrices of the tiny models are too small for more threads
    shares = len(config.policy_names) if at_a_time else 1
    return max(1, usable_cores() // shares)


def ray_log_folder() -> Path:
    """Return the folder of the workers' logs of this Ray session. The folder's path is the same on each node."""
    from ray._private.worker import global_worker

    node = global_worker.node
    return Path(node.get_logs_dir_path()) if node else Path("/tmp/ray/session_latest/logs")


def _close(trainer: Any, failure: BaseException | None, config: RunConfig, leftovers: Leftovers) -> None:
    """Within ``_CLOSE_SECONDS``, end all that the run has started. After a loss, other processes may never answer."""
    import ray

    from ...verl_plugin import row_queue

    def give_up() -> None:
        if failure is None:
            _exit("trained; a process of the run did not end and was left behind", 0, config, leftovers)
        elif isinstance(failure, InterruptedRunError):
            _exit(str(failure), failure.exit_status, config, leftovers)
        else:
            _exit(f"error: {explain(failure, run_dir=config.run_dir) or failure}", 1, config, leftovers)

    timer = threading.Timer(_CLOSE_SECONDS, give_up)
    timer.daemon = True  # so that the timer does not keep the process alive
    timer.start()
    steps: list[Callable[[], object]] = [row_queue.close, ray.shutdown, leftovers.remove]
    if trainer is not None:
        steps.insert(0, trainer.close)
    if (tracking := getattr(trainer, "logger", None)) is not None:
        status = 0 if failure is None else 1
        steps.insert(1, partial(tracking.finish, exit_code=status))
    try:
        for step in steps:
            try:
                step()
            except Exception as error:  # noqa: BLE001  # it must not hide the error that ended the run
                logger.info("closing: %s", error)
    finally:
        timer.cancel()


def _exit(message: str, status: int, config: RunConfig, leftovers: Leftovers) -> None:
    """Print the message and end the process at once, from any thread."""
    RunFolder.show(f"{message}\n{resume_hint(config.run_dir)}" if status else message)
    leftovers.remove()
    dismiss_notifier()
    os._exit(status)


def resume_hint(run_dir: str) -> str:
    """Tell the user how to resume a run that ended early."""
    again = f"repeat the command with run_dir={run_dir}"
    return f"what was written is in {run_dir}. To resume from its newest checkpoint, if there is one, {again}"


def configure_logging() -> None:
    """Log warnings to stderr. ``CODE_A1_LOGGING_LEVEL`` sets another level for the recipe's own packages."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    # The import of verl warns about engines that are not installed, and about a missing critic, which GRPO does not
    # need.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"(verl|torchdata)\.")
    # Each package gets its own level, because the import of vLLM raises the level of the root logger.
    for package in ("code_a1_recipe", "reward_fns", "sandbox"):
        logging.getLogger(package).setLevel(os.environ.get("CODE_A1_LOGGING_LEVEL", "WARNING"))
