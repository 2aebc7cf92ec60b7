"""One request to a judge: a candidate, its suites, its question's reference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from hashlib import sha256
from typing import Any

from ..cases.case import Kind
from ..errors import SandboxConfigError
from ..values.comparison import matches
from ..values.outputs import ANY_ORDER, DEFAULT_CHECKER, Same, output_checker


def comparison(kind: str, checker: str) -> Same:
    """Choose the comparison of a question: its checker for what programs print, ``matches`` for values.

    Raises:
        SandboxConfigError: there is no such checker for questions of this kind.
    """
    if kind == Kind.STDIN:
        return output_checker(checker)
    if checker not in (DEFAULT_CHECKER, "tokens", ANY_ORDER):  # older files name tokens, the default then
        raise SandboxConfigError(
            f"unknown checker {checker!r} for kind {kind}: values are compared as they are, or by {ANY_ORDER!r}"
        )
    return partial(matches, in_any_order=checker == ANY_ORDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One candidate, the suites written for it, and the replayed calls of its question."""

    question_id: str
    reference: str
    """Source of the reference solution."""
    candidate: str | None
    """Source of the candidate; None when no program could be extracted from the response."""
    suites: tuple[tuple[str, ...], ...]
    """``suites[s]`` holds the texts of suite s's asserts, as written."""
    history: tuple[str, ...] = ()
    """Call texts (``CaseResult.call``) to replay."""
    prelude: str = ""
    """Executed before the reference and before the candidate."""
    entry_points: tuple[str, ...] = ()
    """Names a test must call; empty means every top-level function and class of the reference."""
    kind: str = Kind.FUNCTIONS
    """A value of ``Kind``: the use that tests make of a program."""
    checker: str = DEFAULT_CHECKER
    """How printed outputs are compared, one of ``CHECKERS``; values by ``ANY_ORDER`` or, by default, as they are."""
    until_timeout: bool = False
    """Only whether all cases pass is wanted: a program that times out in one is asked no more. Its other cases count as
    timed out, with the detail ``NOT_ASKED``."""

    def __post_init__(self) -> None:
        for name in ("question_id", "reference", "prelude", "candidate", "checker"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (value is None and name == "candidate"):
                raise TypeError(f"{name!r} must be a text, got {str(value)[:80]!r} ({type(value).__name__})")
        if not isinstance(self.until_timeout, bool):
            raise TypeError(f"'until_timeout' must be true or false, got {str(self.until_timeout)[:80]!r}")
        for name in ("history", "entry_points"):
            _require_texts(name, getattr(self, name))
        if isinstance(self.suites, str):
            raise TypeError(f"'suites' must be suites of assert texts, got the text {self.suites[:80]!r}")
        for suite in self.suites:
            _require_texts("tests", suite)
        if self.kind not in list(Kind):
            raise ValueError(f"'kind' must be one of {', '.join(Kind)}, got {self.kind!r}")
        comparison(self.kind, self.checker)

    @classmethod
    def from_mapping(cls, raw: object) -> "JudgeRequest":
        """The request of a mapping with these fields, as JSON has them; ``tests`` are one suite of them.

        ``question_id`` may be left out: requests with one reference, prelude, kind and entry points then share it.

        Raises:
            ValueError: a field is missing, unknown or of another kind; rule and value.
        """
        if not isinstance(raw, Mapping):
            raise ValueError(f"a request must be a mapping, got {type(raw).__name__}")
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()
        }
        if "tests" in given:
            given["suites"] = (given.pop("tests"),)
        known = {field.name for field in fields(cls)}
        if unknown := sorted(map(str, given.keys() - known)):
            raise ValueError(f"unknown fields {unknown}; known: {sorted(known)}, and 'tests' for one suite")
        if missing := sorted({"reference", "candidate", "suites"} - given.keys()):
            raise ValueError(f"the fields {missing} are missing")
        # What decides the right answers names the question: such requests may share them.
        oracle = repr([given.get(name) for name in ("reference", "prelude", "entry_points", "kind")])
        given.setdefault("question_id", sha256(oracle.encode("utf-8", "surrogatepass")).hexdigest())
        try:
            request = cls(**given)  # checks the suites
            return replace(request, suites=tuple(map(tuple, request.suites)))
        except (TypeError, SandboxConfigError) as error:
            raise ValueError(str(error)) from error


def _require_texts(name: str, texts: object) -> None:
    """A text where a sequence of texts belongs (a forgotten comma) would be taken letter by letter."""
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(one, str) for one in texts):
        raise TypeError(f"{name!r} must be a list of texts, got {str(texts)[:80]!r} ({type(texts).__name__})")
