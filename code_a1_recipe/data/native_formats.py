"""Readers of rows in the recipe's own columns, with a reference or without, and of verl's files."""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from reward_fns import extract_candidate
from reward_fns.listed import with_listed_outputs
from sandbox.text import INPUT_ENTRY

from ..algorithm.question import definitions, parsed as program_in
from ..errors import RowError
from ..files import fingerprint
from .asserts import asserts_in
from .native_row import COLUMNS, NativeRow, Row, json_of, list_of, parsed, text_of
from .stdin_rows import with_inputs


def from_native(row: Row) -> NativeRow:
    """Read the columns ``id, prompt, reference`` and any other native column of the row."""
    if row.get("oracle") is not None and not row.get("reference"):
        return from_listed(row)
    given = _given_columns(row, *COLUMNS)
    prompt = given.get("prompt")
    if isinstance(prompt, str) and re.match(r"\s*\[\s*\{", prompt):  # chat messages as JSON
        with contextlib.suppress(ValueError):
            prompt = json.loads(prompt)
    if isinstance(prompt, list):
        given["prompt"] = "\n\n".join(_user_texts(prompt))
    reference = str(given.get("reference"))
    if "```" in reference and not program_in(reference).body:
        extracted = extract_candidate(reference)
        if isinstance(extracted, str):
            given["reference"] = extracted
    tests = given.get("tests")
    if isinstance(tests, str):
        with contextlib.suppress(ValueError):
            tests = given["tests"] = json.loads(tests)
    if isinstance(tests, list | tuple) and not all(str(test).lstrip().startswith("assert") for test in tests):
        # An item that is a function or a loop may hold several tests, as a text may.
        tests = given["tests"] = "\n".join(list_of(given, "tests"))
    if isinstance(tests, str):
        tested = [INPUT_ENTRY]
        for program in (text_of(given, "reference"), str(given.get("prelude"))):
            tested += definitions(program)
        given |= asserts_in(parsed(given, "tests"), tested)
    native = NativeRow(**given)
    if row.get("inputs") is None:
        return native
    return with_inputs(row, native)


def _given_columns(row: Row, *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names if row.get(name) is not None}


def _user_texts(messages: list[Any]) -> Iterator[str]:
    """The texts of the user's messages. ShareGPT's files have `from` and `value` for `role` and `content`."""
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        role = message.get("role") or message.get("from")
        if role not in ("user", "human"):
            continue
        content = message.get("content") or message.get("value") or ""
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            text = part.get("text", "") if isinstance(part, Mapping) else part
            yield str(text)


def from_listed(row: Row) -> NativeRow:
    """Read a row with ``oracle: listed`` and no reference. It has ``tests``, or ``inputs`` and ``outputs``."""
    oracle = row["oracle"]
    if oracle != "listed":
        raise RowError("oracle", f"must be 'listed', got {oracle!r}; a row with a reference needs no such column")
    listed = _given_columns(row, *COLUMNS, "inputs", "outputs", "fn_name")
    try:
        return from_native(with_listed_outputs(listed))
    except (ValueError, TypeError) as error:
        raise RowError("tests", str(error)) from error


def from_verl(row: Row) -> NativeRow:
    """Read verl's ``prompt, reward_model``. The ground truth is this project's reward entry's, or ``prime_code``'s."""
    truth = json_of(_mapping_in(row, "reward_model"), "ground_truth")
    if not isinstance(truth, Mapping):
        raise RowError("reward_model", f"must have a mapping as ground_truth, got {truth!r:.60}")
    info = _mapping_in(row, "extra_info")
    number = info.get("index", fingerprint(str(row.get("prompt"))))
    identity = f"{row.get('data_source')}/{info.get('split')}/{number}"
    return from_native({"oracle": "listed", "id": identity, **row, **truth})


def _mapping_in(row: Row, column: str) -> Row:
    value = row.get(column)
    return value if isinstance(value, Mapping) else {}
