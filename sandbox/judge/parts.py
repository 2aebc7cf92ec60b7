"""The parts in which two calls differ, and the calls with meaningless values in their place."""

import ast
import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import zip_longest
from typing import Any, ClassVar

from ..cases.case import Call
from ..cases.needs import PARSE_ERRORS
from ..values.alike import INPUT_WORD, NUMBER, alike_word
from ..values.literals import INPUT_ENTRY, LIBRARY_NAMES, SPELLED_BUILTINS

_CALL_WORD = re.compile(rf"b?'(?:[^'\\]|\\.)*+'|b?\"(?:[^\"\\]|\\.)*+\"|{NUMBER}|\w+|\S")
_MEANINGLESS_WORDS = ("zz", "-7", "0")
_MEANINGLESS_ARGUMENTS = ("None", "'zz'", "0")
_LITERAL = re.compile(r"b?['\"]|[+-]?\.?\d|True$|False$|None$")
_LITERALS = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.List, ast.Tuple, ast.Set, ast.Dict)
_CONSTRUCTORS = SPELLED_BUILTINS | LIBRARY_NAMES.keys()


@dataclass(frozen=True, eq=False)
class InputText:
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

    def parts(self, other: "InputText") -> list[tuple["InputText", Sequence[int]]]:
        """Return the words in which two inputs differ, for one of them, or for each if their forms differ.

        A part is empty if the words cannot be replaced, or if no words are left that could show a mistake. A range: all
        that stands behind the common beginning.
        """
        if self._form != other._form:
            return [(self, self._places(other)), (other, other._places(self))]
        places = [at for at, (word, its) in enumerate(zip(self.words, other.words, strict=True)) if word != its]
        return [(self, places if len(places) < self._form.count("") else ())]

    def _places(self, other: "InputText") -> Sequence[int]:
        words = self.words
        start = _num_equal(words, other.words)
        end = len(words) - _num_equal(words[start:][::-1], other.words[start:][::-1])
        places = [at for at in range(start, end) if not self._form[at]]
        if end == len(words) or not places:
            return range(start, len(words)) if "" in self._form[:start] else ()
        return places if "" in self._form[:start] + self._form[end:] else ()

    def without_meaning(self, places: Sequence[int]) -> list[Call]:
        """Replace the words at ``places`` by each meaningless word. Blanks and line ends stay."""
        # Many programs take any other sign for one of the two that they know, so signs are also left out.
        words = (*_MEANINGLESS_WORDS, "") if any(self._form[place] for place in places) else _MEANINGLESS_WORDS
        spans = [self._matches[place].span() for place in places]
        texts = [_replaced(self.call.input, spans, word) for word in words]
        return [replace(self.call, expression=f"{INPUT_ENTRY}({text!r})") for text in texts]

    def differs_at(self, places: Sequence[int], other: "InputText") -> bool:
        """Tell whether the other input differs at these places alone. It must have the same number of words, because
        the reference may read their number."""
        if isinstance(places, range):
            return self.words[: places.start] == other.words[: places.start]
        pairs, free = enumerate(zip(self.words, other.words, strict=False)), set(places)
        return self._form == other._form and all(word == its or at in free for at, (word, its) in pairs)


@dataclass(frozen=True, eq=False)
class CallText:
    """A call of a function or method. Its places are literals of its syntax tree."""

    call: Call
    answer: bytes
    number: int

    @cached_property
    def words(self) -> tuple[str, ...]:
        source = self.call.expression
        return (_kept_words if len(source) <= _MAX_KEPT_CHARS else _words)(source)

    @cached_property
    def _source(self) -> bytes:
        return self.call.expression.encode("utf-8", "surrogatepass")

    @cached_property
    def _tree(self) -> ast.expr:
        source = self.call.expression
        return (_kept_tree if len(source) <= _MAX_KEPT_CHARS else _parsed)(source)

    @property
    def has_set(self) -> bool:
        source = self.call.expression
        return "set(" in source or ("{" in source and ":" not in source)

    @property
    def places_of_values(self) -> Sequence[ast.expr]:
        """The values of all dicts."""
        if "{" in self.call.expression:
            with contextlib.suppress(*PARSE_ERRORS):  # nested too deep
                return [value for node in ast.walk(self._tree) if isinstance(node, ast.Dict) for value in node.values]
        return ()

    def parts(self, other: "CallText") -> list[tuple["CallText", Sequence[ast.expr]]]:
        """Return the literals in which two calls differ, for one of them, or for each if the other has more.

        A part is empty if something else differs, or if no literals are left that could show a mistake.
        """
        start = _num_equal(self.words, other.words)
        end = len(self.words) - _num_equal(self.words[::-1], other.words[::-1])
        if not any(map(_LITERAL.match, self.words[:start] + self.words[end:])):
            return []
        try:
            found = list(_differences(self._tree, other._tree))
            both = [(self, found)]
            if None in found:
                both.append((other, list(_differences(other._tree, self._tree))))
        except PARSE_ERRORS:  # nested too deep
            return []
        return [(text, text._replaceable(nodes)) for text, nodes in both]

    def _replaceable(self, found: Sequence[ast.expr | None]) -> Sequence[ast.expr]:
        callee = len(self.call.expression[: self.call.callee_chars].encode())
        places = [node for node in found if node is not None]
        return places if all(_is_literal(place) and place.col_offset >= callee for place in places) else ()

    def without_meaning(self, places: Sequence[ast.expr]) -> list[Call]:
        """Replace the literals at ``places`` by each meaningless one."""
        spans = sorted((place.col_offset, place.end_col_offset or 0) for place in places)
        texts = [_replaced(self._source, spans, word.encode()).decode() for word in _MEANINGLESS_ARGUMENTS]
        return [replace(self.call, expression=text) for text in texts]

    def differs_at(self, places: Sequence[ast.expr], other: "CallText") -> bool:
        """Tell whether the other call differs at these places alone."""
        length = min(place.col_offset for place in places)
        head, its_head = self._source[:length], other._source[:length]
        # This comparison takes little time. With brackets or names before the places, alike calls may differ in text.
        if (
            head != its_head
            and not any(mark in head + its_head for mark in b"[{=")
            and (head + its_head).count(b"(") == 2
        ):
            return False
        free = set(places)
        with contextlib.suppress(*PARSE_ERRORS):
            return all(node in free for node in _differences(self._tree, other._tree))
        return True


def _words(source: str) -> tuple[str, ...]:
    return tuple(_CALL_WORD.findall(source))


def _parsed(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body


# The suites of a question have many calls in common.
_MAX_KEPT_CHARS = 400
_kept_words, _kept_tree = lru_cache(1024)(_words), lru_cache(1024)(_parsed)


def _differences(one: ast.expr, other: ast.expr) -> Iterator[ast.expr | None]:
    """Yield the parts of ``one`` that differ from ``other``, and None for each part that only ``other`` has."""
    pending: list[tuple[Any, Any]] = [(one, other)]
    while pending:  # a suite may chain hundreds of calls, so this is no recursion
        one, other = pending.pop()
        if one is None or other is None:
            yield one
        elif type(one) is ast.Constant and type(other) is ast.Constant:  # the most frequent kind
            if type(one.value) is not type(other.value) or one.value != other.value:
                yield one
        elif (items := _items(one)) is not None and (its_items := _items(other)) is not None:
            pending += zip_longest(items, its_items)
        else:
            match one, other:
                case (ast.Dict(), ast.Dict()) if len(one.keys) == len(other.keys):
                    pending += zip([*one.keys, *one.values], [*other.keys, *other.values], strict=True)
                case ast.Dict(), ast.Dict():
                    values, its_values = (
                        {ast.dump(key): (key, value) for key, value in zip(node.keys, node.values, strict=True) if key}
                        for node in (one, other)
                    )
                    for name in dict.fromkeys([*values, *its_values]):
                        pending += zip(values.get(name, (None, None)), its_values.get(name, (None, None)), strict=True)
                case ast.Call(), ast.Call():
                    both = [{keyword.arg: keyword.value for keyword in call.keywords} for call in (one, other)]
                    pending.append((one.func, other.func))
                    pending += zip_longest(one.args, other.args)
                    pending += [(both[0].get(name), both[1].get(name)) for name in dict.fromkeys([*both[0], *both[1]])]
                case (ast.Attribute(), ast.Attribute()) if one.attr == other.attr:
                    pending.append((one.value, other.value))
                case (ast.Subscript(), ast.Subscript()) if ast.dump(one.slice) == ast.dump(other.slice):
                    pending.append((one.value, other.value))
                case _ if type(one) is not type(other) or ast.dump(one) != ast.dump(other):
                    yield one


def _items(node: ast.expr) -> list[ast.expr] | None:
    """Return the items of a list, tuple or set, also if a constructor such as ``deque`` gets the list."""
    match node:
        case ast.List(items) | ast.Tuple(items) | ast.Set(items):
            return items
        case ast.Call(ast.Name(name), [ast.List(items) | ast.Tuple(items) | ast.Set(items)], []):
            return items if name in _CONSTRUCTORS else None
    return None


def _is_literal(node: ast.expr) -> bool:
    match node:
        case ast.Call(ast.Name(name)):
            return name in _CONSTRUCTORS
    return isinstance(node, _LITERALS)


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
