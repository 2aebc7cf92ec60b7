"""Question: a problem with a reference solution, the oracle of every test."""

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

from reward_fns import asked_names
from reward_fns.listed import LISTED_OUTPUTS
from sandbox import JudgeRequest, Kind
from sandbox.text import DEFAULT_CHECKER, INPUT_ENTRY, PARSE_ERRORS, Interface, parse_untrusted

UNNAMED = "what the problem names"
"""Entry points of a problem that comes without a program, in a prompt."""
IN_PLACE = "The program changes its first argument in place; a test compares what that argument is after the call."
"""Put after the statement of such a question."""
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


class PromptFields(TypedDict):
    """Fields of a prompt template that a question fills."""

    prompt: str
    """The statement."""
    entry_points: str
    """What a program must define: :func:`entry_points_text`."""
    reads_input: bool
    """A program reads standard input and prints; it defines nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One problem."""

    id: str
    """Unique in a dataset; the key of the Mistake Book."""
    prompt: str
    """The problem statement both models see; it names the function."""
    reference: str
    """Source of a correct solution: the oracle. A model sees at most its functions' parameters."""
    entry_points: tuple[str, ...] = ()
    """Names a test must call; empty means every top-level function and class of the reference. ``Stack.items`` among
    them is an attribute that a test may read."""
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
    kind: str = Kind.FUNCTIONS
    """What tests do with a program: functions, stdin or in_place (``sandbox.Kind``)."""
    checker: str = DEFAULT_CHECKER
    """How printed outputs are compared, for ``stdin``: a name of ``sandbox.CHECKERS``."""

    @property
    def is_listed(self) -> bool:
        """It has no reference solution: its oracle looks the listed outputs up, and answers no other call."""
        return self.reference.startswith(LISTED_OUTPUTS)

    @property
    def reads_input(self) -> bool:
        return self.kind == Kind.STDIN

    @property
    def asked_names(self) -> tuple[str, ...]:
        """What a program must define, for the reading of responses; empty where nothing says it."""
        return asked_names(self.entry_points, self.reference, self.tests[:16])

    @property
    def prompt_fields(self) -> PromptFields:
        """What a prompt template may know of it."""
        names = entry_points_text(self.reference, self.entry_points, reads_input=self.reads_input)
        prompt = f"{self.prompt}\n\n{IN_PLACE}" if self.kind == Kind.IN_PLACE else self.prompt
        return {"prompt": prompt, "entry_points": names, "reads_input": self.reads_input}


def request_for(
    question: Question,
    program: str | None,
    *suites: Sequence[str],
    history: tuple[str, ...] = (),
    until_timeout: bool = False,
) -> JudgeRequest:
    """A program on several suites and replayed calls; without a program, the reference alone is asked."""
    return JudgeRequest(
        question_id=question.id,
        reference=question.reference,
        candidate=program,
        suites=tuple(map(tuple, suites)),
        history=history,
        prelude=question.prelude,
        entry_points=question.entry_points,
        kind=question.kind,
        checker=question.checker,
        until_timeout=until_timeout,
    )


def entry_points_text(source: str, names: Collection[str] = (), *, reads_input: bool = False) -> str:
    """How a program's functions and methods are called: "`f(a, b)`, `Stack().push(x)`".

    Args:
        source: a program that defines them.
        names: the ones to list; empty means those that a test may call when the question names none.
        reads_input: the program reads standard input, and tests call nothing that it defines.

    Returns:
        The signatures; of a name that ``source`` does not define, or where it does not parse, the name alone. Without
        any name ``UNNAMED``.
    """
    if reads_input:
        # Tests call the harness's function, whatever the program defines.
        return f"`{INPUT_ENTRY}(text)`"
    defined = definitions(source)
    calls: list[str] = []
    for name in Interface.of(source, tuple(names)).entry_points:
        calls += _calls(name, defined.get(name))
    calls += [name for name in names if "." in name]  # attributes
    return ", ".join(f"`{call}`" for call in calls) or UNNAMED


def definitions(source: str) -> dict[str, ast.AST]:
    """Name -> statement of what ``source`` defines at top level, also below ``if``, ``try`` and ``with``.

    Functions, classes and variables in the order in which they first appear; of several definitions of a name the last
    one, which counts. Empty when the source does not parse.
    """
    return {name: node for statement in parsed(source).body for name, node in _definitions(statement)}


def _definitions(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, _FUNCTIONS | ast.ClassDef):
        yield node.name, node
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
        # References define names under `try: import ...` and `if True:`, and tests call these like any other.
        for inner in ast.iter_child_nodes(node):
            yield from _definitions(inner)


def parsed(source: str) -> ast.Module:
    """The source's tree; an empty one where it does not parse."""
    try:
        return parse_untrusted(source)
    except PARSE_ERRORS:
        # A model may have written it. The judge says what is wrong with it; here it merely defines nothing.
        return ast.Module(body=[], type_ignores=[])


def _calls(name: str, node: ast.AST | None) -> Iterator[str]:
    if isinstance(node, _FUNCTIONS):
        yield f"{name}({_parameters(node)})"
        return
    # A class is shown by the calls that a test can make: an object, and then its public methods.
    methods = [method for method in getattr(node, "body", ()) if isinstance(method, _FUNCTIONS)]
    start = next((_parameters(method, bound=True) for method in methods if method.name == "__init__"), "")
    public = [method for method in methods if not method.name.startswith("_")]
    if not public:
        yield name
    for method in public:
        is_static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in method.decorator_list)
        yield f"{name}({start}).{method.name}({_parameters(method, bound=not is_static)})"


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef, *, bound: bool = False) -> str:
    """Names without annotations, as they stand between the parentheses; ``bound``: without the first, ``self``."""
    shape = node.args
    named = [one.arg for one in (*shape.posonlyargs, *shape.args)][1 if bound else 0 :]
    named += [f"*{shape.vararg.arg}"] if shape.vararg else []
    # A call must name keyword-only parameters, so they are shown with an equals sign.
    named += [f"{one.arg}=..." for one in shape.kwonlyargs]
    return ", ".join(named + ([f"**{shape.kwarg.arg}"] if shape.kwarg else []))
