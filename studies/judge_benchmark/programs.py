"""Makes the workload of the benchmark: questions, eight different candidates for each, and asserts for each candidate.

As in training, a question has C candidates, a candidate has S suites, and a suite has K asserts. A seed determines the
whole workload. No two questions of a workload have the same text, so that no cache can answer a question.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sandbox import JudgeRequest

from .questions import QUESTIONS, BaseQuestion

NUM_CANDIDATES, NUM_SUITES, NUM_CASES = 8, 8, 8
"""C, S and K of the paper, which has 256 questions in a step."""
ASSERTS = NUM_SUITES * NUM_CASES
"""Number of asserts for one candidate."""
CALLS_PER_QUESTION = 192
"""Number of different calls for a question. Each candidate gets 64 of these calls at random. So two candidates share a
third of their calls, and the reference answers about 185 calls."""
INCORRECT_ASSERTIONS = 0.1
"""Share of asserts with a wrong expected output. A Test LLM writes such asserts too."""
HANGS = {
    "loops in every call": "    while True:\n        pass\n",
    "loops in some calls": "    if len(repr(arguments)) % 8 == 0:\n        while True:\n            pass\n",
    "sleeps in every call": "    import time\n    while True:\n        time.sleep(1)\n",
    "waits for itself in some calls": (
        "    import threading\n    lock = threading.Lock()\n    lock.acquire()\n"
        "    if len(repr(arguments)) % 8 == 0:\n        lock.acquire()\n"
    ),
    "loops in every call and in its example": "    while True:\n        pass\n",
    "loops in its example": "",
}
"""Kinds of hanging programs. The code stands at the start of a correct function. The last two kinds run an example when
they load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchCandidate:
    """One program and its suites."""

    source: str
    suites: tuple[tuple[str, ...], ...]
    """S suites of K asserts, all with different calls."""
    hangs: bool = False
    """True if the program was made to hang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchQuestion:
    """One question with its C candidates."""

    question_id: str
    reference: str
    entry_point: str
    candidates: tuple[BenchCandidate, ...]

    def requests(self) -> list[JudgeRequest]:
        """Make one request for each candidate."""
        return [
            JudgeRequest(
                question_id=self.question_id,
                reference=self.reference,
                candidate=candidate.source,
                suites=candidate.suites,
            )
            for candidate in self.candidates
        ]


def workload(
    num_questions: int, *, seed: int = 0, hanging_frac: float = 0.0, kinds: Sequence[str] = tuple(HANGS)
) -> list[BenchQuestion]:
    """Make ``num_questions`` questions of C candidates with S * K asserts each.

    Args:
        num_questions: number of questions. The two dozen base questions take turns, each time with other arguments.
        seed: seed of the arguments, of the expected outputs, and of the candidates' calls.
        hanging_frac: share of all candidates that are made to hang. Hanging candidates are spread evenly, and their
            kinds take turns.
        kinds: the kinds of hanging programs.
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
                source = _hanging(source, base.name, kinds[kind % len(kinds)])
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
    """Make eight programs: five are correct, one is wrong, one raises in some calls, one returns None in some calls."""
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
    inner = f"_inner_{source.count('_inner_')}"
    return f"{source}\n{inner} = {name}\n\ndef {name}(*arguments):\n{body}    return {inner}(*arguments)\n"


def _hanging(source: str, name: str, kind: str) -> str:
    source = _wrapped(source, name, HANGS[kind]) if HANGS[kind] else source
    if kind == "loops in every call and in its example":
        return f"{source}\nprint({name}())\n"
    if kind == "loops in its example":
        return f"{source}\nwhile True:\n    pass\n"
    return source


def _asserts(base: BaseQuestion, rng: random.Random) -> list[str]:
    scope: dict[str, Any] = {}
    exec(base.reference, scope)  # safe in this process, because the reference is our own code
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
