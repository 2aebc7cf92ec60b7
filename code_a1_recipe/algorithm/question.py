"""Question: a problem with a reference solution, which is the oracle of every test."""

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

import reward_fns
from sandbox import JudgeRequest, Kind
from sandbox.text import DEFAULT_CHECKER, INPUT_ENTRY, LISTED_OUTPUTS, PARSE_ERRORS, Interface, parse_untrusted

UNNAMED = "what the problem names"
"""Text that a prompt shows as entry points if the reference defines no name that tests may call."""
IN_PLACE = "The program changes its first argument in place; a test compares what that argument is after the call."
"""Text that follows the problem statement if the question's kind is ``in_place``."""
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


class PromptFields(TypedDict):
    """Fields of a prompt template that come from the question."""

    prompt: str
    """The problem statement."""
    entry_points: str
    """Signatures of the functions that a program must define, see :func:`entry_points_text`."""
    reads_input: bool
    """Programs read standard input and print their answers; they need not define functions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One problem."""

    id: str
    """Unique in a dataset. The Mistake Book keeps a question's cases under its id."""
    prompt: str
    """The problem statement, which both models see; it names the function."""
    reference: str
    """Source of a correct solution, the oracle. Prompts show only the parameters of its functions, or nothing."""
    entry_points: tuple[str, ...] = ()
    """Names that tests may call; empty: every top-level function and class of the reference. A name with a dot, such as
    ``Stack.items``, is an attribute that a test may read."""
    prelude: str = ""
    """Source that runs before the reference and before each candidate: imports and given helpers."""
    tests: tuple[str, ...] = ()
    """Hidden assert statements, for validation and for training with `rewards.code_tests: hidden`."""
    golden_tests: tuple[str, ...] = ()
    """Public assert statements of the dataset, the best first, for training with `rewards.code_tests: golden`."""
    buggy_programs: tuple[str, ...] = ()
    """Programs that fail a hidden test; in validation the Test LLM writes suites for them."""
    data_source: str = ""
    """Name of the dataset, for metrics."""
    kind: str = Kind.FUNCTIONS
    """The way in which tests use a program: functions, stdin or in_place (``sandbox.Kind``)."""
    checker: str = DEFAULT_CHECKER
    """Comparison of printed outputs, for ``stdin``: a name of ``sandbox.CHECKERS``."""

    @property
    def is_listed(self) -> bool:
        """The question has no reference solution; its oracle is a table of outputs, which answers only listed calls."""
        return self.reference.startswith(LISTED_OUTPUTS)

    @property
    def reads_input(self) -> bool:
        return self.kind == Kind.STDIN

    @property
    def asked_names(self) -> tuple[str, ...]:
        """Names that a program must define. They identify the program in a response. Empty if no name is known."""
        # This property is read for every response, and a question may have hundreds of tests. The first 16 tests
        # usually call every function that any test calls.
        return reward_fns.asked_names(self.entry_points, self.reference, self.tests[:16])

    @property
    def prompt_fields(self) -> PromptFields:
        """The question's fields for a prompt template."""
        names = entry_points_text(self.reference, self.entry_points, reads_input=self.reads_input)
        prompt = f"{self.prompt}\n\n{IN_PLACE}" if self.kind == Kind.IN_PLACE else self.prompt
        return {"prompt": prompt, "entry_points": names, "reads_input": self.reads_input}


def request_for(
    question: Question,
    program: str | None,
    *suites: Sequence[str],
    history: tuple[str, ...] = (),
    given: bool = False,
    until_timeout: bool = False,
) -> JudgeRequest:
    """Make a request to judge a program on suites and replayed calls. Without a program, only the reference runs.

    ``given`` must be True if the suites are a data set's own tests.
    """
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
        given=given,
        until_timeout=until_timeout,
    )


def entry_points_text(source: str, names: Collection[str] = (), *, reads_input: bool = False) -> str:
    """Show how a program's functions and methods are called, as in "`f(a, b)`, `Stack().push(x)`".

    Args:
        source: a program that defines the functions and classes.
        names: functions, classes and attributes to list; empty: every function and class that tests may call.
        reads_input: the program reads standard input, so tests do not call its functions.

    Returns:
        Signatures. A name has no parameters if ``source`` does not define it or does not parse. The result is
        ``UNNAMED`` if no name is known.
    """
    if reads_input:
        # Tests call a function of the harness, not of the program.
        return f"`{INPUT_ENTRY}(text)`"
    defined = definitions(source)
    calls: list[str] = []
    for name in Interface.of(source, tuple(names)).entry_points:
        calls += _calls(name, defined.get(name))
    calls += [name for name in names if "." in name]  # attributes, which tests read
    return ", ".join(f"`{call}`" for call in calls) or UNNAMED


def definitions(source: str) -> dict[str, ast.AST]:
    """Map each name that ``source`` defines at top level to the statement that defines it.

    Definitions in a top-level ``if``, ``try`` or ``with`` count too. The names are in the order of their first
    definitions. Each name maps to its last definition, because the last one counts in Python. The result is empty if
    the source does not parse.
    """
    defined: dict[str, ast.AST] = {}
    for statement in parsed(source).body:
        defined.update(_definitions(statement))
    return defined


def _definitions(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Pairs of a name and the statement that defines it, in the order of the source."""
    if isinstance(node, _FUNCTIONS | ast.ClassDef):
        yield node.name, node
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.If | ast.Try | ast.With | ast.ExceptHandler):
        # Tests may also call functions that a reference defines under `try: import ...` or `if True:`.
        for inner in ast.iter_child_nodes(node):
            yield from _definitions(inner)


def parsed(source: str) -> ast.Module:
    """The syntax tree of a source; an empty tree if the source does not parse."""
    try:
        return parse_untrusted(source)
    except PARSE_ERRORS:
        # The source may come from a model. The judge reports the syntax error; this function only returns an empty
        # tree.
        return ast.Module(body=[], type_ignores=[])


def _calls(name: str, node: ast.AST | None) -> Iterator[str]:
    if isinstance(node, _FUNCTIONS):
        yield f"{name}({_parameters(node)})"
        return
    # A test creates an object of the class, and then calls the object's public methods.
    methods = [method for method in getattr(node, "body", ()) if isinstance(method, _FUNCTIONS)]
    init_parameters = ""
    public = []
    for method in methods:
        if method.name == "__init__":
            init_parameters = _parameters(method, bound=True)
        elif not method.name.startswith("_"):
            public.append(method)
    if not public:
        yield name
    for method in public:
        decorators = [getattr(decorator, "id", "") for decorator in method.decorator_list]
        parameters = _parameters(method, bound="staticmethod" not in decorators)
        yield f"{name}({init_parameters}).{method.name}({parameters})"


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef, *, bound: bool = False) -> str:
    """Parameters of a call, joined by commas. ``bound`` leaves out the first parameter, which is ``self``."""
    arguments = node.args
    shown = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)][int(bound) :]
    if arguments.vararg:
        shown.append(f"*{arguments.vararg.arg}")
    # The equals sign shows that a call must name a keyword-only parameter.
    shown += [f"{argument.arg}=..." for argument in arguments.kwonlyargs]
    if arguments.kwarg:
        shown.append(f"**{arguments.kwarg.arg}")
    return ", ".join(shown)
