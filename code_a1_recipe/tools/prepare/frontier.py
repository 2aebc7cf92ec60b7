"""Questions at the frontier: how often a base model solves each, by programs that it writes and the judge's verdicts.

All programs of a question that is always or never solved have one reward, so its group has no advantage and teaches
nothing (GRPO, arXiv 2402.03300, equation 3; the same rule for proposed tasks: Absolute Zero, arXiv 2505.03335).
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
from ..evaluate.models.source import ModelChoice, choose_model
from ..evaluate.options import CodeEvalOptions
from .options import PrepareOptions
from .references import content_key
from .rows import Entry, Reason, Stage


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """The base model, and which questions stay."""

    model: ModelChoice
    options: PrepareOptions
    sampling: CodeEvalOptions
    """How the model is asked, as ``eval code`` does it."""
    num_solved: Counter[int] = field(default_factory=Counter)
    """Questions that were rated, by the number of programs that solve them."""

    @classmethod
    def of(cls, options: PrepareOptions) -> "Frontier":
        """The model that the options name, checked as far as that goes without its weights.

        Raises:
            InputError: it is no model, it or the prompt cannot be used, or its context is too short.
        """
        base, folder = options.base_model, options.base_output
        prompt = options.prompt or usual_prompt(run_of(base), "code")
        check_style(prompt)
        sampling = CodeEvalOptions(
            files=(),
            output=folder,
            model=base,
            prompt=prompt,
            samples=options.samples,
            seed=options.seed,
        )
        model = choose_model(base, policy="code", work_folder=folder)
        model.check(base.sampling("code"), prefix=base.prefix)
        return cls(model=model, options=options, sampling=sampling)

    @property
    def rates(self) -> str:
        """How many questions the model solves how often, and which of them are kept."""
        counts = [f"{solved}/{self.options.samples}: {number}" for solved, number in sorted(self.num_solved.items())]
        low, high = self.options.keep
        shown = ", ".join(counts) or "none"
        model = f"{self.model.label} (fingerprint {self.model.fingerprint})"
        return f"questions by how often {model} solves them: {shown}; --keep {low:g} {high:g}"

    def check(self, entries: Sequence[Entry]) -> Stage:
        """Each entry with its rate, left out where that is outside of ``--keep``; bounds are inside.

        Responses and verdicts are kept as they come, and not asked for again. A program solves a question when it
        passes all its tests, as training judges hidden tests; a response without a program does not solve it.

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
                rates = {
                    "base_pass_rate": rate,
                    "base_samples": number,
                    "base_model": self.model.label,
                }
                yield replace(entry, rates=rates)
                continue
            detail = f"{num_solved} of {number} programs solve it"
            if failed:
                detail += f", the first that does not: {failed[0]['reason']}"
            yield entry.dropped(Reason.TOO_HARD if rate < low else Reason.TOO_EASY, detail)

    def _verdicts(self, questions: Sequence[Question]) -> list[Row]:
        """Rows of ``evaluate.code_llm.judge``, all of one question together, in the order of the questions."""
        options = self.options
        store = JsonlStore(options.base_output / VERDICTS, settings=options.of_judging())
        with store, options.confinement.judges(options.workers) as judges:
            tasks = [CodeTask.of(one, AssertGrading(question=one, judges=judges)) for one in questions]
            keys = {question.id: content_key(question) for question in questions}
            samples = []
            for sample in sampled(tasks, self.model, self.sampling):
                # The key in the id, so that a changed test is judged anew.
                task = replace(sample.task, id=f"{sample.task.id} {keys[sample.task.id]}")
                samples.append(replace(sample, task=task))
            judge(samples, store, num_workers=options.workers)
            return [store.row(sample.key) for sample in samples]
