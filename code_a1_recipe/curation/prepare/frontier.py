"""Questions at the frontier: how often a base model solves each, by programs that it writes and the judge's verdicts.

All programs of a question that is always or never solved have one reward, so its group has no advantage and teaches
nothing (GRPO, arXiv 2402.03300, equation 3; the same rule for proposed tasks: Absolute Zero, arXiv 2505.03335).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ...algorithm.sampling import sampling_seed
from ...errors import InputError
from ...evaluation.benchmarks.tasks import AssertGrading, CodeTask
from ...evaluation.code_llm import VERDICTS, judge, samples_of
from ...evaluation.models.options import run_of, usual_prompt
from ...evaluation.models.prompt_styles import OWN, ask_code, check_style
from ...evaluation.models.response_store import RESPONSES, ResponseStore
from ...evaluation.models.source import ModelChoice, choose_model, sample_all
from ...jobs.confinement import Confinement
from ...jobs.jsonl_store import JsonlStore, Row
from .entries import Dropped, Entry, Reason
from .options import PrepareOptions
from .reference_checks import content_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """The base model with what decides its programs, and which questions stay."""

    model: ModelChoice
    options: PrepareOptions
    """With the prompt filled in."""
    num_solved: Counter[int] = field(default_factory=Counter)
    """Questions that were rated, by the number of programs that solve them."""

    @classmethod
    def of(cls, options: PrepareOptions) -> "Frontier":
        """The model that the options name, checked as far as that goes without its weights.

        Raises:
            InputError: it is no model, it or the prompt cannot be used, or its context is too short.
        """
        base = options.base_model
        options = replace(options, prompt=options.prompt or usual_prompt(run_of(base), "code"))
        if options.prompt == OWN:
            raise InputError(f"--prompt={OWN} is for benchmarks with chat messages of their own; name another")
        check_style(str(options.prompt))
        model = choose_model(base, policy="code", work_folder=options.base_output)
        model.check(base.sampling("code"), prefix=base.prefix)
        return cls(model=model, options=options)

    @property
    def rates(self) -> str:
        """How many questions the model solves how often, and which of them are kept."""
        counts = sorted(self.num_solved.items())
        shown = ", ".join(f"{solved}/{self.options.samples}: {number}" for solved, number in counts) or "none"
        low, high = self.options.keep
        return f"questions by how often {self.model.label} solves them: {shown}; --keep {low:g} {high:g}"

    def columns(self, entries: Sequence[Entry]) -> dict[str, list[Any]]:
        """What the training set holds of the model, beside the entries' own columns."""
        number, label = self.options.samples, self.model.label
        rates = [(entry.num_solved or 0) / number for entry in entries]
        return {"base_pass_rate": rates, "base_samples": [number for _ in rates], "base_model": [label for _ in rates]}

    def described(self) -> dict[str, Any]:
        """What decides the rates, by the names of options."""
        options = self.options
        return {
            "base_model": f"{self.model.label} ({self.model.fingerprint})",
            "base_sampling": asdict(options.base_model.sampling("code")),
            "keep": " ".join(f"{bound:g}" for bound in options.keep),
            "samples": options.samples,
            "prompt": options.prompt,
            "seed": options.seed,
        }

    def split(self, entries: Sequence[Entry], confinement: Confinement) -> Iterator[tuple[Entry, Dropped | None]]:
        """Each entry with its rate, and why it goes where the rate is outside of ``--keep``; bounds are inside.

        Responses and verdicts are kept as they come, and not asked for again. A program solves a question when it
        passes all its tests, as training judges hidden tests; a response without a program does not solve it.

        Raises:
            InputError: the model cannot be started or asked.
            OutageError: the model or the sandbox is down.
        """
        number, (low, high) = self.options.samples, self.options.keep
        rows = self._verdicts(entries, confinement) if entries else []
        for place, entry in enumerate(entries):
            own = rows[place * number : (place + 1) * number]
            if unknown := next((row for row in own if row["passed"] is None), None):
                reason = Reason.OUTAGE if unknown["outage"] else Reason.TOO_FEW_TESTS
                yield entry, Dropped.of(entry, reason, unknown["outage"] or unknown["reason"])
                continue
            num_solved = sum(row["passed"] for row in own)
            self.num_solved[num_solved] += 1
            if low <= num_solved / number <= high:
                yield replace(entry, num_solved=num_solved), None
                continue
            failure = next((f", the first that does not: {row['reason']}" for row in own if not row["passed"]), "")
            detail = f"{num_solved} of {number} programs solve it{failure}"
            yield entry, Dropped.of(entry, Reason.TOO_HARD if num_solved / number < low else Reason.TOO_EASY, detail)

    def _verdicts(self, entries: Sequence[Entry], confinement: Confinement) -> list[Row]:
        """Rows of ``evaluation.code_llm.judge``, all of one question together, in the order of the entries."""
        options, questions = self.options, [entry.question for entry in entries]
        can_prefill = not self.model.endpoint
        asked = [ask_code(str(options.prompt), **one.prompt_fields, can_prefill=can_prefill) for one in questions]
        numbers = range(options.samples)
        with ResponseStore(options.base_output / RESPONSES) as store:
            responses = sample_all(
                self.model,
                [(question.id, one.messages) for question, one in zip(questions, asked, strict=True)],
                seeds=[[sampling_seed(options.seed, "code", one.id, n) for n in numbers] for one in questions],
                parameters=options.base_model.sampling("code"),
                store=store,
                description=f"programs of {self.model.label}",
            )
        with (
            JsonlStore(options.base_output / VERDICTS, settings=options.of_judging(), key="key") as verdicts,
            confinement.judges(options.workers) as judges,
        ):
            tasks = [
                # The key in the id, so that a changed test is judged anew.
                CodeTask.of(replace(one, id=f"{one.id} {content_key(one)}"), AssertGrading(question=one, judges=judges))
                for one in questions
            ]
            samples = samples_of(tasks, asked, responses, parameters=options.base_model.sampling("code"))
            judge(samples, verdicts, num_workers=options.workers)
            return [verdicts.row(sample.key) for sample in samples]
