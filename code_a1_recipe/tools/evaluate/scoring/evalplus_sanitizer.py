"""EvalPlus's own sanitizer, which extracts programs from responses for the published figures.

The sanitizer takes the longest block of consecutive lines that parses. From this block it keeps the imports and the
definitions that the asked function needs, and drops prose, examples, asserts and prints. The sanitizer runs in the
sandbox, because it parses a model's text. The sanitizer's source is read as a file. An import of the package would also
need download tools and the clients of many providers.
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
"""EvalPlus's default limit on the tokens of a response: ``max_new_tokens`` of EvalPlus's ``DecoderBase``."""
PRELOAD = ("tree_sitter", "tree_sitter_python")
"""Modules that the sanitizer imports."""
_LIMITS = replace(EVALPLUS_LIMITS, cpu_seconds_per_case=300.0, wall_seconds_per_case=300.0, total_seconds=330.0)
"""The sanitizer is slow: it parses every block of consecutive lines, and n lines have about n²/2 blocks."""
_KEPT = (ast.Import, ast.FunctionDef, ast.Assign)
"""Types of statements that the sanitizer needs from its source files, in addition to most ``from`` imports."""
_OF_ITS_COMMANDS = ("evalplus", "termcolor", "tqdm")
"""Packages that the sanitizer's source files import only for command lines and downloads."""


def package_text(name: str, *, wanted_by: str) -> str:
    """Read a source file of the installed package ``evalplus``.

    Raises:
        InputError: the package is not installed. The message begins with ``wanted_by``.
    """
    package = importlib.util.find_spec("evalplus")
    if package is None or package.origin is None:
        raise InputError(f"{wanted_by} needs the package evalplus, which is not installed: {INSTALL}")
    return (Path(package.origin).parent / name).read_text(encoding="utf-8")


@functools.cache
def sanitizer_source() -> str:
    """Return the sanitizer as one program, whose function is ``sanitize(code, entrypoint)``.

    Raises:
        InputError: a package is missing.
    """
    wanted_by = "extracting programs for HumanEval+, MBPP+ or --prompt=evalplus as EvalPlus does"
    for name in PRELOAD:
        if importlib.util.find_spec(name) is None:
            package = name.replace("_", "-")
            raise InputError(f"{wanted_by} needs the package {package}, which is not installed: {INSTALL}")
    kept: list[ast.stmt] = []
    for name in ("syncheck.py", "sanitize.py"):
        for node in ast.parse(package_text(name, wanted_by=wanted_by)).body:
            is_kept = isinstance(node, _KEPT)
            if isinstance(node, ast.ImportFrom):
                is_kept = str(node.module).partition(".")[0] not in _OF_ITS_COMMANDS
            if is_kept:
                kept.append(node)
    return ast.unparse(ast.Module(body=kept, type_ignores=[]))


def sanitizer_version() -> str:
    """Return the sanitizer's version, for the settings of verdicts. It raises like :func:`sanitizer_source`."""
    sanitizer_source()
    return f"evalplus {importlib.metadata.version('evalplus')}"


def sanitize(text: str, *, entry_point: str, runner: Runner) -> Extracted:
    """Extract the program that EvalPlus would judge.

    Args:
        text: the response, untrusted.
        entry_point: name of the asked function.
        runner: a runner that has loaded the modules of ``PRELOAD``.

    Raises:
        SandboxUnavailableError: the sanitizer could not be run.
        InputError: the sanitizer does not load, because other versions of its packages are installed.
    """
    if len(text) > MAX_RESPONSE_CHARS:
        return Extracted(failure="too_long")
    call = f"sanitize({text.replace(chr(9), '    ')!r}, {entry_point!r})"  # EvalPlus replaces tabs too
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
    """True if a program parses and defines or imports ``name`` at its top level."""
    try:
        symbol = symtable.symtable(program, "<response>", "exec").lookup(name)
    except (KeyError, SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return symbol.is_assigned() or symbol.is_imported()
