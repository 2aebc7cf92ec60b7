"""A request to a judge: one candidate, its suites, and its question's reference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from hashlib import sha256
from typing import Any

from ..cases.case import Kind
from ..errors import SandboxConfigError
from ..values.comparison import matches
from ..values.outputs import ANY_ORDER, DEFAULT_CHECKER, FROM_JSON, IN_LIST, Same, output_checker


def comparison(kind: str, checker: str) -> Same:
    """Choose the comparison of a question: a checker for printed outputs, or ``matches`` for returned values.

    Raises:
        SandboxConfigError: the kind of question has no such checker.
    """
    if kind == Kind.STDIN:
        return output_checker(checker)
    words = set(checker.split("+"))
    # Older files contain "tokens", the former default.
    if not words <= {DEFAULT_CHECKER, "tokens", ANY_ORDER, FROM_JSON, IN_LIST}:
        raise SandboxConfigError(
            f"unknown checker {checker!r} for kind {kind}: leave it out, or use {ANY_ORDER!r} for lists in any order"
        )
    return partial(matches, in_any_order=ANY_ORDER in words, from_json=FROM_JSON in words, or_in_list=IN_LIST in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest:
    """One candidate, its suites, and the replayed calls of its question."""

    question_id: str
    reference: str
    """Source of the reference solution."""
    candidate: str | None
    """Source of the candidate; None if the response contains no program."""
    suites: tuple[tuple[str, ...], ...]
    """``suites[s]`` holds the asserts of suite s, as written."""
    history: tuple[str, ...] = ()
    """Call texts (``CaseResult.call``) to replay."""
    prelude: str = ""
    """Source that is executed before the reference and before the candidate."""
    entry_points: tuple[str, ...] = ()
    """An assert must call one of these names. Empty means every public function and class at the reference's top
    level."""
    kind: str = Kind.FUNCTIONS
    """A value of ``Kind``, which says how tests use a program."""
    checker: str = DEFAULT_CHECKER
    """Comparison of printed outputs, one of ``CHECKERS``. For returned values, the default, ``ANY_ORDER``,
    ``FROM_JSON`` and ``IN_LIST`` exist."""
    given: bool = False
    """The suites are a data set's own tests, and not written by a Test LLM. Then each test counts, also if another test
    makes the same call and compares another part of its result. Only the same text twice is one case."""
    until_timeout: bool = False
    """Make no more calls after a program's first time-out. This is for scores that count only programs without a
    failure. The remaining calls count as timed out, with the detail ``NOT_ASKED``."""

    def __post_init__(self) -> None:
        for name in ("question_id", "reference", "prelude", "candidate", "checker"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (value is None and name == "candidate"):
                raise TypeError(f"{name!r} must be a text, got {str(value)[:80]!r} ({type(value).__name__})")
        for name in ("given", "until_timeout"):
            if not isinstance(value := getattr(self, name), bool):
                raise TypeError(f"{name!r} must be true or false, got {str(value)[:80]!r}")
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
        """Make a request from a JSON object with the fields of this class. ``tests`` are a data set's own tests: a
        single suite with ``given``. ``id``, the caller's own name of the request, is ignored.

        If requests without a ``question_id`` have the same reference, prelude, kind and entry points, they get the same
        id.

        Raises:
            ValueError: a field is missing, unknown or wrong. The error's message names the rule and the value.
        """
        if not isinstance(raw, Mapping):
            raise ValueError(f"a request must be a mapping, got {type(raw).__name__}")
        given: dict[str, Any] = dict(raw)
        given.pop("id", None)
        for name, value in raw.items():
            if isinstance(value, list):
                given[name] = tuple(value)
        if "tests" in given:
            given["suites"] = (given.pop("tests"),)
            given.setdefault("given", True)
        known = {field.name for field in fields(cls)}
        if unknown := sorted(map(str, given.keys() - known)):
            raise ValueError(f"unknown fields {unknown}; known: {sorted(known)}, and 'tests' for one suite")
        if missing := sorted({"reference", "candidate", "suites"} - given.keys()):
            raise ValueError(f"the fields {missing} are missing")
        # These fields decide the right answers, so requests with the same fields may share the answers.
        oracle = repr([given.get(name) for name in ("reference", "prelude", "entry_points", "kind")])
        digest = sha256(oracle.encode("utf-8", "surrogatepass"))
        given.setdefault("question_id", digest.hexdigest())
        try:
            request = cls(**given)  # the constructor checks that each suite is a sequence
            return replace(request, suites=tuple(map(tuple, request.suites)))
        except (TypeError, SandboxConfigError) as error:
            raise ValueError(str(error)) from error


def _require_texts(name: str, texts: object) -> None:
    # If somebody forgets a comma, Python makes a text instead of a tuple. The text would be read letter by letter.
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{name!r} must be a list of texts, got {str(texts)[:80]!r} ({type(texts).__name__})")
