"""The states of extensions in a checkpoint."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..algorithm.hooks import Extension
from ..errors import CodeA1Error


def saved_states(extensions: Sequence[Extension]) -> dict[str, Any]:
    """Copies of the extensions' states for a checkpoint, by name. Later steps do not change the copies.

    Raises:
        CodeA1Error: a state has a value that JSON cannot hold, or that JSON would change.
    """
    states = {}
    for extension in extensions:
        state = extension.state()
        rule = f"extensions: state() of {extension.name} must return JSON values: lists, texts as keys, finite numbers"
        try:
            copied = json.loads(json.dumps(state, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise CodeA1Error(f"{rule}; {error}") from error
        # For example, JSON turns a tuple into a list, and a key that is a number into a text.
        if copied != state:
            raise CodeA1Error(f"{rule}; got {state!r:.200}, which would come back as {copied!r:.200}")
        if state is not None:
            states[extension.name] = copied
    return states


def restore_states(extensions: Sequence[Extension], states: Mapping[str, Any]) -> list[str]:
    """Give each extension its state from ``saved_states``. An extension without a saved state keeps its initial state.

    Returns:
        Sorted names of the states whose extension the run does not have.
    """
    names = set()
    for extension in extensions:
        names.add(extension.name)
        if extension.name in states:
            extension.load_state(states[extension.name])
    return sorted(states.keys() - names)
