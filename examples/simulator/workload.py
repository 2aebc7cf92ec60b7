"""What one step asks for: questions, programs and suites with their lengths in tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .blocks import require, require_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Response lengths: lognormal, cut at a cap, with a share of responses that never end by themselves."""

    mean: float
    """Tokens, of the lognormal before the cap."""
    sigma: float
    """Standard deviation of the logarithm; 0: all have ``mean`` tokens. The larger, the longer the tail."""
    cap: int
    """``response_length``: a longer response is cut here."""
    endless_frac: float = 0.0
    """Share that repeats itself up to the cap."""

    def check(self, where: str) -> None:
        """Raises SimulationError for a value out of its range."""
        require_ranges(self, where, positive=("mean",), counts=("cap",))
        require(self.endless_frac <= 1, f"{where}.endless_frac", "at most 1", self.endless_frac)

    def sample(self, generator: np.random.Generator, number: int) -> npt.NDArray[np.int64]:
        """``number`` lengths in [1, cap].

        ``exp(normal(log(mean) - sigma^2 / 2, sigma))`` has the mean ``mean``.
        """
        logs = generator.normal(math.log(self.mean) - self.sigma**2 / 2, self.sigma, number)
        endless = generator.random(number) < self.endless_frac
        return np.clip(np.where(endless, self.cap, np.rint(np.exp(logs))), 1, self.cap).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadShape:
    """The sizes of a step and how long its texts are."""

    questions: int
    """Q"""
    num_candidates: int
    """C: programs for each question."""
    num_suites: int
    """S: suites for each program."""
    cases_per_suite: int
    """K: asserts in a suite."""
    update_n: int
    """Programs for each question whose suites train the Test LLM (``selection.update_n``)."""
    mini_batch_groups: int
    """Groups in an optimizer step (``ppo_mini_batch_size``)."""
    question_tokens: Lengths
    """Prompt of the Code LLM: the question in its template."""
    template_tokens: int
    """What the Test LLM's prompt holds beside the question's prompt and the program."""
    program_tokens: Lengths
    """Responses of the Code LLM."""
    suite_tokens: Lengths
    """Responses of the Test LLM."""
    seed: int = 0

    def check(self, where: str) -> None:
        """Raises SimulationError for a value out of its range."""
        sizes = ("questions", "num_candidates", "num_suites", "cases_per_suite", "update_n", "mini_batch_groups")
        require_ranges(self, where, counts=sizes)
        for name, lengths in (
            ("question_tokens", self.question_tokens),
            ("program_tokens", self.program_tokens),
            ("suite_tokens", self.suite_tokens),
        ):
            lengths.check(f"{where}.{name}")
        rule = f"at most num_candidates = {self.num_candidates}"
        require(self.update_n <= self.num_candidates, f"{where}.update_n", rule, self.update_n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One response."""

    prompt_tokens: int
    response_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    written: Generation
    suites: tuple[Generation, ...]
    """Empty for a program that nobody tests: its response held no program."""
    judged: int | None
    """Asserts of the request that its verdict comes from; None: none is made, another program's verdict is its own."""
    hidden: int | None = None
    """Asserts of a request with the hidden tests, for metrics: streaming, it is made when the program is written, and
    the one of the verdict waits for its answer; behind a barrier it follows the verdict. None: none is made."""
    pooled: int | None = None
    """Asserts of a request with the cases of all the question's programs, after their verdicts; None: none is made."""
    trains_test: bool = False
    """Its suites train the Test LLM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """One step: for each question its programs."""

    questions: tuple[tuple[Program, ...], ...]
    judges: tuple[int, ...]
    """For each question a number that, modulo the judges, says which one judges its programs."""
    mini_batch_groups: int

    @property
    def programs(self) -> list[Program]:
        return [program for programs in self.questions for program in programs]

    def trained(self, policy: str) -> list[Generation]:
        """Responses in the update of policy "code" or "test"."""
        if policy == "code":
            return [program.written for program in self.programs]
        return [suite for program in self.programs if program.trains_test for suite in program.suites]

    def mini_batches(self, policy: str) -> int:
        """Optimizer steps: groups, a question's programs or a program's suites, over groups in a mini-batch."""
        if policy == "code":
            groups = len(self.questions)
        else:
            groups = sum(program.trains_test and bool(program.suites) for program in self.programs)
        return math.ceil(groups / self.mini_batch_groups)


def sample_step(shape: WorkloadShape) -> StepWork:
    """One step with drawn lengths; the same seed gives the same step.

    The suites that train are those of each question's first programs: lengths do not depend on which are selected.
    """
    generator = np.random.default_rng(shape.seed)
    questions = shape.question_tokens.sample(generator, shape.questions)
    programs = shape.program_tokens.sample(generator, shape.questions * shape.num_candidates)
    suites = shape.suite_tokens.sample(generator, shape.questions * shape.num_candidates * shape.num_suites)
    programs_QC = programs.reshape(shape.questions, shape.num_candidates).tolist()
    suites_QCS = suites.reshape(shape.questions, shape.num_candidates, shape.num_suites).tolist()
    judges = generator.integers(2**31, size=shape.questions)
    return StepWork(
        judges=tuple(judges.tolist()),
        questions=tuple(
            tuple(
                _program(shape, question, programs_QC[q][c], suites_QCS[q][c], trains=c < shape.update_n)
                for c in range(shape.num_candidates)
            )
            for q, question in enumerate(questions.tolist())
        ),
        mini_batch_groups=shape.mini_batch_groups,
    )


def _program(shape: WorkloadShape, question: int, length: int, suites: list[int], *, trains: bool) -> Program:
    prompt = shape.template_tokens + question + length
    return Program(
        written=Generation(prompt_tokens=question, response_tokens=length),
        suites=tuple(Generation(prompt_tokens=prompt, response_tokens=suite) for suite in suites),
        judged=shape.num_suites * shape.cases_per_suite,
        trains_test=trains,
    )
