"""A run in which fork servers, a judge process, candidates and an episode worker are killed while episodes run.

Prints one line for each kill, so that the test knows that they happened.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from processes import age_of, children_of, command_of, descendants

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.lifecycle.launch import configure_logging, prepare_environment, train

# A fork server that starts is left alone: three in a row that die while they start rightly make a judge give up.
STARTED_SECONDS = 2.0
KILLS_PER_KIND = {"fork server": 2, "judge": 1, "candidate": 5, "episode worker": 1}


def targets() -> dict[str, list[int]]:
    """Processes of this run's sandbox by kind: a judge is a parent of fork servers, a candidate a child of one."""
    mine = descendants(os.getpid())  # not those of another run beside this one
    tree = {parent: pids for parent, pids in children_of().items() if parent in mine}
    found: dict[str, list[int]] = {"fork server": [], "judge": [], "candidate": [], "episode worker": []}
    for parent, pids in tree.items():
        fork_servers = [pid for pid in pids if "fork_server_main" in command_of(pid)]
        if fork_servers and "JudgeWorker" in command_of(parent):
            found["judge"].append(parent)
            fork_servers = [pid for pid in fork_servers if age_of(pid) > STARTED_SECONDS]
            found["fork server"] += fork_servers
            found["candidate"] += [child for pid in fork_servers for child in tree.get(pid, [])]
    if found["candidate"]:  # the worker is to die with episodes under way
        everyone = [pid for pids in tree.values() for pid in pids]
        found["episode worker"] = [pid for pid in everyone if "ray::EpisodeWorker" in command_of(pid)]
    return found


def sabotage(stop: threading.Event) -> None:
    left = dict(KILLS_PER_KIND)
    while not stop.is_set() and any(left.values()):
        for kind, pids in targets().items():
            if left[kind] and pids:
                try:
                    os.kill(pids[-1], signal.SIGKILL)
                except ProcessLookupError:
                    continue
                left[kind] -= 1
                os.write(2, f"killed a {kind}\n".encode())
        time.sleep(0.02)


def main() -> None:
    configure_logging()
    config = read_config("cpu", sys.argv[1:])
    prepare_environment(config)

    from code_a1_recipe.training.trainer import CodeA1Trainer

    run_episodes = CodeA1Trainer._run_episodes

    def sabotaged(self, questions, metrics):
        stop = threading.Event()
        saboteur = threading.Thread(target=sabotage, args=(stop,))
        saboteur.start()
        try:
            return run_episodes(self, questions, metrics)
        finally:
            stop.set()
            saboteur.join()

    CodeA1Trainer._run_episodes = sabotaged
    train(config, command="")


if __name__ == "__main__":
    main()
