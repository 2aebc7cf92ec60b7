"""EvalPlus's own sanitizer: what it keeps of a response is the program that published figures are of.

It takes the longest run of lines that parses, and of those the imports and what the asked function needs; prose,
examples, asserts and prints fall away. Its text is read from the installed package, which is not imported (that asks
for download tools and the clients of many providers), and runs in the sandbox, since it parses what a model wrote.
"""

import ast
import functools
import importlib.metadata
import importlib.util
import symtable
from dataclasses import replace
from pathlib import Path

from reward_fns.extract import MAX_RESPONSE_CHARS
from sandbox import Call, CallStatus, Program, Role, Runner
from sandbox.text import decode

from ....errors import InputError
from ..benchmarks.evalplus import EVALPLUS_LIMITS
from ..benchmarks.tasks import Extracted

INSTALL = "pip install --no-deps evalplus==0.3.1 tree-sitter==0.26.1 tree-sitter-python==0.25.0"
MAX_TOKENS = 768
"""The usual limit of a response: ``max_new_tokens`` of EvalPlus's ``DecoderBase``."""
PRELOAD = ("tree_sitter", "tree_sitter_python")
_LIMITS = replace(EVALPLUS_LIMITS, cpu_seconds_per_case=300.0, wall_seconds_per_case=300.0, total_seconds=330.0)
"""It parses every run of lines, a number that grows with their square."""
_KEPT = (ast.Import, ast.FunctionDef, ast.Assign)
_OF_ITS_COMMANDS = ("evalplus", "termcolor", "tqdm")
"""Packages that its files import for command lines and downloads only."""


def package_text(name: str, *, wanted_by: str) -> str:
    """A source file of the installed package.

    Raises:
        InputError: it is not installed; the message begins with ``wanted_by``.
    """
    found = importlib.util.find_spec("evalplus")
    if found is None or found.origin is None:
        raise InputError(f"{wanted_by} needs the package evalplus, which is not installed: {INSTALL}")
    return (Path(found.origin).parent / name).read_text(encoding="utf-8")


@functools.cache
def sanitizer_source() -> str:
    """The sanitizer as one program; ``sanitize(code, entrypoint)`` is its function.

    Raises:
        InputError: a package that it needs is not installed.
    """
    wanted_by = "extracting programs for HumanEval+, MBPP+ or --prompt=evalplus as EvalPlus does"
    if missing := [name for name in PRELOAD if importlib.util.find_spec(name) is None]:
        name = missing[0].replace("_", "-")
        raise InputError(f"{wanted_by} needs the package {name}, which is not installed: {INSTALL}")
    modules = [ast.parse(package_text(name, wanted_by=wanted_by)) for name in ("syncheck.py", "sanitize.py")]
    kept: list[ast.stmt] = [
        node
        for module in modules
        for node in module.body
        if isinstance(node, _KEPT)
        or (isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] not in _OF_ITS_COMMANDS)
    ]
    return ast.unparse(ast.Module(body=kept, type_ignores=[]))


def sanitizer_version() -> str:
    """For the settings of verdicts. Raises as :func:`sanitizer_source`."""
    sanitizer_source()
    return f"evalplus {importlib.metadata.version('evalplus')}"


def sanitize(text: str, *, entry_point: str, runner: Runner) -> Extracted:
    """The program in a response, blank text included, as EvalPlus would judge it.

    Args:
        text: untrusted.
        entry_point: the function that is asked for.
        runner: with the modules of ``PRELOAD``.

    Raises:
        SandboxUnavailableError: the sanitizer could not be run.
        InputError: it does not load with the packages that are installed.
    """
    if len(text) > MAX_RESPONSE_CHARS:
        return Extracted(failure="too_long")
    call = f"sanitize({text.replace(chr(9), '    ')!r}, {entry_point!r})"  # without tabs, as EvalPlus hands it over
    program = Program(
        source=sanitizer_source(), calls=(Call(expression=call),), limits=_LIMITS, max_timeouts_without_result=1
    )
    result = runner.run(program, role=Role.CANDIDATE)
    if not result.loaded:
        raise InputError(f"EvalPlus's sanitizer does not load: {result.load_error[:300]}; {INSTALL}")
    answer = result.results[0]
    if answer.status is not CallStatus.VALUE:
        return Extracted(failure=f"sanitizer {answer.status.value} {answer.detail[:100]}".strip())
    kept = str(decode(answer.value))
    return Extracted(program=kept, failure="" if defines(kept, entry_point) else "no_entry_point")


def defines(program: str, name: str) -> bool:
    """Say if a program parses and gives ``name`` a meaning at its top level."""
    try:
        symbol = symtable.symtable(program, "<response>", "exec").lookup(name)
    except (KeyError, SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return symbol.is_assigned() or symbol.is_imported()
