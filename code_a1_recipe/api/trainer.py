"""AdversarialCodeTrainer, a trainer for scripts and notebooks. Questions are given as Python dictionaries."""

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
"""Number of lines that are kept of a training process's output. The last lines are kept, because an error message is at
the end."""
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
"""Option of prctl(2): the signal that a process gets when its parent process ends."""


class AdversarialCodeTrainer:
    """Trains a Code LLM and a Test LLM against each other. Every call resumes where the last call ended.

    Each call of ``step`` or ``train`` runs ``code-a1 train`` in a new process. The process resumes from ``run_dir`` and
    saves its last step there, with both policies, their optimizers and the Mistake Book. The two servers of the process
    need a minute to start on a laptop, so ``train(specs, 10)`` is much faster than ten calls of ``step(specs)``. Ctrl-C
    (or the interrupt button of a notebook) saves the last finished step and raises KeyboardInterrupt. The next call
    resumes from the last finished step.

    >>> trainer = AdversarialCodeTrainer(run_dir="outputs/api", max_code_len=64)  # doctest: +SKIP
    >>> trainer.train(problem_specs, num_steps=10)[-1]["code/reward"]  # doctest: +SKIP

    Args:
        code_llm: folder or hub id of the Code LLM; None: the preset's model (``cpu``: a tiny model of this package).
        test_llm: folder or hub id of the Test LLM; None: the preset's model.
        reward_fn: rewards of programs and suites; None: the preset's rewards, as in the paper.
        max_code_len: maximum length of a program in tokens; None: the preset's length.
        preset: name of a preset, or a YAML file; None: ``cpu`` without a GPU, else ``tiny-1gpu``.
        run_dir: folder for all results. A run in this folder is resumed.
        overrides: further settings ``key=value``, as on the command line. Overrides replace all other settings.
        show: called with each line that the process prints.

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
            raise InputError(f"{rule}, got {reward_fn!r}; name another function in overrides: 'rewards.test.path=...'")
        are_listed = isinstance(overrides, list | tuple)
        if not are_listed or not all(isinstance(word, str) and "=" in word for word in overrides):
            raise InputError(f"overrides must be a list of key=value, got {overrides!r}")
        if preset is not None and str(preset).startswith("-"):
            raise InputError(f"preset must be the name of a preset, or a YAML file, got {preset!r}")
        self.run_dir = Path(run_dir or f"outputs/api-{datetime.now():%Y%m%d-%H%M%S}").absolute()
        """Folder of the run. ``code-a1 report``, ``watch``, ``eval`` and ``export`` take the run's folder."""
        self._preset = preset
        self._overrides = tuple(overrides)
        self._show = show
        self._settings: dict[str, Any] = {"run_dir": str(self.run_dir), "checkpoint.allow_new_questions": True}
        for policy, model in (("code", code_llm), ("test", test_llm)):
            if model is None:
                continue
            if not isinstance(model, str | Path) or not str(model).strip():
                raise InputError(f"{policy}_llm must be a Hugging Face folder or id, got {model!r}")
            self._settings[f"policies.{policy}.model.path"] = str(model)
        if max_code_len is not None:
            length = check_count("max_code_len (tokens)", max_code_len)
            self._settings["policies.code.rollout.response_length"] = length
        if reward_fn is not None:
            self._settings |= reward_fn.settings()

    @property
    def history(self) -> list[dict[str, Any]]:
        """The metrics of every step so far, including steps of earlier calls, from ``metrics.jsonl``."""
        run = RunRecords(self.run_dir)
        if not run.paths.metrics.is_file():
            return []
        return [row for row in run.metrics if row["step"] > 0]

    def step(self, problem_specs: Sequence[Mapping[str, Any]], num_samples: int = 4) -> dict[str, Any]:
        """Train one step on all given questions, as ``train`` does, and return the metrics of the step.

        Args:
            problem_specs: questions, as in ``train``.
            num_samples: number of programs for each question.
        """
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
        """Train further steps, and return their metrics.

        Args:
            problem_specs: questions with ``prompt``, ``reference`` (source of a correct solution) and other columns of
                ``data/README.md`` (``tests``, ``entry_points``, ...). A missing ``id`` is computed from ``prompt`` and
                ``reference``.
            num_steps: number of steps, at least 1.
            num_samples: programs for each question (``episode.num_candidates``); None: the preset's number.
            questions_per_step: number of questions in each step, at most ``len(problem_specs)``; None: 8, or all if
                there are fewer.

        Raises:
            InputError: a question, a model or a setting cannot be used. Nothing was started.
            CodeA1Error: the run broke off. ``history`` and ``run_dir`` have the finished steps.
            KeyboardInterrupt: Ctrl-C was pressed, and the last finished step is saved.
        """
        check_count("num_steps", num_steps)
        file, number = self._write_questions(problem_specs)
        if questions_per_step is None:
            questions_per_step = min(8, number)
        size = check_count("questions_per_step", questions_per_step)
        num_done = len(self.history)
        settings = self._settings | {
            "data.train_files": str(file),
            "data.train_batch_size": size,
            "policies.code.actor.ppo_mini_batch_size": size,
            "policies.test.actor.ppo_mini_batch_size": size,
            "trainer.total_training_steps": num_done + num_steps,
            "trainer.save_freq": num_steps,
            "trainer.test_freq": -1,
            "trainer.val_before_train": False,
        }
        if num_samples is not None:
            settings["episode.num_candidates"] = check_count("num_samples", num_samples)
        words = [self._preset] if self._preset else []
        words += [f"{key}={_hydra(value)}" for key, value in settings.items()]
        self._run([sys.executable, "-m", "code_a1_recipe", "train", *words, *self._overrides])
        return self.history[num_done:]

    def _write_questions(self, problem_specs: Sequence[Mapping[str, Any]]) -> tuple[Path, int]:
        """Write the questions to a file, and check them. Return the file and the number of questions.

        The file lies beside the run's folder, because no other program may write into that folder.
        """
        are_listed = isinstance(problem_specs, list | tuple)
        if not are_listed or not all(isinstance(spec, Mapping) for spec in problem_specs):
            raise InputError(f"problem_specs must be a list of dictionaries, got {problem_specs!r:.80}")
        rows = []
        for spec in problem_specs:
            identity = fingerprint(str(spec.get("prompt")), str(spec.get("reference")))
            rows.append({"id": identity, **spec})
        try:
            text = json_lines(rows)
        except (TypeError, ValueError) as error:
            raise InputError(f"problem_specs must hold values of JSON (texts, numbers, lists, ...): {error}") from error
        folder = self.run_dir.with_name(f"{self.run_dir.name}_questions")
        file = folder / f"{fingerprint(text)}.jsonl"
        try:
            write_whole(file, text)
        except (OSError, ValueError) as error:
            raise InputError(f"run_dir={str(self.run_dir)!r} cannot be written: {error}; choose another") from error
        return file, len(read_questions(file, adapter="native").questions)

    def _run(self, command: Sequence[str]) -> None:
        last: deque[str] = deque(maxlen=_KEPT_LINES)
        is_interrupted = False
        # Ctrl-C in a terminal reaches the whole process group. The new process gets its own group, so that it receives
        # only the signal that this process sends below.
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
            preexec_fn=lambda: _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),  # training ends if this script is killed
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
                    process.send_signal(signal.SIGINT)  # the run saves its step; a second signal ends the run at once
        finally:
            if process.poll() is None:  # `show` has raised an error
                process.terminate()
                process.wait()
            process.stdout.close()
        if is_interrupted:
            raise KeyboardInterrupt
        if status:
            error_class = InputError if status == InputError.exit_status else CodeA1Error
            raise error_class(_error_of([*last], status))


def _error_of(lines: Sequence[str], status: int) -> str:
    """Return the text after the last ``error:`` of a process's output, or else the last lines of the output."""
    output = "\n".join(["", *lines])
    _, is_error, message = output.rpartition("\nerror: ")
    if not is_error:
        message = "\n".join(lines[-3:])
    return message or f"training ended with status {status}"


def _hydra(value: Any) -> str:
    """Write a value in the syntax of hydra's overrides. Texts with special characters are quoted."""
    if isinstance(value, Mapping):
        pairs = [f"{key}: {_hydra(inner)}" for key, inner in value.items()]
        return "{" + ", ".join(pairs) + "}"
    return quoted(value) if isinstance(value, str) else json.dumps(value)
