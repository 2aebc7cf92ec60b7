"""Finds calls of a question that show one mistake, although their texts differ.

Otherwise ``run("3")``, ``run("3.0")`` and ``run("3 x")`` would detect one bug three times. Such calls stay separate
cases of one family, and a reward counts a family once. Calls of one family have the same answer of the reference, and:

- their arguments are alike, see ``values.alike``; or
- they differ in parts that the reference does not read. This is asked: the parts are replaced by three meaningless
  values in turn, and the answer must stay the same. A program that reads the parts would raise an error or give another
  answer. A test for a rare property may give the same answer by chance. So the parts count as read if another call of
  the question, in which only these parts differ, has another answer.

Calls that read the result (``f(1)[0]``, ``len(f(1))``) belong to the family of the call itself.
"""

from collections import defaultdict
from collections.abc import Collection, Generator, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from itertools import islice, pairwise
from typing import Any

from ..cases.case import Call
from ..errors import UnencodableError, ValueFormatError
from ..limits import Limits
from ..runners.base import CallStatus, Role, Runner
from ..values.alike import alike_value
from ..values.decoding import decode
from ..values.encoding import canonical_key
from .oracle import OracleBatch, in_turns
from .parts import CallText, InputText

_MAX_ROUNDS = 3
_MAX_PAIRS, _MAX_WORDS = 1024, 500_000
"""Limits of the pairs of calls that the reference is asked about in one round, and of the words of these calls."""
_MAX_CONTRARY = 64
"""Limit of the calls with another answer that are compared with such a pair."""
_MAX_ANSWER_BYTES = 4096
"""Longer answers count as equal only if their bytes are equal."""
_ID_BYTES = 16
_PEEK_SECONDS, _ALL_PEEKS_SECONDS = 0.01, 2.0
"""Time of the reference for one meaningless text, if it is faster with all inputs, and for all meaningless texts."""
Search = Generator[Collection[Call], Mapping[Call, bytes], dict[Call, str]]


@lru_cache(4096)
def alike_answer(value: bytes) -> bytes:
    """Return bytes that are equal for answers that differ only in spaces, types of numbers or kinds of containers."""
    if len(value) > _MAX_ANSWER_BYTES:
        return value
    try:
        answer = decode(value)
        return canonical_key(" ".join(answer.split()) if isinstance(answer, str) else alike_value(answer, respell=str))
    except (ValueFormatError, UnencodableError):
        return value


def search_families(answers: Mapping[Call, bytes], *, asks: bool, reads_input: bool) -> Search:
    """Return the family of each call: hexadecimal, equal in all processes.

    The search yields calls that the reference must answer, and is sent the answers in the form of ``alike_answer``,
    without calls that have none. So many searches can share a process of the reference.

    Args:
        answers: the reference's answer to each call, as ``alike_answer``.
        asks: False: only alike arguments make a family.
        reads_input: the calls are inputs of a program that reads standard input.
    """
    # The shortest call stands for its family, since it is the likeliest to come again in another batch.
    calls = sorted(answers, key=lambda call: (len(call.expression), call.text))
    families = _Families(len(calls))
    same: dict[Hashable, int] = {}
    for number, call in sorted(enumerate(calls), key=lambda item: item[1].reads):
        like = same.setdefault(call.alike, number)
        families.unite(number, like if call.reads else same.setdefault((call.alike, answers[call]), number))
    kind: type[Any] = InputText if reads_input else CallText
    texts = [kind(call, answers[call], number) for number, call in enumerate(calls)]
    # Texts that are united no longer stand between others, so these may have new neighbours.
    for _ in range(_MAX_ROUNDS if asks else 0):
        texts = [text for text in texts if families.first(text.number) == text.number]
        united = yield from _unread(texts)
        for one, other in united:
            families.unite(one.number, other.number)
        if not united:
            break
    firsts = [calls[families.first(number)] for number in range(len(calls))]
    return {call: _digest(first, answers[first]) for call, first in zip(calls, firsts, strict=True)}


def families_of(batches: Sequence[OracleBatch], runner: Runner, *, limits: Limits, asks: bool) -> list[dict[Call, str]]:
    """Return the family of each call that has an answer, for each batch.

    Args:
        batches: batches of one reference. The families of a batch do not depend on the other batches.
        runner: runs the reference.
        limits: limits of a candidate.
        asks: ask the reference, too, in one process for all batches.

    Raises:
        SandboxUnavailableError: the reference could not be run.
    """
    searches: dict[int, Search] = {}
    found: dict[int, dict[Call, str]] = {}
    answers: Mapping[Call, bytes] | None = None
    for number, batch in enumerate(batches):
        known = {call: alike_answer(oracle.value) for call, oracle in batch.valued.items()}
        searches[number] = search_families(known, asks=asks, reads_input=batch.reference.reads_input)
    while searches:
        wanted = {}
        for number, search in list(searches.items()):
            try:
                wanted[number] = next(search) if answers is None else search.send(answers)
            except StopIteration as end:
                found[number] = end.value
                del searches[number]
        if wanted:
            answers = _peek(batches, in_turns(wanted.values()), runner, limits)
    return [found[number] for number in range(len(batches))]


def _peek(batches: Sequence[OracleBatch], calls: Sequence[Call], runner: Runner, limits: Limits) -> dict[Call, bytes]:
    """Ask the reference for its answers to calls with meaningless texts."""
    # Such a text may make a reference hang. Then the text counts as read.
    seconds = [oracle.cpu_seconds for batch in batches for oracle in batch.valued.values()]
    limits = replace(
        limits,
        reference_cpu_seconds_per_case=limits.reference_factor * max(_PEEK_SECONDS, *seconds),
        total_seconds=_ALL_PEEKS_SECONDS * len(batches) + 2 * sum(seconds),
    )
    reference, is_stateful = batches[0].reference, any(batch.is_stateful for batch in batches)
    asked = replace(reference, calls=tuple(calls), limits=limits.for_reference(), isolated=is_stateful)
    results = zip(asked.calls, runner.run(asked, role=Role.REFERENCE).results, strict=False)
    return {call: alike_answer(one.value) for call, one in results if one.status is CallStatus.VALUE}


class _Families:
    """Disjoint sets of numbers. The least number of a set stands for it."""

    def __init__(self, size: int) -> None:
        self._before = list(range(size))

    def first(self, number: int) -> int:
        while (before := self._before[number]) != number:
            self._before[number] = number = self._before[before]
        return number

    def unite(self, one: int, other: int) -> None:
        one, other = self.first(one), self.first(other)
        self._before[max(one, other)] = min(one, other)


def _digest(call: Call, answer: bytes) -> str:
    return blake2b(call.alike + answer, digest_size=_ID_BYTES).hexdigest()


def _unread(texts: Sequence[Any]) -> Generator[Collection[Call], Mapping[Call, bytes], list[tuple[Any, Any]]]:
    """Find pairs of texts that differ only in parts that the reference does not read.

    The pairs that are asked about are neighbours in the order of their words and of their reversed words, and calls
    whose containers have the same items, dicts by their keys.
    """
    groups: dict[bytes, list[Any]] = defaultdict(list)
    for text in texts:
        groups[text.answer].append(text)
    united: list[tuple[Any, Any]] = []
    pairs: list[tuple[Any, Any, list[tuple[Any, Sequence[Any]]]]] = []
    for group in groups.values():
        if len(group) < 2:
            continue
        of_bag: dict[bytes, Any] = {}
        for text in group:
            other = of_bag.setdefault(text.call.bag, text)
            if other is not text and (text.has_set or other.has_set):
                united.append((text, other))
            pairs.append((text, other, [(one, one.places_of_values) for one in (text, other)]))
        for step in (1, -1):
            group.sort(key=lambda text: text.words[::step])
            pairs += [(one, other, one.parts(other)) for one, other in pairwise(group)]
    asked: list[tuple[Any, Any, list[tuple[Any, Sequence[Any], list[Call]]]]] = []
    num_words = 0
    for one, other, parts in pairs:
        num_words += sum(3 * len(text.words) for text, places in parts if places)
        if num_words > _MAX_WORDS or len(asked) == _MAX_PAIRS:
            break
        calls_of = [(text, places, text.without_meaning(places)) for text, places in parts if places]
        if calls_of and one is not other:
            asked.append((one, other, calls_of))
    every = [call for *_, calls_of in asked for *_, calls in calls_of for call in calls]
    found = (yield dict.fromkeys(every)) if every else {}

    def is_unread(text: Any, places: Sequence[Any], calls: Sequence[Call]) -> bool:
        # A single call of the same question with another answer shows that the part is read.
        contrary = islice((its for its in texts if its.answer != text.answer), _MAX_CONTRARY)
        is_same = {found.get(call) for call in calls} == {text.answer}
        return is_same and not any(text.differs_at(places, its) for its in contrary)

    united += [(one, other) for one, other, calls_of in asked if all(is_unread(*part) for part in calls_of)]
    return united
