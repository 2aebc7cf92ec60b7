"""The base of every block of configuration keys, and what a user reads about a value that breaks its bounds."""

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
"""Rule of a bound, by pydantic's name for the kind of error."""


class Block(BaseModel):
    """A frozen block of keys. YAML's values are taken as they are: `nope` is a text and no boolean, 2.5 is no count."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        use_attribute_docstrings=True,
    )

    @classmethod
    def read(cls, raw: Mapping[str, Any], *, where: str) -> Self:
        """Check plain values.

        Raises:
            SettingsError: names every value that breaks a rule, by its full key below ``where``.
        """
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            problems = [describe(item, f"{where}.{key_of(item)}".rstrip("."), cls) for item in error.errors()]
            raise SettingsError(*problems) from error

    def replaced(self, *, where: str, **changes: Any) -> Self:
        """A copy with other values, which are checked like any."""
        return self.read({**dict(self), **changes}, where=where)


def key_of(item: Mapping[str, Any]) -> str:
    """The dotted key of one of pydantic's errors, the places inside lists left out."""
    return ".".join(part for part in item["loc"] if isinstance(part, str))


def describe(item: Mapping[str, Any], key: str, block: type[Block]) -> str:
    """Rule, value, place and hint of one of pydantic's errors about a value somewhere in ``block``."""
    kind, context, field = item["type"], item.get("ctx", {}), _field_at(block, item["loc"])
    if kind == "extra_forbidden":
        return unknown_key(key, [f"{key.rpartition('.')[0]}.{name}" for name in _block_at(block, item["loc"])])
    if kind == "missing":
        return f"{key} is missing; give it a value"
    cause = context.get("error")
    if isinstance(cause, ValueError) and type(cause) is not ValueError:  # a library's own message, with its own place
        return str(cause)
    bounds = {name: f"{bound:g}" if isinstance(bound, float) else bound for name, bound in context.items()}
    rule = str(cause) if cause else _RULES.get(kind, item["msg"]).format(**bounds)
    if field is not None and type(None) in get_args(field.annotation):
        rule += " or null"
    hint = (field.description or "").partition("\n")[0].rstrip(".") if field is not None else ""
    return f"{key} must be {rule}, got {item['input']!r}" + (f" ({hint})" if hint else "")


def unknown_key(key: str, known: Collection[str]) -> str:
    """The message about a key that does not exist."""
    # A guess is worth more than a list: there are two thousand keys.
    near = near_misses(key, known)
    return f"unknown key {key!r}; " + (f"did you mean {near}?" if near else "`--print-config` lists the known ones")


def near_misses(word: str, known: Collection[str]) -> str:
    """Up to three known words that look like ``word``, joined by "or"; empty where none does."""
    return " or ".join(difflib.get_close_matches(word, known, n=3, cutoff=0.75))


def one_of(known: Collection[str]) -> AfterValidator:
    """A bound: the value is one of these names."""

    def check(name: str) -> str:
        if name not in known:
            near = near_misses(name, known)
            raise ValueError(f"one of {', '.join(sorted(known))}" + (f" (did you mean {near}?)" if near else ""))
        return name

    return AfterValidator(check)


def _block_at(block: type[Block], place: tuple[Any, ...]) -> Mapping[str, Any]:
    """Fields beside the last part of ``place``."""
    for part in place[:-1]:
        kind = block.model_fields[part].annotation if part in block.model_fields else None
        if not (isinstance(kind, type) and issubclass(kind, Block)):
            return {}
        block = kind
    return block.model_fields


def _field_at(block: type[Block], place: tuple[Any, ...]) -> Any:
    names = tuple(part for part in place if isinstance(part, str))
    return _block_at(block, names).get(names[-1]) if names else None
