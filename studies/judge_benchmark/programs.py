"""The benchmark's workload: two dozen small questions, eight varied candidates of each, asserts for each candidate.

Axes as in training: C candidates of a question, S suites of a candidate, K asserts of a suite. Nothing here is random
except by seed, and no two questions of a workload have the same text, so that nothing is fast for having been seen
before.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from sandbox import JudgeRequest

from .questions import QUESTIONS, BaseQuestion

NUM_CANDIDATES, NUM_SUITES, NUM_CASES = 8, 8, 8
"""C, S and K at the paper's scale (256 questions a step)."""
ASSERTS = NUM_SUITES * NUM_CASES
"""Asserts for one candidate."""
CALLS_PER_QUESTION = 192
"""Different calls that the suites of one question's candidates are drawn from; each candidate gets 64 different
ones, so two candidates of a question share a third of theirs and the references answer about 185."""
INCORRECT_ASSERTIONS = 0.1
"""Share of asserts whose claimed value is wrong, as a Test LLM's are."""
HANGS = (
    "    while True:\n        pass\n",
    "    if len(repr(arguments)) % 8 == 0:\n        while True:\n            pass\n",
    "    import time\n    while True:\n        time.sleep(1)\n",
)
"""Bodies put before an honest answer: spins on every call, spins on some, sleeps on every call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchCandidate:
    """One program, its suites, and whether it was made to hang."""

    source: str
    suites: tuple[tuple[str, ...], ...]
    """[S][K] asserts; no call twice."""
    hangs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchQuestion:
    """One question with its C candidates."""

    question_id: str
    reference: str
    entry_point: str
    candidates: tuple[BenchCandidate, ...]

    def requests(self) -> list[JudgeRequest]:
        """One request per candidate."""
        return [
            JudgeRequest(
                question_id=self.question_id,
                reference=self.reference,
                candidate=candidate.source,
                suites=candidate.suites,
            )
            for candidate in self.candidates
        ]


def workload(num_questions: int, *, seed: int = 0, hanging_frac: float = 0.0) -> list[BenchQuestion]:
    """Make ``num_questions`` questions of C candidates with S * K asserts each.

    Args:
        num_questions: the two dozen base questions take turns, each time with other arguments.
        seed: decides arguments, claims and which candidates hang.
        hanging_frac: share of all candidates that are made to hang, spread evenly; the three kinds of ``HANGS`` take
            turns.
    """
    questions = []
    owed, kind = 0.0, 0
    for place in range(num_questions):
        base = QUESTIONS[place % len(QUESTIONS)]
        rng = random.Random(f"{seed}:{place}")
        asserts = _asserts(base, rng)
        candidates: list[BenchCandidate] = []
        for source in _candidates(base):
            owed += hanging_frac
            hangs = owed >= 1
            if hangs:
                owed, kind = owed - 1, kind + 1
                source = _wrapped(source, base.name, HANGS[kind % len(HANGS)])
            head = f"# question {place}, candidate {len(candidates)}\n"
            drawn = rng.sample(asserts, ASSERTS)
            suites = tuple(tuple(drawn[first : first + NUM_CASES]) for first in range(0, ASSERTS, NUM_CASES))
            candidates.append(BenchCandidate(source=head + source, suites=suites, hangs=hangs))
        questions.append(
            BenchQuestion(
                question_id=f"{place}:{base.name}",
                reference=f"# question {place}\n{base.reference}",
                entry_point=base.name,
                candidates=tuple(candidates),
            )
        )
    return questions


def _candidates(base: BaseQuestion) -> list[str]:
    """Eight programs: right ones in three styles, wrong ones, one that raises, one wrong now and then."""
    raises = "    if len(repr(arguments)) % 5 == 0:\n        raise ValueError(arguments)\n"
    returns_none = "    if len(repr(arguments)) % 4 == 0:\n        return None\n"
    prints = "    print('called with', arguments)\n"
    return [
        base.reference,
        base.alternative,
        base.wrong,
        f'"""My solution."""\nimport collections\nimport math\nfrom typing import *\n\n{base.reference}',
        f"import functools\n\n{base.alternative}\n\nif __name__ == '__main__':\n    print({base.name})\n",
        _wrapped(base.reference, base.name, raises),
        _wrapped(base.alternative, base.name, returns_none),
        _wrapped(base.reference, base.name, prints),
    ]


def _wrapped(source: str, name: str, body: str) -> str:
    return f"{source}\n_inner = {name}\n\ndef {name}(*arguments):\n{body}    return _inner(*arguments)\n"


def _asserts(base: BaseQuestion, rng: random.Random) -> list[str]:
    scope: dict[str, Any] = {}
    exec(base.reference, scope)  # it ships with this file, so it may run in this process
    arguments: dict[str, tuple[Any, ...]] = {}
    while len(arguments) < CALLS_PER_QUESTION:
        drawn = base.draw(rng)
        arguments.setdefault(", ".join(map(repr, drawn)), drawn)
    answers = [repr(scope[base.name](*drawn)) for drawn in arguments.values()]
    asserts = []
    for text, answer in zip(arguments, answers, strict=True):
        claim = rng.choice(answers) if rng.random() < INCORRECT_ASSERTIONS else answer
        asserts.append(f"assert {base.name}({text}) == {claim}")
    return asserts
