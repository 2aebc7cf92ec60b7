"""Finds calls of a question that show one mistake, although their texts differ.

Otherwise ``run("3")``, ``run("3.0")`` and ``run("3 x")`` would detect one bug three times. Such calls stay separate
cases of one family, and a reward counts a family once. Calls of one family have the same answer of the reference, and:

- their arguments are alike, see ``values.alike``; or
- they have a common beginning and end, and the reference reads nothing of the part between. This is asked: the part is
  replaced by meaningless text of two kinds, and the answer must stay the same. A program that reads the part would
  raise an error or give another answer. It may give the same answer by chance, as a test for a rare property does. So
  the part counts as read if another call of the question, in which only this part differs, has another answer.

Calls that read the result (``f(1)[0]``, ``len(f(1))``) belong to the family of the call itself.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import pairwise

from ..cases.case import Call
from ..errors import UnencodableError, ValueFormatError
from ..values.alike import INPUT_WORD, NUMBER, alike_containers, alike_word
from ..values.decoding import decode
from ..values.encoding import canonical_key
from ..values.literals import INPUT_ENTRY

_CALL_WORD = re.compile(rf"b?'(?:[^'\\]|\\.)*+'|b?\"(?:[^\"\\]|\\.)*+\"|{NUMBER}|\w+|\S")
_LITERAL = re.compile(r"b?['\"]|[+-]?\.?\d|True$|False$|None$")
_MEANINGLESS_INPUT = ("zz", "-7")
_MEANINGLESS_ARGUMENT = ("None", "'zz'")
_MAX_PAIRS = 512
"""Limit of the pairs of calls of one batch that the reference is asked about."""
_ID_BYTES = 16
_MAX_ANSWER_BYTES = 4096
"""Longer answers count as equal only if their bytes are equal."""
Ask = Callable[[Collection[Call]], Mapping[Call, bytes]]


@lru_cache(4096)
def alike_answer(value: bytes) -> bytes:
    """Return bytes that are equal for answers that differ only in spaces, types of numbers or kinds of containers."""
    if len(value) > _MAX_ANSWER_BYTES:
        return value
    try:
        answer = decode(value)
        return canonical_key(" ".join(answer.split()) if isinstance(answer, str) else alike_containers(answer))
    except (ValueFormatError, UnencodableError):
        return value


@dataclass(frozen=True, eq=False)
class _Text:
    """A call, and the words of its input or its source."""

    call: Call
    answer: bytes
    number: int
    reads_input: bool

    @cached_property
    def text(self) -> str:
        return self.call.input if self.reads_input else self.call.expression

    @cached_property
    def _matches(self) -> list[re.Match[str]]:
        pattern = INPUT_WORD if self.reads_input else _CALL_WORD
        return list(pattern.finditer(self.text))

    @cached_property
    def words(self) -> tuple[str, ...]:
        words = [match[0] for match in self._matches]
        return tuple(map(alike_word, words)) if self.reads_input else tuple(words)

    @cached_property
    def form(self) -> tuple[str, ...]:
        """The words, without those that can be replaced."""
        return tuple("" if self._is_replaceable(word) else word for word in self.words)

    def _is_replaceable(self, word: str) -> bool:
        if self.reads_input:
            return any(map(str.isalnum, word))
        return _LITERAL.match(word) is not None

    def without_meaning(self, places: Collection[int], word: str) -> Call:
        """Replace the words at ``places``. Blanks, line ends and brackets stay."""
        pieces, at = [], 0
        for place in places:
            match = self._matches[place]
            pieces += [self.text[at : match.start()], word]
            at = match.end()
        text = "".join([*pieces, self.text[at:]])
        return replace(self.call, expression=f"{INPUT_ENTRY}({text!r})" if self.reads_input else text)

    def places_between(self, start: int, end: int) -> list[int]:
        """Return the words from ``start`` to ``end`` that can be replaced. The list is empty if no other words could
        show a mistake, or if the part is none of the arguments."""
        form = self.form
        if "" not in form[:start] + form[end:]:
            return []
        if not self.reads_input:
            # Other functions, methods and members are no other spelling.
            names_member = any(form[at] == "." for at in range(start - 1, end))
            if "(" not in form[:start] or names_member or self._matches[start].start() <= self.call.callee_chars:
                return []
        return [at for at in range(start, end) if not form[at]]

    @property
    def values_of_dicts(self) -> list[int]:
        if self.call.alike_keys == self.call.alike:
            return []
        return [at for at, (word, after) in enumerate(pairwise(self.form), 1) if word == ":" and not after]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Places of words in one text. Another text has other words there, or no words."""

    text: _Text
    other: _Text
    places: Sequence[int]
    is_end: bool = False
    """The part is all that stands behind the common beginning of two inputs."""

    @classmethod
    def between(cls, one: _Text, other: _Text) -> "_Part":
        """Return the part that differs, of the text that has more words. It has no places if it cannot be replaced."""
        one, other = sorted((one, other), key=lambda text: len(text.words), reverse=True)
        start = _num_equal(one.words, other.words)
        num_words = len(one.words)
        end = num_words - _num_equal(one.words[start:][::-1], other.words[start:][::-1])
        places = one.places_between(start, end)
        if one.reads_input and (end == num_words or not places) and "" in one.form[:start]:
            return cls(one, other, range(start, num_words), is_end=True)
        return cls(one, other, places)

    def meaningless(self) -> tuple[str, ...]:
        """Return words of several kinds to put in place of this part."""
        if not self.text.reads_input:
            return _MEANINGLESS_ARGUMENT
        # Many programs take any other character for one of the two that they know, so brackets are also left out.
        has_signs = any(self.text.form[place] for place in self.places)
        return (*_MEANINGLESS_INPUT, "") if has_signs else _MEANINGLESS_INPUT

    def is_in(self, text: _Text) -> bool:
        """Tell whether ``text`` differs from ``self.text`` in this part alone. If more words than those of the part
        differ in number or kind, the reference may see this, so such a text does not count."""
        own, words = self.text, text.words
        if self.is_end:
            return words[: self.places[0]] == own.words[: self.places[0]]
        places = set(self.places)
        return text.form == own.form and all(
            word == other or place in places for place, (word, other) in enumerate(zip(own.words, words, strict=True))
        )


def find_families(answers: Mapping[Call, bytes], ask: Ask | None, *, reads_input: bool) -> dict[Call, str]:
    """Return the family of each call: hexadecimal, equal in all processes.

    Args:
        answers: the reference's answer to each call, as ``alike_answer``.
        ask: returns the reference's answers to further calls in the same form, and leaves out calls without an answer.
            None: only alike arguments make a family.
        reads_input: the calls are inputs of a program that reads standard input.
    """
    # The shortest call stands for its family, since it is the likeliest to come again in another batch.
    calls = sorted(answers, key=lambda call: (len(call.expression), call.text))
    families = _Families(len(calls))
    same: dict[Hashable, int] = {}
    for number, call in sorted(enumerate(calls), key=lambda item: item[1].reads):
        like = same.setdefault(call.alike, number)
        families.unite(number, like if call.reads else same.setdefault((call.alike, answers[call]), number))
    if ask is not None:
        texts = [_Text(call, answers[call], number, reads_input) for number, call in enumerate(calls)]
        for part in _unread([text for text in texts if families.first(text.number) == text.number], ask):
            families.unite(part.text.number, part.other.number)
    firsts = [calls[families.first(number)] for number in range(len(calls))]
    return {call: _digest(first, answers[first]) for call, first in zip(calls, firsts, strict=True)}


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


def _unread(texts: list[_Text], ask: Ask) -> list[_Part]:
    """Return the parts that the reference does not read.

    The parts that are asked about are those between neighbours, in the order of their words and of their reversed
    words, and the values of dicts.
    """
    groups: dict[bytes, list[_Text]] = defaultdict(list)
    for text in texts:
        groups[text.answer].append(text)
    parts: list[_Part] = []
    for group in groups.values():
        if len(group) < 2:
            continue
        of_keys: dict[bytes, _Text] = {}
        for text in group:
            other = of_keys.setdefault(text.call.alike_keys, text)
            parts.append(_Part(text, other, text.values_of_dicts))
        for step in (1, -1):
            group.sort(key=lambda text: text.words[::step])
            parts += [_Part.between(one, other) for one, other in pairwise(group)]
    asked = {
        part: [part.text.without_meaning(part.places, word) for word in part.meaningless()]
        for part in [part for part in parts if part.places and part.text is not part.other][:_MAX_PAIRS]
    }
    found = ask(dict.fromkeys(call for calls in asked.values() for call in calls)) if asked else {}
    left = [part for part, calls in asked.items() if {found.get(call) for call in calls} == {part.text.answer}]
    # A single call of the same question with another answer shows that the part is read.
    return [part for part in left if not any(one.answer != part.text.answer and part.is_in(one) for one in texts)]


def _num_equal(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return the number of first words that are equal."""
    for number, (word, other_word) in enumerate(zip(one, other, strict=False)):
        if word != other_word:
            return number
    return min(len(one), len(other))
