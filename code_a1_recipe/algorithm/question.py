"""Question: a problem with a reference solution, the oracle of every test."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One problem."""

    id: str
    """Unique in a dataset; the key of the Mistake Book."""
    prompt: str
    """The problem statement both models see; it names the function."""
    reference: str
    """Source of a correct solution: the oracle. Never shown to a model."""
    entry_points: tuple[str, ...] = ()
    """Names a test must call; empty means every top-level function and class of the reference."""
    prelude: str = ""
    """Source that runs before the reference and before each candidate: imports, given helpers."""
    tests: tuple[str, ...] = ()
    """Hidden assert statements: for validation, and for the arm that trains on them (`rewards.code_tests: hidden`)."""
    golden_tests: tuple[str, ...] = ()
    """Assert statements that a dataset gives away, best first: what `rewards.code_tests: golden` trains on."""
    buggy_programs: tuple[str, ...] = ()
    """Programs that fail a hidden test; in validation the Test LLM is measured on them."""
    data_source: str = ""
    """Name of the dataset, for metrics."""
