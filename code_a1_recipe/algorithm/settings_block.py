"""The base class of all blocks of configuration keys, and the messages about wrong values."""

import difflib
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ..errors import SettingsError

Count = Annotated[int, Field(ge=1)]
Amount = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]
Rate = Annotated[float, Field(ge=0, le=1)]
Precision = Literal["fp32", "float32", "bf16", "bfloat16", "fp16", "float16"]

_RULES = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a block of keys",
    "model_type": "a block of keys",
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "literal_error": "{expected}",
}
"""The rule that a message shows, by pydantic's name for the kind of error."""


class Block(BaseModel):
    """A frozen block of keys. Values are not converted: `nope` is a text and no boolean, and 2.5 is no count."""

    # Messages use a field's docstring as a hint.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
    )

    @classmethod
    def read(cls, raw: Mapping[str, Any], *, where: str) -> Self:
        """Make a block from plain values.

        Raises:
            SettingsError: values are wrong. The message names each wrong value by its full key, which begins with
                ``where``.
        """
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            problems = [describe(item, f"{where}.{key_of(item)}".rstrip("."), cls) for item in error.errors()]
            raise SettingsError(*problems) from error

    def replaced(self, *, where: str, **changes: Any) -> Self:
        """Make a copy with other values, which are checked as in ``read``."""
        return self.read({**dict(self), **changes}, where=where)


class NamedCode(Block):
    """A function or class that the configuration names, with its keyword arguments."""

    name: str
    path: str | None = None
    """``pkg://package.module`` or a Python file that every node has under this path; null: shipped code."""
    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the function or class."""


def key_of(item: Mapping[str, Any]) -> str:
    """The dotted key of an error that pydantic reports, without positions in lists."""
    return ".".join(part for part in item["loc"] if isinstance(part, str))


def describe(item: Mapping[str, Any], key: str, block: type[Block]) -> str:
    """The message about an error that pydantic reports in ``block``: key, rule, value and hint."""
    kind, place, context = item["type"], item["loc"], item.get("ctx", {})
    if kind == "extra_forbidden":
        parent = key.rpartition(".")[0]
        return unknown_key(key, [f"{parent}.{name}" for name in _fields_beside(block, place)])
    if kind == "missing":
        return f"{key} is missing; give it a value"
    cause = context.get("error")
    # The recipe's own bounds raise a plain ValueError, whose text is the rule. A subclass of ValueError, for example
    # from Limits, has a complete message.
    if isinstance(cause, ValueError) and type(cause) is not ValueError:
        return str(cause)
    if cause:
        rule = str(cause)
    else:
        bounds = {name: f"{bound:g}" if isinstance(bound, float) else bound for name, bound in context.items()}
        rule = _RULES.get(kind, item["msg"]).format(**bounds)
    hint = ""
    names = tuple(part for part in place if isinstance(part, str))
    field = _fields_beside(block, names).get(names[-1]) if names else None
    if field is not None:
        if type(None) in get_args(field.annotation):
            rule += " or null"
        if field.description:
            first_line = field.description.partition("\n")[0]
            hint = f" ({first_line.rstrip('.')})"
    return f"{key} must be {rule}, got {item['input']!r}{hint}"


def unknown_key(key: str, known: Collection[str]) -> str:
    """The message about a key that does not exist."""
    # verl has two thousand keys, which are too many to list.
    ends = sorted((one for one in known if one.endswith(f".{key}")), key=lambda one: one.count("."))
    near = near_misses(key, known) or " or ".join(ends[:2])
    hint = f"did you mean {near}?" if near else "`--print-config` lists the known keys"
    return f"unknown key {key!r}; {hint}"


def near_misses(word: str, known: Collection[str]) -> str:
    """Up to three known words that look like ``word``, joined by "or"; empty if no word does."""
    return " or ".join(difflib.get_close_matches(word, known, n=3, cutoff=0.75))


def one_of(known: Collection[str]) -> AfterValidator:
    """A bound: the value must be one of these names."""

    def check(name: str) -> str:
        if name in known:
            return name
        near = near_misses(name, known)
        hint = f" (did you mean {near}?)" if near else ""
        raise ValueError(f"one of {', '.join(sorted(known))}{hint}")

    return AfterValidator(check)


def _fields_beside(block: type[Block], place: tuple[Any, ...]) -> Mapping[str, Any]:
    """The fields of the block that contains the key at ``place``; empty if no block contains it."""
    for part in place[:-1]:
        kind = block.model_fields[part].annotation if part in block.model_fields else None
        if not (isinstance(kind, type) and issubclass(kind, Block)):
            return {}
        block = kind
    return block.model_fields
