"""One sandbox with the limits of an attack, in the place of the one that a command would start."""

import contextlib

import pytest

from code_a1_recipe.tools.bug_finder import command
from sandbox import LocalRunner


@pytest.fixture(scope="session")
def runner():
    with LocalRunner(limits=command.LIMITS) as started:
        yield started


@pytest.fixture
def attacks_with(monkeypatch):
    """``attacks_with(runner)``: commands use it, and leave it open."""
    return lambda runner: monkeypatch.setattr(command, "LocalRunner", lambda **options: contextlib.nullcontext(runner))
