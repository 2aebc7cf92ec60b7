"""Failed inputs of a suite that show one mistake: they differ in spelling, or in words that the reference never reads.

One wrong answer would otherwise be found ``run("3")``, ``run("3.0")``, ``run("3 x")`` times. Each stays a case of its
own; a reward counts the failures of a family once. Where the reference gives the same answer to what several inputs
begin with, that is what it reads of them: without the rest, a program that needs it raises or answers otherwise.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from itertools import takewhile

from ..cases.case import Call, Suite
from ..values.alike import alike_words
from ..values.literals import INPUT_ENTRY
from .verdict import SuiteVerdict

_MAX_ROUNDS = 4
"""Of questions to the reference, each a little longer than the last."""
_MAX_FAILED = 64
"""Of given tests there may be more; no suite is rewarded for so many."""
Words = tuple[str, ...]
Ask = Callable[[Collection[Call]], Mapping[Call, str]]


def with_read_parts(verdict: SuiteVerdict, suite: Suite, ask: Ask) -> SuiteVerdict:
    """The suite with one family for failed inputs of which the reference reads the same words.

    Args:
        verdict: of ``suite``, for a program that reads standard input.
        ask: gives the reference's answers to inputs, as literals; none where it does not answer.
    """
    calls_of = {case.call.text: case.call for case in suite.cases}
    words: dict[str, Words] = {}
    groups: dict[str, list[str]] = defaultdict(list)
    for result in verdict.cases:
        if result.outcome.failed:
            words[result.call] = alike_words(calls_of[result.call].input)
            groups[result.reference_value].append(result.call)
    families = dict(words)
    left = list(groups.items()) if len(words) <= _MAX_FAILED else []
    for _ in range(_MAX_ROUNDS):
        starts = [(_common_start([words[call] for call in calls]), value, calls) for value, calls in left]
        asked = {start: Call(expression=f"{INPUT_ENTRY}({' '.join(start)!r})") for start, _, _ in starts}
        answers = ask([asked[start] for start, _, calls in starts if len(calls) > 1])
        left = []
        for start, value, calls in starts:
            if answers.get(asked[start]) == value:
                families |= dict.fromkeys(calls, start)
                continue
            longer: dict[Words, list[str]] = defaultdict(list)
            for call in calls:
                longer[words[call][: len(start) + 1]].append(call)
            left += [(value, some) for some in longer.values() if len(some) > 1]
    return replace(
        verdict,
        cases=tuple(
            replace(result, family=" ".join(families[result.call])) if result.call in families else result
            for result in verdict.cases
        ),
    )


def _common_start(inputs: Iterable[Words]) -> Words:
    places = takewhile(lambda place: len(set(place)) == 1, zip(*inputs, strict=False))
    return tuple(word for word, *_ in places)
