"""Readers of rows in native columns, of rows without a reference, and of verl's files."""

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
    """Convert a row that has the native columns ``id, prompt, reference``, and perhaps others."""
    if row.get("oracle") is not None and not row.get("reference"):
        return from_listed(row)
    given = _given_columns(row, *COLUMNS)
    if "prompt" in given:
        given["prompt"] = _statement(given["prompt"])
    if "reference" in given:
        given["reference"] = _without_fence(given["reference"])
    if "tests" in given:
        given |= _tests_columns(given)
    native = NativeRow(**given)
    if row.get("inputs") is None:
        return native
    return with_inputs(row, native)


def _given_columns(row: Row, *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names if row.get(name) is not None}


def _tests_columns(given: Row) -> dict[str, Any]:
    """Return the column ``tests``.

    If the tests are not a list of asserts, rewrite them and return ``num_dropped_tests`` too.
    """
    tests = given["tests"]
    if isinstance(tests, str):
        with contextlib.suppress(ValueError):
            tests = json.loads(tests)
    if isinstance(tests, list | tuple):
        beginnings = [str(test).lstrip() for test in tests]
        if not all(text.startswith("assert") for text in beginnings):
            # A test that is a function or a loop may hold several asserts, so all tests are read as one source.
            tests = "\n".join(list_of({"tests": tests}, "tests"))
    if not isinstance(tests, str):
        return {"tests": tests}
    names = [INPUT_ENTRY]
    reference, prelude = text_of(given, "reference"), str(given.get("prelude"))
    for program in (reference, prelude):
        names += definitions(program)
    return asserts_in(parsed({"tests": tests}, "tests"), names)


def _statement(prompt: Any) -> Any:
    """Join the user's texts in a list of chat messages, or in a JSON text of a list. Leave other prompts unchanged."""
    messages = prompt
    if isinstance(prompt, str) and re.match(r"\s*\[\s*\{", prompt):
        with contextlib.suppress(ValueError):
            messages = json.loads(prompt)
    if isinstance(messages, list):
        return "\n\n".join(_user_texts(messages))
    return prompt


def _without_fence(reference: Any) -> Any:
    """Extract the program from a reference that is a text with a fenced program. Leave other references unchanged."""
    text = str(reference)
    if "```" not in text or program_in(text).body:
        return reference
    extracted = extract_candidate(text)
    return extracted if isinstance(extracted, str) else reference


def _user_texts(messages: list[Any]) -> Iterator[str]:
    """Yield the texts of the user's messages. ShareGPT's messages have the keys ``from`` and ``value``."""
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
    """Convert a row with ``oracle: listed`` and no reference. The row's ``tests`` or ``outputs`` are the oracle."""
    oracle = row["oracle"]
    if oracle != "listed":
        raise RowError("oracle", f"must be 'listed', got {oracle!r}; leave the column out of a row with a reference")
    listed = _given_columns(row, *COLUMNS, "inputs", "outputs", "fn_name")
    try:
        return from_native(with_listed_outputs(listed))
    except (ValueError, TypeError) as error:
        raise RowError("tests", str(error)) from error


def from_verl(row: Row) -> NativeRow:
    """Convert verl's columns ``prompt, reward_model``.

    The ground truth has the form of our reward entry or of verl's ``prime_code``.
    """
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
