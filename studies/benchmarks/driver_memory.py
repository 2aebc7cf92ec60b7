"""Memory of the trainer's process by questions a step: does it hold a step's text or tensors?

    python examples/benchmarks/driver_memory.py [--questions 256 1024 4096] [--folder outputs/driver_memory]

Real trainer, real policies, real queue and real updates; responses and verdicts are scripted (random tokens of random
length), so that a large step takes minutes. One job for each number of questions, two steps each; the second one is
looked at, every 20 ms. Prints a line for each and the growth from the first to the last. Nothing else may run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from code_a1_recipe.algorithm.episode_types import Message, Response
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.lifecycle.launch import configure_logging, prepare_environment, train
from sandbox import CandidateVerdict, CaseOutcome, CaseResult, JudgeRequest, SuiteVerdict

PROGRAM, ASSERT = "def f(x):\n    return x", "assert f(1) == 1"
SHORTEST, LONGEST = 8, 48
SETTINGS = (
    "episode.num_candidates=2",
    "episode.num_suites=2",
    "data.train_max_samples=-1",
    "trainer.total_training_steps=2",
    "trainer.save_freq=-1",
    "trainer.test_freq=-1",
    "trainer.val_before_train=false",
    "validation.hidden_in_training=false",
)


class ScriptedSampler:
    """Random tokens of a random length; the text is a program or an assert, as whoever asks expects."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def sample(self, messages: Sequence[Message], *, seed: int, session: str) -> Response:
        chance = random.Random(seed)
        tokens = tuple(chance.randrange(5, 50) for _ in range(chance.randint(SHORTEST, LONGEST)))
        return Response(
            prompt_ids=tuple(range(5, 45)),
            token_ids=tokens,
            log_probs=(-1.0,) * len(tokens),
            text=self._text,
            policy_version=0,
        )


class ScriptedJudge:
    """Every second program breaks."""

    def __init__(self) -> None:
        self._chance = random.Random(0)

    async def judge(self, request: JudgeRequest) -> CandidateVerdict:
        outcome = self._chance.choice([CaseOutcome.PASSED, CaseOutcome.WRONG_VALUE])
        case = CaseResult(
            call="f(1)", reference_value="1", expected="1", expected_correct=True, outcome=outcome, key="1"
        )
        suites = tuple(SuiteVerdict(cases=(case,), rejections=()) for _ in request.suites)
        return CandidateVerdict(
            loaded=True, load_error="", suites=suites, history=(), dropped_history=(), cpu_seconds=0.0, wall_seconds=0.0
        )


def script_the_episodes() -> None:
    """Make the run's episode workers ask nobody."""
    import code_a1_recipe.training.episode_actors as episode_worker  # imports verl, which reads the run's environment

    class ScriptedWorker(episode_worker.EpisodeWorker):
        def _sampler(self, name: str, parameters: Any) -> Any:
            return ScriptedSampler(PROGRAM if name == "code" else ASSERT)

        def _runner(self, judges: Any, *, validate: bool) -> Any:
            return super()._runner(ScriptedJudge(), validate=validate)

    episode_worker.EpisodeWorker = ScriptedWorker  # type: ignore[misc]


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as handle:
        return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """The most memory this process had while the block ran, in bytes."""

    def __enter__(self) -> Watch:
        self.before = self.most = resident_bytes()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.02):
            self.most = max(self.most, resident_bytes())


def one_job(folder: Path, questions: int) -> None:
    """Train two steps in this process and write what the second one took."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / f"questions_{questions}.jsonl"
    row = {"prompt": "Write f.", "reference": PROGRAM, "entry_points": ["f"]}
    data.write_text("".join(json.dumps({**row, "id": f"q{number}"}) + "\n" for number in range(questions)))
    settings = [*SETTINGS, f"data.train_files={data}", f"data.train_batch_size={questions}"]
    settings += [f"actor_rollout_ref.actor.ppo_mini_batch_size={questions}"]  # one update a policy
    settings += [f"policies.test.actor.ppo_mini_batch_size={questions}"]
    configure_logging()
    config = read_config("cpu", [*settings, f"run_dir={folder / f'run_{questions}'}"])
    prepare_environment(config)
    script_the_episodes()
    from code_a1_recipe.training.trainer import CodeA1Trainer

    step = CodeA1Trainer.step

    def watched(self: CodeA1Trainer, metrics: Any, timing_raw: Any) -> Any:
        with Watch() as watch:
            result = step(self, metrics, timing_raw)
        found = {"questions": questions, "before": watch.before, "most": watch.most, "step": self.global_steps}
        (folder / f"memory_{questions}.json").write_text(json.dumps(found))
        return result

    CodeA1Trainer.step = watched  # type: ignore[method-assign]
    train(config)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("outputs/driver_memory"))
    parser.add_argument("--questions", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one_job(options.folder.absolute(), options.one)
        return
    most = []
    for questions in options.questions:
        command = [sys.executable, __file__, "--folder", str(options.folder), "--one", str(questions)]
        options.folder.mkdir(parents=True, exist_ok=True)
        with (options.folder / f"job_{questions}.log").open("w") as log:
            subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT)
        found = json.loads((options.folder / f"memory_{questions}.json").read_text())
        most.append(found["most"])
        print(
            f"{questions:5d} questions a step: {found['before'] / 2**20:.0f} MiB before the step, at most "
            f"{found['most'] / 2**20:.0f} MiB in it",
            flush=True,
        )
    first, last = options.questions[0], options.questions[-1]
    print(f"{last} questions against {first}: {most[-1] / most[0]:.2f} times the memory")


if __name__ == "__main__":
    main()
