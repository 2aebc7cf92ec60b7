"""Measures how often a base model solves each question, and keeps the questions that the model solves sometimes.

If a model always or never solves a question, all programs for this question get the same reward. Equal rewards give
advantages of zero, so the question teaches nothing (GRPO, arXiv 2402.03300, equation 3). Absolute Zero (arXiv
2505.03335) gives no reward for proposing a task that is always or never solved.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...algorithm.question import Question
from ...jobs.jsonl_store import JsonlStore, Row
from ..evaluate.benchmarks.tasks import AssertGrading, CodeTask
from ..evaluate.code_llm import VERDICTS, judge, sampled
from ..evaluate.models.options import run_of, usual_prompt
from ..evaluate.models.prompt_styles import check_style
from ..evaluate.models.source import StoredModel
from ..evaluate.options import check_folder
from .options import PrepareOptions
from .references import content_key
from .rows import Entry, Reason, Stage


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """The base model, and the rates of the questions that it was asked so far."""

    model: StoredModel
    options: PrepareOptions
    prompt: str
    """The prompt style, as for ``eval code --prompt``."""
    num_solved: Counter[int] = field(default_factory=Counter)
    """Number of programs that solve a question -> number of questions that so many programs solve."""

    @classmethod
    def of(cls, options: PrepareOptions) -> "Frontier":
        """Choose the model that the options name, and check all settings that can be checked without its weights.

        Raises:
            InputError: the model or the prompt cannot be used, or the model's context is too short.
        """
        base, folder = options.base_model, options.base_output
        prompt = options.prompt or usual_prompt(run_of(base), "code")
        check_style(prompt)
        check_folder(folder)
        model = StoredModel.choose(base, policy="code", folder=folder, seed=options.seed, stored_only=False)
        model.choice.check(model.parameters, prefix=base.prefix)
        return cls(model=model, options=options, prompt=prompt)

    @property
    def rates(self) -> str:
        """The distribution of the rates as text, with the range of ``--keep``."""
        counts = [f"{solved}/{self.options.samples}: {number}" for solved, number in sorted(self.num_solved.items())]
        low, high = self.options.keep
        shown = ", ".join(counts) or "none"
        choice = self.model.choice
        model = f"{choice.label} (fingerprint {choice.fingerprint})"
        return f"questions by how often {model} solves them: {shown}; --keep {low:g} {high:g}"

    def check(self, entries: Sequence[Entry]) -> Stage:
        """Add the rate to each entry, and leave out entries whose rate is below or above the range of ``--keep``.

        Responses and verdicts are stored at once, so a repeated command does not ask for them again. A program solves
        a question if it passes all tests, judged as training judges hidden tests. A response without a program does
        not solve the question.

        Raises:
            InputError: the model cannot be started or asked.
            OutageError: the model or the sandbox is down.
        """
        number = self.options.samples
        low, high = self.options.keep
        rows = self._verdicts([entry.question for entry in entries]) if entries else []
        for place, entry in enumerate(entries):
            verdicts = rows[place * number : (place + 1) * number]
            unknown = [row for row in verdicts if row["passed"] is None]
            failed = [row for row in verdicts if not row["passed"]]
            if unknown:
                outage = unknown[0]["outage"]
                reason = Reason.OUTAGE if outage else Reason.TOO_FEW_TESTS
                yield entry.dropped(reason, outage or unknown[0]["reason"])
                continue
            num_solved = number - len(failed)
            self.num_solved[num_solved] += 1
            rate = num_solved / number
            if low <= rate <= high:
                rates = {"base_pass_rate": rate, "base_samples": number, "base_model": self.model.choice.label}
                yield replace(entry, rates=rates)
                continue
            detail = f"{num_solved} of {number} programs solve it"
            if failed:
                detail += f", the first failure: {failed[0]['reason']}"
            yield entry.dropped(Reason.TOO_HARD if rate < low else Reason.TOO_EASY, detail)

    def _verdicts(self, questions: Sequence[Question]) -> list[Row]:
        """Sample and judge all programs. Returns rows of ``evaluate.code_llm.judge``, question by question in order."""
        options = self.options
        keys = {question.id: content_key(question) for question in questions}
        store = JsonlStore(options.base_output / VERDICTS, settings=options.of_judging())
        with store, options.confinement.judges(options.workers) as judges:
            tasks = []
            for question in questions:
                grading = AssertGrading(question=question, judges=judges)
                tasks.append(CodeTask.of(question, grading))
            samples = []
            for sample in sampled(tasks, self.model, prompt=self.prompt, num_samples=options.samples):
                # The id of the stored verdict holds a digest of the tests, so that changed tests are judged anew.
                task = replace(sample.task, id=f"{sample.task.id} {keys[sample.task.id]}")
                samples.append(replace(sample, task=task))
            judge(samples, store, num_workers=options.workers)
            return [store.row(sample.key) for sample in samples]
