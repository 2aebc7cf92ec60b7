"""A run on a Ray cluster of two nodes on this machine, whose worker node's sandbox and servers are sabotaged.

Starts both nodes, trains, prints one line for each thing done, and ends both nodes.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

# The same for both nodes and this process; Ray reads it once, when it is imported.
os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}

import ray

sys.path.insert(0, str(Path(__file__).parents[1]))
from processes import matching

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.lifecycle.launch import configure_logging, prepare_environment, train
from code_a1_recipe.verl_plugin.cpu.environment import cpu_environment

NODE = ["--num-cpus=16", "--num-gpus=1", "--object-store-memory=268435456", "--disable-usage-stats", "--block"]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start_node(*arguments: str) -> subprocess.Popen:
    ray_command = str(Path(sys.executable).with_name("ray"))
    environment = {**os.environ, **cpu_environment(threads=1)}
    return subprocess.Popen(
        [ray_command, "start", *arguments, *NODE], env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )


def wait_for_nodes(address: str, number: int) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        except (ConnectionError, RuntimeError, ValueError):
            time.sleep(1)
            continue
        alive = sum(node["Alive"] for node in ray.nodes())
        ray.shutdown()
        if alive == number:
            return
        time.sleep(1)
    raise SystemExit(f"the cluster at {address} did not get {number} nodes")


def say(line: str) -> None:
    """Past the run's own redirection of its output."""
    os.write(2, f"{line}\n".encode())


def sabotage(nodes: list[subprocess.Popen], step: int) -> None:
    """While episodes run: the sandbox of the second node is killed, in step 3 one of its servers stops answering."""
    time.sleep(0.5)
    for name, words in (("workers", "ray::WorkerDict"), ("servers", "ray::PolicyHttpServer")):
        say(f"{name} on each node: {[len(matching(words, node.pid)) for node in nodes]}")
    actors = [matching("ray::JudgeWorker", node.pid) for node in nodes]
    say(f"judges on each node: {[len(pids) for pids in actors]}")
    if step == 3:
        os.kill(matching("ray::PolicyHttpServer", nodes[1].pid)[0], signal.SIGSTOP)
        say("stopped a server of the worker node")
        return
    for pid in actors[1]:
        os.kill(pid, signal.SIGKILL)
        say("killed a judge of the worker node")


def main() -> None:
    configure_logging()
    port = free_port()
    address = f"127.0.0.1:{port}"
    nodes = [start_node("--head", f"--port={port}", "--include-dashboard=false")]
    try:
        wait_for_nodes(address, 1)
        nodes.append(start_node(f"--address={address}"))
        wait_for_nodes(address, 2)
        config = read_config("cpu", [f"+ray_kwargs.ray_init.address={address}", *sys.argv[1:]])
        prepare_environment(config)

        from code_a1_recipe.training import policy
        from code_a1_recipe.training.trainer import CodeA1Trainer

        policy._ABANDON_SECONDS = 3.0
        run_episodes = CodeA1Trainer._run_episodes

        def watched(self, questions, metrics):
            saboteur = threading.Thread(target=sabotage, args=(nodes, self.global_steps))
            saboteur.start()
            try:
                return run_episodes(self, questions, metrics)
            finally:
                saboteur.join()

        CodeA1Trainer._run_episodes = watched
        train(config, command="")
    finally:
        for node in reversed(nodes):  # a node whose head is gone takes its time to leave
            node.terminate()  # it ends its own processes, in their order
            node.wait(120)
        (Path(tempfile.gettempdir()) / "ray" / "ray_current_cluster").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
