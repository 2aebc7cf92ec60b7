"""Real bugs: a folder laid out like QuixBugs (Lin et al. 2017, "QuixBugs: a multi-lingual program repair benchmark").

``python_programs/NAME.py`` is the buggy program, ``correct_python_programs/NAME.py`` the reference, and
``json_testcases/NAME.json`` holds one test a line, ``[[arguments], expected]``. Programs without such tests, which
work on graphs and linked lists, are skipped and counted. No program is run here.
"""

import ast
import inspect
import json
import types
from collections import Counter
from pathlib import Path
from typing import Any

from sandbox import spell

from ...algorithm.question import Question
from ...data.asserts import signature_of
from ...errors import InputError

BUGGY, CORRECT, TESTS = "python_programs", "correct_python_programs", "json_testcases"


def read_quixbugs(folder: Path) -> tuple[list[Question], dict[str, str]]:
    """Read every program of a folder.

    Returns:
        The questions in the order of their names, each with the buggy program as the only one of ``buggy_programs``;
        and, by name, why the other programs are no question: ``no_correct_program``, ``no_tests``, ``no_function``,
        ``not_python``, ``no_literal_test``.

    Raises:
        InputError: a subfolder is missing, a file cannot be read, or no program can be used.
    """
    if missing := [name for name in (BUGGY, CORRECT, TESTS) if not (folder / name).is_dir()]:
        raise InputError(
            f"{folder} must hold the folders {BUGGY}, {CORRECT} and {TESTS}, but {', '.join(missing)} is not there; "
            "name the top folder of a copy of QuixBugs"
        )
    questions: list[Question] = []
    skipped: dict[str, str] = {}
    for path in sorted((folder / BUGGY).glob("*.py")):
        if path.stem.endswith("_test") or path.stem == "__init__":
            continue
        try:
            read = _read_program(folder, path.stem)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: it or its counterparts cannot be read: {error}") from error
        if isinstance(read, Question):
            questions.append(read)
        else:
            skipped[path.stem] = read
    if not questions:
        reasons = ", ".join(f"{reason} {count}" for reason, count in Counter(skipped.values()).items()) or "no program"
        raise InputError(f"{folder}: no program can be used ({reasons}); each needs a correct one and JSON tests")
    return questions, skipped


def _read_program(folder: Path, name: str) -> Question | str:
    """The question, or the reason why the program is none."""
    correct, tests = folder / CORRECT / f"{name}.py", folder / TESTS / f"{name}.json"
    if not correct.is_file():
        return "no_correct_program"
    if not tests.is_file():
        return "no_tests"
    buggy = (folder / BUGGY / f"{name}.py").read_text(encoding="utf-8")
    reference = correct.read_text(encoding="utf-8")
    try:
        function, *others = [_function_of(ast.parse(source), name) for source in (reference, buggy)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "not_python"
    if function is None or None in others:
        return "no_function"
    asserts = _asserts(tests.read_text(encoding="utf-8"), name, is_generator=_yields(function))
    if not asserts:
        return "no_literal_test"
    remark = _remark_of(buggy) or _remark_of(reference)
    return Question(
        id=f"QuixBugs/{name}",
        prompt=f"{remark}\n\nName the function `{signature_of(reference, name)}`.".strip(),
        reference=reference,
        entry_points=(name,),
        tests=asserts,
        buggy_programs=(buggy,),
        data_source="quixbugs",
    )


def _function_of(module: ast.Module, name: str) -> ast.FunctionDef | None:
    functions = (node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return next(functions, None)


def _remark_of(source: str) -> str:
    """The last text that stands alone at top level; QuixBugs describes a program below it."""
    texts = [
        node.value.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return texts[-1].strip() if texts else ""


def _yields(function: ast.FunctionDef) -> bool:
    """Whether the function itself is a generator; its inner functions do not count."""
    module = compile(ast.Module(body=[function], type_ignores=[]), "<reference>", "exec")
    codes = (one for one in module.co_consts if isinstance(one, types.CodeType) and one.co_name == function.name)
    return any(code.co_flags & inspect.CO_GENERATOR for code in codes)


def _asserts(text: str, name: str, *, is_generator: bool) -> tuple[str, ...]:
    """One assert a line that holds ``[arguments, expected]``; a single argument may stand without its list."""
    found = []
    for line in text.splitlines():
        try:
            values: Any = json.loads(line)
        except ValueError:  # an empty line, or one that is no JSON
            continue
        if not isinstance(values, list) or len(values) != 2:
            continue
        arguments = values[0] if isinstance(values[0], list) else [values[0]]
        call = f"{name}({', '.join(map(spell, arguments))})"
        found.append(f"assert {f'list({call})' if is_generator else call} == {spell(values[1])}")
    return tuple(found)
