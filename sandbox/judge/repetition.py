"""Finds failed inputs of a suite that differ only in spelling, or in words that the reference never reads.

Otherwise ``run("3")``, ``run("3.0")`` and ``run("3 x")`` would detect one bug three times. Such cases stay separate
cases of one family, and a reward counts the failures of a family once. To find families, the judge gives the reference
the common start of several inputs. If the reference gives the same answer as for the whole inputs, it reads only this
start. A program that needs the rest would raise an error or give another answer.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from ..cases.case import Call, Suite
from ..values.alike import alike_words
from ..values.literals import INPUT_ENTRY
from .verdict import SuiteVerdict

_MAX_ROUNDS = 4
"""Limit of requests to the reference. Each request has longer starts than the request before."""
_MAX_FAILED = 64
"""Limit of failed cases that are compared. A suite that is rewarded has fewer cases; given tests may have more."""
Words = tuple[str, ...]
Ask = Callable[[Collection[Call]], Mapping[Call, str]]


def with_read_parts(verdict: SuiteVerdict, suite: Suite, ask: Ask) -> SuiteVerdict:
    """Give one family to all failed inputs in which the reference reads the same words.

    Args:
        verdict: verdict of ``suite``, for a program that reads standard input.
        suite: the suite that was judged.
        ask: returns the reference's answers to calls, as literals. It leaves out calls without an answer.
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
        # A group with a single input needs no comparison.
        left = [(value, calls) for value, calls in left if len(calls) > 1]
        starts: list[Words] = []
        asked: dict[Words, Call] = {}
        for _, calls in left:
            start = _common_start([words[call] for call in calls])
            starts.append(start)
            text = " ".join(start)
            asked[start] = Call(expression=f"{INPUT_ENTRY}({text!r})")
        answers = ask(asked.values())
        undecided = []
        for (value, calls), start in zip(left, starts, strict=True):
            if answers.get(asked[start]) == value:
                families |= dict.fromkeys(calls, start)
                continue
            # The reference reads more words, so the group is divided by the next word.
            longer: dict[Words, list[str]] = defaultdict(list)
            for call in calls:
                longer_start = words[call][: len(start) + 1]
                longer[longer_start].append(call)
            for group in longer.values():
                undecided.append((value, group))
        left = undecided
    cases = []
    for result in verdict.cases:
        if result.call in families:
            family = " ".join(families[result.call])
            result = replace(result, family=family)
        cases.append(result)
    return replace(verdict, cases=tuple(cases))


def _common_start(inputs: list[Words]) -> Words:
    # All inputs lie between the first and the last in sorted order. So they begin with the words that these two share.
    first, last = min(inputs), max(inputs)
    length = 0
    for word, last_word in zip(first, last, strict=False):
        if word != last_word:
            break
        length += 1
    return first[:length]
