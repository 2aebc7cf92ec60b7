"""AdversarialCodeTrainer: the recipe's trainer on questions that are Python dictionaries, in a script or a notebook."""

import ctypes
import json
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from reward_fns import AdversarialReward

from ..config.compose import quoted
from ..data.reader import read_questions
from ..errors import CodeA1Error, InputError
from ..files import fingerprint, json_lines, write_whole
from ..runs.reader import RunRecords
from .mistake_book import check_count

_KEPT_LINES = 40
"""Last lines of a training process that are searched for its error."""
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when the one that started it is gone."""


class AdversarialCodeTrainer:
    """Trains a Code LLM and a Test LLM against each other; every call goes on where the last one ended.

    Each call of ``step`` and ``train`` runs ``code-a1 train`` in a process of its own, resumes from ``run_dir``, and
    saves its last step there with both policies, their optimizers and the Mistake Book. The start of two servers takes
    a minute on a laptop, so ``train(specs, 10)`` is much quicker than ten times ``step(specs)``. Ctrl-C, also a
    notebook's, saves the last finished step and raises KeyboardInterrupt; the next call resumes from it.

    >>> trainer = AdversarialCodeTrainer(run_dir="outputs/api", max_code_len=64)  # doctest: +SKIP
    >>> trainer.train(problem_specs, num_steps=10)[-1]["code/reward"]  # doctest: +SKIP

    Args:
        code_llm: folder or hub id of the Code LLM; None: the preset's (``cpu``: a tiny one, made on first use).
        test_llm: the same for the Test LLM.
        reward_fn: None: what the preset names, the paper's rewards.
        max_code_len: most tokens of a program; None: the preset's.
        preset: name or YAML file; None: ``cpu`` without a GPU, else ``qwen2.5-coder-1.5b``.
        run_dir: where everything is written; a folder that holds a run is resumed.
        overrides: further settings, ``key=value`` as on the command line; they win over all others.
        show: gets each line that the run prints.

    Raises:
        InputError: an argument cannot be used.
    """

    def __init__(
        self,
        code_llm: str | Path | None = None,
        test_llm: str | Path | None = None,
        reward_fn: AdversarialReward | None = None,
        *,
        max_code_len: int | None = None,
        preset: str | None = None,
        run_dir: str | Path | None = None,
        overrides: Sequence[str] = (),
        show: Callable[[str], object] = lambda line: sys.stdout.write(f"{line}\n"),
    ) -> None:
        if reward_fn is not None and not isinstance(reward_fn, AdversarialReward):
            rule = "reward_fn must be an AdversarialReward or None"
            raise InputError(f"{rule}, got {reward_fn!r}; another function goes by overrides=['rewards.test.path=...']")
        if not isinstance(overrides, list | tuple) or not all(isinstance(one, str) and "=" in one for one in overrides):
            raise InputError(f"overrides must be a list of key=value, got {overrides!r}")
        if preset is not None and str(preset).startswith("-"):
            raise InputError(f"preset must be the name of one, or a YAML file, got {preset!r}")
        self.run_dir = Path(run_dir or f"outputs/api-{datetime.now():%Y%m%d-%H%M%S}").absolute()
        """The run's folder: ``code-a1 report``, ``watch``, ``eval`` and ``export`` take it."""
        self._preset, self._overrides, self._show = preset, tuple(overrides), show
        self._settings: dict[str, Any] = {"run_dir": str(self.run_dir), "checkpoint.allow_new_questions": True}
        for policy, model in (("code", code_llm), ("test", test_llm)):
            if model is None:
                continue
            if not isinstance(model, str | Path) or not str(model).strip():
                raise InputError(f"{policy}_llm must be a Hugging Face folder or id, got {model!r}")
            self._settings[f"policies.{policy}.model.path"] = str(model)
        if max_code_len is not None:
            self._settings["policies.code.rollout.response_length"] = check_count("max_code_len (tokens)", max_code_len)
        if reward_fn is not None:
            self._settings |= reward_fn.settings()

    @property
    def history(self) -> list[dict[str, Any]]:
        """The metrics of every step so far as in ``metrics.jsonl``, earlier calls and processes included."""
        run = RunRecords(self.run_dir)
        return [row for row in run.metrics if row["step"] > 0] if run.paths.metrics.is_file() else []

    def step(self, problem_specs: Sequence[Mapping[str, Any]], num_samples: int = 4) -> dict[str, Any]:
        """One step on all of these questions, ``num_samples`` programs each; its metrics. Otherwise like ``train``."""
        size = len(problem_specs) if isinstance(problem_specs, list | tuple) else None
        return self.train(problem_specs, 1, num_samples=num_samples, questions_per_step=size)[0]

    def train(
        self,
        problem_specs: Sequence[Mapping[str, Any]],
        num_steps: int,
        *,
        num_samples: int | None = None,
        questions_per_step: int | None = None,
    ) -> list[dict[str, Any]]:
        """Train ``num_steps`` further steps; their metrics.

        Args:
            problem_specs: questions: ``prompt`` and ``reference`` (source of a correct solution), and what else
                ``data/README.md`` lists (``tests``, ``entry_points``, ...). Without ``id`` one is made of the two.
            num_steps: at least 1.
            num_samples: programs for each question (``episode.num_candidates``); None: the preset's.
            questions_per_step: None: 8, or all where they are fewer.

        Raises:
            InputError: a question, a model or a setting cannot be used; nothing was started.
            CodeA1Error: the run broke off; ``history`` and ``run_dir`` have what was finished.
            KeyboardInterrupt: after Ctrl-C, when the last finished step is saved.
        """
        check_count("num_steps", num_steps)
        file, number = self._write_questions(problem_specs)
        size = check_count("questions_per_step", min(8, number) if questions_per_step is None else questions_per_step)
        done = len(self.history)
        settings = self._settings | {
            "data.train_files": str(file),
            "data.train_batch_size": size,
            "policies.code.actor.ppo_mini_batch_size": size,
            "policies.test.actor.ppo_mini_batch_size": size,
            "trainer.total_training_steps": done + num_steps,
            "trainer.save_freq": num_steps,
            "trainer.test_freq": -1,
            "trainer.val_before_train": False,
        }
        if num_samples is not None:
            settings["episode.num_candidates"] = check_count("num_samples", num_samples)
        command = [sys.executable, "-m", "code_a1_recipe", "train", *([self._preset] if self._preset else [])]
        self._run([*command, *(f"{key}={_hydra(value)}" for key, value in settings.items()), *self._overrides])
        return self.history[done:]

    def _write_questions(self, problem_specs: Sequence[Mapping[str, Any]]) -> tuple[Path, int]:
        """The questions as a checked file beside the run's folder, which must hold nothing else; how many they are."""
        if not isinstance(problem_specs, list | tuple) or not all(isinstance(one, Mapping) for one in problem_specs):
            raise InputError(f"problem_specs must be a list of dictionaries, got {problem_specs!r:.80}")
        rows = [{"id": fingerprint(str(one.get("prompt")), str(one.get("reference"))), **one} for one in problem_specs]
        try:
            text = json_lines(rows)
        except (TypeError, ValueError) as error:
            raise InputError(f"problem_specs must hold what JSON can say (texts, numbers, lists): {error}") from error
        file = self.run_dir.with_name(f"{self.run_dir.name}_questions") / f"{fingerprint(text)}.jsonl"
        try:
            write_whole(file, text)
        except (OSError, ValueError) as error:
            raise InputError(f"run_dir={str(self.run_dir)!r} cannot be written: {error}; choose another") from error
        return file, len(read_questions(file, adapter="native").questions)

    def _run(self, command: Sequence[str]) -> None:
        last: deque[str] = deque(maxlen=_KEPT_LINES)
        is_interrupted = False
        # A process group of its own: a terminal's Ctrl-C reaches it once, through this process.
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
            preexec_fn=lambda: _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),  # nobody else would end it
        )
        assert process.stdout is not None
        try:
            while True:
                try:
                    for line in process.stdout:
                        last.append(line.rstrip("\n"))
                        self._show(last[-1])
                    status = process.wait()
                    break
                except KeyboardInterrupt:
                    is_interrupted = True
                    process.send_signal(signal.SIGINT)  # saves; a second one leaves at once
        finally:
            if process.poll() is None:  # `show` raised
                process.terminate()
                process.wait()
            process.stdout.close()
        if is_interrupted:
            raise KeyboardInterrupt
        if status:
            raise (InputError if status == InputError.exit_status else CodeA1Error)(_error_of([*last], status))


def _error_of(lines: Sequence[str], status: int) -> str:
    """What the process said last, from its ``error:`` on."""
    text = "\n".join(["", *lines])
    said = text.rpartition("\nerror: ")[2] if "\nerror: " in text else "\n".join(lines[-3:])
    return said or f"training ended with status {status}"


def _hydra(value: Any) -> str:
    """A value in the syntax of hydra's overrides; a text stands for itself, whatever it holds."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_hydra(inner)}" for key, inner in value.items()) + "}"
    return quoted(value) if isinstance(value, str) else json.dumps(value)
