"""Rows that name the recipe's own columns, with a reference or without, and verl's files."""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from reward_fns import extract_candidate
from reward_fns.listed import with_listed_outputs
from sandbox.text import INPUT_ENTRY

from ..algorithm.question import Question, definitions, parsed as program_in
from ..errors import RowError
from ..files import fingerprint
from .asserts import asserts_in
from .native_row import NativeRow, Row, json_of, list_of, parsed, text_of
from .stdin_rows import with_inputs


def from_native(row: Row) -> NativeRow:
    """Columns ``id, prompt, reference`` and whichever of the others a row has."""
    if row.get("oracle") is not None and not row.get("reference"):
        return from_listed(row)
    names = [column.name for column in fields(Question)]
    given = {name: row[name] for name in names if row.get(name) is not None}
    if (messages := _messages(given.get("prompt"))) is not None:
        given["prompt"] = "\n\n".join(_user_texts(messages))
    if "```" in (text := str(given.get("reference"))) and not program_in(text).body:
        found = extract_candidate(text)
        if isinstance(found, str):
            given["reference"] = found
    tests = given.get("tests")
    if isinstance(tests, str):
        with contextlib.suppress(ValueError):
            tests = given["tests"] = json.loads(tests)
    # A text, or an item that is a function or a loop, may hold several tests.
    written = tests if isinstance(tests, list | tuple) else ()
    if isinstance(tests, str) or not all(str(test).lstrip().startswith("assert") for test in written):
        tested = [*definitions(text_of(given, "reference")), *definitions(str(given.get("prelude"))), INPUT_ENTRY]
        given["tests"] = tests if isinstance(tests, str) else "\n".join(list_of(given, "tests"))
        given |= asserts_in(parsed(given, "tests"), tested)
    native = NativeRow(**given)
    return with_inputs(row, native) if row.get("inputs") is not None else native


def _messages(prompt: Any) -> list[Any] | None:
    """The chat messages of a prompt, as verl's files have them, or their JSON text; None of a statement."""
    if isinstance(prompt, str) and re.match(r"\s*\[\s*\{", prompt):
        with contextlib.suppress(ValueError):
            prompt = json.loads(prompt)
    return prompt if isinstance(prompt, list) else None


def _user_texts(messages: list[Any]) -> Iterator[str]:
    for message in messages:
        # ShareGPT's files have `from` and `value`.
        if isinstance(message, Mapping) and (message.get("role") or message.get("from")) in ("user", "human"):
            content = message.get("content") or message.get("value") or ""
            for part in content if isinstance(content, list) else [{"text": content}]:
                yield str(part.get("text", "") if isinstance(part, Mapping) else part)


def from_listed(row: Row) -> NativeRow:
    """Native columns with ``oracle: listed`` in place of a reference: ``tests``, or ``inputs`` and ``outputs``."""
    if row["oracle"] != "listed":
        raise RowError(
            "oracle", f"must be 'listed', got {row['oracle']!r}; a row with a reference needs no such column"
        )
    columns = (*(column.name for column in fields(Question)), "inputs", "outputs", "fn_name")
    try:
        return from_native(with_listed_outputs({name: row[name] for name in columns if row.get(name) is not None}))
    except (ValueError, TypeError) as error:
        raise RowError("tests", str(error)) from error


def from_verl(row: Row) -> NativeRow:
    """verl's ``prompt, reward_model``: the ground truth of this project's reward entry or of ``prime_code``."""
    model, info = (one if isinstance(one, Mapping) else {} for one in (row.get("reward_model"), row.get("extra_info")))
    truth = json_of(model, "ground_truth")
    if not isinstance(truth, Mapping):
        raise RowError("reward_model", f"must have a mapping as ground_truth, got {truth!r:.60}")
    number = info.get("index", fingerprint(str(row.get("prompt"))))
    identity = f"{row.get('data_source')}/{info.get('split')}/{number}"
    given = {"id": identity, **row, **truth}
    return (from_native if given.get("reference") else from_listed)({"oracle": "listed", **given})
