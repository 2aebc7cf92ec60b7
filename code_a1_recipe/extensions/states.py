"""The states of extensions in a checkpoint."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..algorithm.hooks import Extension
from ..errors import CodeA1Error


def saved_states(extensions: Sequence[Extension]) -> dict[str, Any]:
    """The states that a checkpoint keeps, by name; they are copies, so later steps do not change them.

    Raises:
        CodeA1Error: a state holds something else than JSON values, or JSON would change it.
    """
    states = {}
    for extension in extensions:
        state = extension.state()
        rule = f"extensions: state() of {extension.name} must return JSON values: lists, texts as keys, finite numbers"
        try:
            copied = json.loads(json.dumps(state, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise CodeA1Error(f"{rule}; {error}") from error
        # JSON turns a tuple into a list, and a number as a key into a text.
        if copied != state:
            raise CodeA1Error(f"{rule}; got {state!r:.200}, which would come back as {copied!r:.200}")
        if state is not None:
            states[extension.name] = copied
    return states


def restore_states(extensions: Sequence[Extension], states: Mapping[str, Any]) -> list[str]:
    """Give each extension its state of ``saved_states``; an extension without one there begins empty.

    Returns:
        Sorted names of the states that belong to none of the extensions.
    """
    for extension in extensions:
        if extension.name in states:
            extension.load_state(states[extension.name])
    return sorted(states.keys() - {extension.name for extension in extensions})
