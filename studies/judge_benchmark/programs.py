"""What the benchmark judges: two dozen small questions, eight varied candidates of each, asserts for each candidate.

Axes as in training: C candidates of a question, S suites of a candidate, K asserts of a suite. Nothing
here is random but by seed, and no two questions of a workload have the same text, so that nothing is
fast for having been seen before.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .questions import QUESTIONS, BaseQuestion

NUM_CANDIDATES, NUM_SUITES, NUM_CASES = 8, 8, 8
"""C, S and K at the paper's scale (256 questions a step)."""
CALLS_PER_QUESTION = 192
"""Different calls that the suites of one question's candidates are drawn from; each candidate gets 64 different
ones, so two candidates of a question share a third of theirs and the references answer about 185."""
_INCORRECT_ASSERTIONS = 0.1
"""Share of asserts whose claimed value is wrong, as a Test LLM's are."""
_HANGS = (
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


def workload(num_questions: int, *, seed: int = 0, hanging_frac: float = 0.0) -> list[BenchQuestion]:
    """``num_questions`` questions of C candidates with S * K asserts each.

    Args:
        num_questions: the two dozen base questions take turns, each time with other arguments.
        seed: of arguments, claims and which candidates hang.
        hanging_frac: share of all candidates that are made to hang, spread evenly; the three kinds of
            ``_HANGS`` take turns.
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
                source = _wrapped(source, base.name, _HANGS[kind % len(_HANGS)])
            candidates.append(
                BenchCandidate(
                    source=f"# question {place}, candidate {len(candidates)}\n{source}",
                    suites=_suites(asserts, rng),
                    hangs=hangs,
                )
            )
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
    return [
        base.reference,
        base.alternative,
        base.wrong,
        f'"""My solution."""\nimport collections\nimport math\nfrom typing import *\n\n{base.reference}',
        f"import functools\n\n{base.alternative}\n\nif __name__ == '__main__':\n    print({base.name})\n",
        _wrapped(
            base.reference, base.name, "    if len(repr(arguments)) % 5 == 0:\n        raise ValueError(arguments)\n"
        ),
        _wrapped(base.alternative, base.name, "    if len(repr(arguments)) % 4 == 0:\n        return None\n"),
        _wrapped(base.reference, base.name, "    print('called with', arguments)\n"),
    ]


def _wrapped(source: str, name: str, body: str) -> str:
    return f"{source}\n_inner = {name}\n\ndef {name}(*arguments):\n{body}    return _inner(*arguments)\n"


def _asserts(base: BaseQuestion, rng: random.Random) -> list[str]:
    answer = _trusted(base)
    arguments: dict[str, tuple[Any, ...]] = {}
    while len(arguments) < CALLS_PER_QUESTION:
        drawn = base.draw(rng)
        arguments.setdefault(", ".join(map(repr, drawn)), drawn)
    answers = [repr(answer(*drawn)) for drawn in arguments.values()]
    claims = [rng.choice(answers) if rng.random() < _INCORRECT_ASSERTIONS else right for right in answers]
    return [f"assert {base.name}({text}) == {claim}" for text, claim in zip(arguments, claims, strict=True)]


def _trusted(base: BaseQuestion) -> Callable[..., Any]:
    """The reference as a function of this process: it ships with the package."""
    scope: dict[str, Any] = {}
    exec(base.reference, scope)
    found: Callable[..., Any] = scope[base.name]
    return found


def _suites(asserts: list[str], rng: random.Random) -> tuple[tuple[str, ...], ...]:
    drawn = rng.sample(asserts, NUM_SUITES * NUM_CASES)
    return tuple(tuple(drawn[start : start + NUM_CASES]) for start in range(0, len(drawn), NUM_CASES))
