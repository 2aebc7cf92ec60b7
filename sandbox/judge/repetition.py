"""Find failed inputs of a suite that differ only in spelling, or in words that the reference never reads.

Otherwise ``run("3")``, ``run("3.0")`` and ``run("3 x")`` would detect one bug three times. Each stays a case of its
own, but a reward counts the failures of a family once. If the reference gives the common start of several inputs the
same answer as these inputs, it reads no more of them: a program that needs the rest raises or answers otherwise.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from ..cases.case import Call, Suite
from ..values.alike import alike_words
from ..values.literals import INPUT_ENTRY
from .verdict import SuiteVerdict

_MAX_ROUNDS = 4
"""Limit of requests to the reference. Each asks for longer starts than the last."""
_MAX_FAILED = 64
"""Limit of failed cases that are compared. Given tests may have more, but no suite is rewarded for so many."""
Words = tuple[str, ...]
Ask = Callable[[Collection[Call]], Mapping[Call, str]]


def with_read_parts(verdict: SuiteVerdict, suite: Suite, ask: Ask) -> SuiteVerdict:
    """Give one family to failed inputs if the reference reads the same words of them.

    Args:
        verdict: verdict of ``suite``, for a program that reads standard input.
        suite: the suite's cases with their calls.
        ask: returns the reference's answers to inputs, as literals. Inputs without an answer are missing.
    """
    calls_of = {case.call.text: case.call for case in suite.cases}
    words: dict[str, Words] = {}
    groups: dict[str, list[str]] = defaultdict(list)
    for result in verdict.cases:
        if result.outcome.failed:
            words[result.call] = alike_words(calls_of[result.call].input)
            groups[result.reference_value].append(result.call)
    families = dict(words)
    if len(words) > _MAX_FAILED:
        groups.clear()
    left = list(groups.items())
    for _ in range(_MAX_ROUNDS):
        # A single input has nothing to share.
        left = [(value, calls) for value, calls in left if len(calls) > 1]
        starts = [_common_start([words[call] for call in calls]) for _, calls in left]
        asked: dict[Words, Call] = {}
        for start in starts:
            text = " ".join(start)
            asked[start] = Call(expression=f"{INPUT_ENTRY}({text!r})")
        answers = ask(asked.values())
        undecided = []
        for (value, calls), start in zip(left, starts, strict=True):
            if answers.get(asked[start]) == value:
                families |= dict.fromkeys(calls, start)
                continue
            # The reference reads more, so that inputs with another next word part here.
            longer: dict[Words, list[str]] = defaultdict(list)
            for call in calls:
                longer[words[call][: len(start) + 1]].append(call)
            undecided += [(value, group) for group in longer.values()]
        left = undecided
    cases = []
    for result in verdict.cases:
        if result.call in families:
            result = replace(result, family=" ".join(families[result.call]))
        cases.append(result)
    return replace(verdict, cases=tuple(cases))


def _common_start(inputs: list[Words]) -> Words:
    # In sorted order, all inputs between the first and the last begin with what these two share.
    first, last = min(inputs), max(inputs)
    length = 0
    for word, last_word in zip(first, last, strict=False):
        if word != last_word:
            break
        length += 1
    return first[:length]
