"""Finds calls of a question that show one mistake, although their texts differ.

Otherwise ``run("3")``, ``run("3.0")`` and ``run("3 x")`` would detect one bug three times. Such calls stay separate
cases of one family, and a reward counts a family once. Calls of one family have the same answer of the reference, and:

- their arguments are alike, see ``values.alike``; or
- they differ in parts that the reference does not read. This is asked: the parts are replaced by meaningless text of
  three kinds, and the answer must stay the same. A program that reads the parts would raise an error or give another
  answer. It may give the same answer by chance, as a test for a rare property does. So the parts count as read if
  another call of the question, in which only these parts differ, has another answer.

Calls that read the result (``f(1)[0]``, ``len(f(1))``) belong to the family of the call itself.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import islice, pairwise, zip_longest
from typing import Any, ClassVar

from ..cases.case import Call
from ..errors import UnencodableError, ValueFormatError
from ..values.alike import INPUT_WORD, NUMBER, alike_value, alike_word
from ..values.decoding import decode
from ..values.encoding import canonical_key
from ..values.literals import INPUT_ENTRY, LIBRARY_NAMES, SPELLED_BUILTINS

_CALL_WORD = re.compile(rf"b?'(?:[^'\\]|\\.)*+'|b?\"(?:[^\"\\]|\\.)*+\"|{NUMBER}|\w+|\S")
_MEANINGLESS_INPUT = ("zz", "-7", "0")
_MEANINGLESS_ARGUMENT = ("None", "'zz'", "0")
_LITERAL = re.compile(r"b?['\"]|[+-]?\.?\d|True$|False$|None$")
_LITERALS = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.List, ast.Tuple, ast.Set, ast.Dict)
_CONSTRUCTORS = SPELLED_BUILTINS | LIBRARY_NAMES.keys()
_MAX_PAIRS = 1024
"""Limit of the pairs of calls of one batch that the reference is asked about."""
_MAX_CONTRARY = 64
"""Limit of the calls with another answer that are compared with such a pair."""
_MAX_ANSWER_BYTES = 4096
"""Longer answers count as equal only if their bytes are equal."""
_ID_BYTES = 16
Ask = Callable[[Collection[Call]], Mapping[Call, bytes]]


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


@dataclass(frozen=True, eq=False)
class _Input:
    """An input of a program that reads standard input. Its places are numbers of words."""

    call: Call
    answer: bytes
    number: int
    has_set: ClassVar = False
    places_of_values: ClassVar = ()

    @cached_property
    def _matches(self) -> list[re.Match[str]]:
        return list(INPUT_WORD.finditer(self.call.input))

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(alike_word(match[0]) for match in self._matches)

    @cached_property
    def _form(self) -> tuple[str, ...]:
        """The signs among the words. Every other word is empty."""
        return tuple("" if any(map(str.isalnum, word)) else word for word in self.words)

    def places(self, other: "_Input") -> Sequence[int]:
        """Return the words that differ from the other input, empty if they cannot be replaced, or if no words are left
        that could show a mistake. A range: all that stands behind the common beginning."""
        words = self.words
        start = _num_equal(words, other.words)
        if self._form == other._form:
            places = [at for at, (word, its) in enumerate(zip(words, other.words, strict=True)) if word != its]
            return places if len(places) < self._form.count("") else ()
        end = len(words) - _num_equal(words[start:][::-1], other.words[start:][::-1])
        places = [at for at in range(start, end) if not self._form[at]]
        if end == len(words) or not places:
            return range(start, len(words)) if "" in self._form[:start] else ()
        return places if "" in self._form[:start] + self._form[end:] else ()

    def without_meaning(self, places: Sequence[int]) -> list[Call]:
        """Replace the words at ``places`` by those of each kind. Blanks and line ends stay."""
        # Many programs take any other sign for one of the two that they know, so signs are also left out.
        kinds = (*_MEANINGLESS_INPUT, "") if any(self._form[place] for place in places) else _MEANINGLESS_INPUT
        spans = [self._matches[place].span() for place in places]
        texts = [_replaced(self.call.input, spans, word) for word in kinds]
        return [replace(self.call, expression=f"{INPUT_ENTRY}({text!r})") for text in texts]

    def differs_at(self, places: Sequence[int], other: "_Input") -> bool:
        """Tell whether the other input differs at these places alone. It must have the same number of words, because
        the reference may read their number."""
        if isinstance(places, range):
            return self.words[: places.start] == other.words[: places.start]
        pairs, free = enumerate(zip(self.words, other.words, strict=False)), set(places)
        return self._form == other._form and all(word == its or at in free for at, (word, its) in pairs)


@dataclass(frozen=True, eq=False)
class _Arguments:
    """A call of a function or method. Its places are literals of its syntax tree."""

    call: Call
    answer: bytes
    number: int

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(_CALL_WORD.findall(self.call.expression))

    @cached_property
    def _tree(self) -> ast.expr:
        return ast.parse(self.call.expression, mode="eval").body

    @property
    def has_set(self) -> bool:
        source = self.call.expression
        return "set(" in source or ("{" in source and ":" not in source)

    @property
    def places_of_values(self) -> Sequence[ast.expr]:
        """The values of all dicts."""
        if "{" not in self.call.expression:
            return ()
        return [value for node in ast.walk(self._tree) if isinstance(node, ast.Dict) for value in node.values]

    def places(self, other: "_Arguments") -> Sequence[ast.expr]:
        """Return the literals that differ from the other call, empty if something else differs, or if no literals are
        left that could show a mistake."""
        start = _num_equal(self.words, other.words)
        end = len(self.words) - _num_equal(self.words[::-1], other.words[::-1])
        if not any(map(_LITERAL.match, self.words[:start] + self.words[end:])):
            return ()
        places = [node for node in _differences(self._tree, other._tree) if node is not None]
        callee = len(self.call.expression[: self.call.callee_chars].encode())
        return places if all(_is_literal(place) and place.col_offset >= callee for place in places) else ()

    def without_meaning(self, places: Sequence[ast.expr]) -> list[Call]:
        """Replace the literals at ``places`` by those of each kind."""
        source = self.call.expression.encode()
        spans = sorted((place.col_offset, place.end_col_offset or 0) for place in places)
        texts = [_replaced(source, spans, word.encode()).decode() for word in _MEANINGLESS_ARGUMENT]
        return [replace(self.call, expression=text) for text in texts]

    def differs_at(self, places: Sequence[ast.expr], other: "_Arguments") -> bool:
        """Tell whether the other call differs at these places alone."""
        free = set(places)
        return all(node in free for node in _differences(self._tree, other._tree))


def _differences(one: ast.expr, other: ast.expr) -> Iterator[ast.expr | None]:
    """Yield the parts of ``one`` that differ from ``other``, and None for each part that only ``other`` has."""
    parts: Iterator[tuple[Any, Any]]
    match one, other:
        case ast.Constant(value), ast.Constant(its_value) if type(value) is type(its_value) and value == its_value:
            return
        case ast.Name(name), ast.Name(its_name) if name == its_name:
            return
        case (
            (ast.List(items), ast.List(its_items))
            | (ast.Tuple(items), ast.Tuple(its_items))
            | (ast.Set(items), ast.Set(its_items))
        ):
            parts = zip_longest(items, its_items)
        case ast.Dict(), ast.Dict() if len(one.keys) == len(other.keys):
            parts = iter(zip([*one.keys, *one.values], [*other.keys, *other.values], strict=True))
        case ast.Call(), ast.Call():
            named = [{keyword.arg: keyword.value for keyword in call.keywords} for call in (one, other)]
            pairs = [(named[0].get(name), named[1].get(name)) for name in dict.fromkeys([*named[0], *named[1]])]
            parts = iter([(one.func, other.func), *zip_longest(one.args, other.args), *pairs])
        case ast.Attribute(), ast.Attribute() if one.attr == other.attr:
            parts = iter([(one.value, other.value)])
        case ast.Subscript(), ast.Subscript() if ast.dump(one.slice) == ast.dump(other.slice):
            parts = iter([(one.value, other.value)])
        case _:
            if type(one) is not type(other) or ast.dump(one) != ast.dump(other):
                yield one
            return
    for part, its in parts:
        if part is None or its is None:
            yield part
        else:
            yield from _differences(part, its)


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, _LITERALS) or (isinstance(node, ast.Call) and ast.unparse(node.func) in _CONSTRUCTORS)


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
        kind = _Input if reads_input else _Arguments
        texts = [kind(call, answers[call], number) for number, call in enumerate(calls)]
        for one, other in _unread([text for text in texts if families.first(text.number) == text.number], ask):
            families.unite(one.number, other.number)
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


def _unread(texts: Sequence[Any], ask: Ask) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of texts that differ only in parts that the reference does not read.

    The pairs that are asked about are neighbours in the order of their words and of their reversed words, and calls
    whose containers have the same items, dicts by their keys.
    """
    groups: dict[bytes, list[Any]] = defaultdict(list)
    for text in texts:
        groups[text.answer].append(text)
    pairs: list[tuple[Any, Any, list[tuple[Any, Sequence[Any]]]]] = []
    for group in groups.values():
        if len(group) < 2:
            continue
        of_bag: dict[bytes, Any] = {}
        for text in group:
            other = of_bag.setdefault(text.call.bag, text)
            if other is not text and (text.has_set or other.has_set):
                yield text, other
            pairs.append((text, other, [(one, one.places_of_values) for one in (text, other)]))
        for step in (1, -1):
            group.sort(key=lambda text: text.words[::step])
            for one, other in pairwise(group):
                pairs.append((one, other, [(one, one.places(other)), (other, other.places(one))]))
    asked = []
    for one, other, parts in pairs:
        calls_of = [(text, places, text.without_meaning(places)) for text, places in parts if places]
        if calls_of and one is not other and len(asked) < _MAX_PAIRS:
            asked.append((one, other, calls_of))
    every = [call for _, _, calls_of in asked for _, _, calls in calls_of for call in calls]
    found = ask(dict.fromkeys(every)) if every else {}

    def is_unread(text: Any, places: Sequence[Any], calls: Sequence[Call]) -> bool:
        # A single call of the same question with another answer shows that the part is read.
        others = islice((its for its in texts if its.answer != text.answer), _MAX_CONTRARY)
        is_same = {found.get(call) for call in calls} == {text.answer}
        return is_same and not any(text.differs_at(places, its) for its in others)

    for one, other, calls_of in asked:
        if all(is_unread(*part) for part in calls_of):
            yield one, other


def _replaced(text: Any, spans: Iterable[tuple[int, int]], word: Any) -> Any:
    """Replace parts of a text, or of its bytes."""
    pieces, at = [], 0
    for start, end in spans:
        pieces += [text[at:start], word]
        at = end
    return text[:0].join([*pieces, text[at:]])


def _num_equal(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return the number of first words that are equal."""
    for number, (word, other_word) in enumerate(zip(one, other, strict=False)):
        if word != other_word:
            return number
    return min(len(one), len(other))
