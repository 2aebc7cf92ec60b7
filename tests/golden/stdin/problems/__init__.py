"""All problems."""

import importlib
from pathlib import Path

from ..problem import Problem

_TOPICS = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))

PROBLEMS: list[Problem] = [
    problem for topic in _TOPICS for problem in importlib.import_module(f".{topic}", __name__).PROBLEMS
]
