"""States of extensions in a checkpoint."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..algorithm.hooks import Extension
from ..errors import CodeA1Error


def saved_states(extensions: Sequence[Extension]) -> dict[str, Any]:
    """A copy of the states that a checkpoint keeps, by name, which later steps do not change.

    Raises:
        CodeA1Error: a state is made of other than JSON values, or would come back as something else.
    """
    states = {}
    for extension in extensions:
        state = extension.state()
        rule = f"extensions: state() of {extension.name} must return JSON values: lists, texts as keys, finite numbers"
        try:
            copied = json.loads(json.dumps(state, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise CodeA1Error(f"{rule}; {error}") from error
        if copied != state:
            raise CodeA1Error(f"{rule}; got {state!r:.200}, which would come back as {copied!r:.200}")
        if state is not None:
            states[extension.name] = copied
    return states


def restore_states(extensions: Sequence[Extension], states: Mapping[str, Any]) -> list[str]:
    """Give each extension its state of ``saved_states``; one that has none there begins empty.

    Returns:
        Names of states that no extension takes, sorted.
    """
    for extension in extensions:
        if extension.name in states:
            extension.load_state(states[extension.name])
    return sorted(states.keys() - {extension.name for extension in extensions})
