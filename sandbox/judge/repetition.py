"""Cases of a suite that show the same thing: their inputs differ in spelling, or in what the reference never reads.

One wrong answer would otherwise be found ``run("3")``, ``run("3.0")``, ``run("3 x")`` times, or ``f([3])``, ``f({3})``
times. Of failed cases with one reference value, the first of a family counts; where the program passes some of a family
and fails others, each passed one counts beside it.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping

from ..cases.case import Call, Case, Rejection, RejectionReason
from ..values.alike import WORD, alike_words
from ..values.literals import INPUT_ENTRY
from .oracle import Oracle, OracleValue
from .verdict import CaseResult, SuiteVerdict

_DETAIL = "an earlier case differs in spelling alone, or in what the reference does not read"
_NEVER_READ = "~"
"""In place of words that may be unread: no number, and of no other use."""
Ask = Callable[[Collection[Call]], Mapping[Call, Oracle]]


def once_each(
    verdict: SuiteVerdict,
    cases: Mapping[str, Case],
    ask: Ask | None,
) -> SuiteVerdict:
    """The suite with one failed case of each family; the others are refused as duplicates.

    Args:
        cases: what was judged, by the text of its call.
        ask: gives the reference's answers to further inputs; None where it reads no standard input.
    """
    families: dict[str, Hashable] = {text: case.family for text, case in cases.items()}
    if ask is not None:
        families |= _read_parts(verdict.cases, cases, ask)
    kept: dict[Hashable, CaseResult] = {}
    refused = []
    for result in verdict.cases:
        family: Hashable = result.key
        if result.outcome.failed:
            family = families[result.call], result.reference_value
        if family in kept:
            refused.append(
                Rejection(
                    text=cases[result.call].text,
                    reason=RejectionReason.DUPLICATE,
                    detail=_DETAIL,
                )
            )
        kept.setdefault(family, result)
    return SuiteVerdict(
        cases=tuple(kept.values()),
        rejections=(*verdict.rejections, *refused),
    )


def _read_parts(
    results: Iterable[CaseResult],
    cases: Mapping[str, Case],
    ask: Ask,
) -> dict[str, Hashable]:
    """The words that the reference reads, of failed inputs that begin and are answered alike; no others are asked."""
    groups: dict[tuple[tuple[str, ...], str], list[Call]] = defaultdict(list)
    for result in results:
        call = cases[result.call].call
        if result.outcome.failed:
            start = alike_words(_text_of(call))[:1]
            groups[start, result.reference_value].append(call)
    alike = {call: value for (_, value), group in groups.items() for call in group if len(group) > 1}
    words = {call: alike_words(_text_of(call)) for call in alike}
    # The first word that is not read stands in [low, high]. At first the last one is tried, which most references read.
    low = dict.fromkeys(alike, 1)
    high = {call: len(words[call]) for call in alike}
    tried = {call: high[call] - 1 for call in alike}
    while left := [call for call in alike if low[call] < high[call]]:
        changed = {call: _without_words(call, tried[call]) for call in left}
        answers = ask(changed.values())
        for call, other in changed.items():
            answer = answers[other]
            if isinstance(answer, OracleValue) and answer.literal == alike[call]:
                high[call] = tried[call]
            else:
                low[call] = tried[call] + 1
            tried[call] = (low[call] + high[call]) // 2
    return {call.text: words[call][: high[call]] for call in alike}


def _text_of(call: Call) -> str:
    """The input of ``run(text)``."""
    expression = ast.parse(call.expression, mode="eval").body
    return str(ast.literal_eval(expression.args[0]))  # type: ignore[attr-defined]


def _without_words(call: Call, first: int) -> Call:
    """The same input with other words from one on."""
    text = _text_of(call)
    start = [match.start() for match in WORD.finditer(text)][first]
    changed = text[:start] + WORD.sub(_NEVER_READ, text[start:])
    return Call(expression=f"{INPUT_ENTRY}({changed!r})")
