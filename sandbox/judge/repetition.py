"""Cases of a suite that show the same thing: their inputs differ in spelling, or in what the reference never reads.

One wrong answer would otherwise be found ``run("3")``, ``run("3.0")``, ``run("3 x")`` times, or ``f([3])``, ``f({3})``
times. Of failed cases with one reference value, the first of a family counts; where the program passes some of a family
and fails others, each passed one counts beside it.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping

from ..cases.case import Call, Case, Rejection, RejectionReason
from ..values.alike import WORD, alike_words
from .oracle import Oracle, OracleValue
from .verdict import CaseResult, SuiteVerdict

_DETAIL = "an earlier case differs in spelling alone, or in what the reference does not read"
_NEVER_READ = "~"
"""In place of words that may be unread: no number, and of no other use."""
Ask = Callable[[Collection[Call]], Mapping[Call, Oracle]]


def once_each(verdict: SuiteVerdict, cases: Mapping[str, Case], ask: Ask | None) -> SuiteVerdict:
    """The suite with one failed case of each family; the others are refused as duplicates.

    Args:
        cases: what was judged, by the text of its call.
        ask: gives the reference's answers to further inputs; None where it reads no standard input.
    """
    families: dict[str, Hashable] = {text: case.family for text, case in cases.items()}
    if ask is not None:
        families |= _read_parts([case for case in verdict.cases if case.outcome.failed], cases, ask)
    kept: dict[Hashable, CaseResult] = {}
    refused = []
    for result in verdict.cases:
        place = (families[result.call], result.reference_value) if result.outcome.failed else result.key
        if kept.setdefault(place, result) is not result:
            text = cases[result.call].text
            refused.append(Rejection(text=text, reason=RejectionReason.DUPLICATE, detail=_DETAIL))
    if not refused:
        return verdict
    return SuiteVerdict(cases=tuple(kept.values()), rejections=(*verdict.rejections, *refused))


def _read_parts(failed: list[CaseResult], cases: Mapping[str, Case], ask: Ask) -> dict[str, Hashable]:
    """The words that the reference reads, of failed inputs that begin and are answered alike; no others are asked."""
    groups: dict[Hashable, list[Call]] = defaultdict(list)
    words: dict[Call, tuple[str, ...]] = {}
    for result in failed:
        call = cases[result.call].call
        words[call] = alike_words(_text_of(call))
        groups[words[call][:1], result.reference_value].append(call)
    alike = [call for group in groups.values() if len(group) > 1 for call in group]
    # The first word that is not read stands in [low, high]. At first the last one is tried, which most references read.
    low, high = dict.fromkeys(alike, 1), {call: len(words[call]) for call in alike}
    tried = {call: high[call] - 1 for call in alike}
    values = ask(alike) if alike else {}
    while left := [call for call in alike if low[call] < high[call]]:
        changed = {call: _without_words(call, tried[call]) for call in left}
        answers = ask(changed.values())
        for call, other in changed.items():
            value, answer = values[call], answers[other]
            if isinstance(value, OracleValue) and isinstance(answer, OracleValue) and value.value == answer.value:
                high[call] = tried[call]
            else:
                low[call] = tried[call] + 1
            tried[call] = (low[call] + high[call]) // 2
    return {call.text: words[call][: high[call]] for call in alike}


def _text_of(call: Call) -> str:
    """The input of ``run(text)``."""
    return str(ast.literal_eval(call.expression.partition("(")[2].removesuffix(")")))


def _without_words(call: Call, first: int) -> Call:
    """The same input with other words from one on."""
    text = _text_of(call)
    start = [match.start() for match in WORD.finditer(text)][first]
    changed = text[:start] + WORD.sub(_NEVER_READ, text[start:])
    return Call(expression=f"{call.expression.partition('(')[0]}({changed!r})")
