"""Who may import whom, read from the source: stdlib <- sandbox <- reward_fns <- recipe."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("sandbox", "reward_fns", "code_a1_recipe")

ALLOWED = {
    "sandbox": {"sandbox", "seccomp", "pyseccomp"},
    "reward_fns": {"sandbox", "reward_fns"},
}
"""Imports beside the standard library. A seccomp binding is the sandbox's one optional dependency."""

PURE_FILES = (
    "adapters",
    "assert_texts",
    "check_references",
    "episode_data",
    "mistake_book",
    "prompts",
    "questions",
    "replay",
    "schedule",
    "selection",
    "settings",
    "spans",
    "step_tasks",
    "time_limit",
)
"""Files of the recipe that are functions of values and run without torch and verl."""

FUNCTION_LINES = 60
FILE_LINES = 400


def sources(package):
    return sorted((REPOSITORY / package).rglob("*.py"))


def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_packages(path):
    """Top-level names of all absolute imports of a file, those inside functions included."""
    names = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


def foreign_imports(path, allowed):
    return sorted(imported_packages(path) - set(sys.stdlib_module_names) - allowed)


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_lower_package_imports_only_what_lies_below_it(package):
    found = {str(path): foreign_imports(path, ALLOWED[package]) for path in sources(package)}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize("stem", PURE_FILES)
def test_a_pure_file_of_the_recipe_needs_neither_torch_nor_verl(stem):
    path = REPOSITORY / "code_a1_recipe" / f"{stem}.py"
    allowed = {"sandbox", "reward_fns"} | ({"pyarrow"} if stem == "questions" else set())
    assert foreign_imports(path, allowed) == []


@pytest.mark.parametrize("stem", PURE_FILES)
def test_a_pure_file_of_the_recipe_imports_only_pure_files_of_it(stem):
    path = REPOSITORY / "code_a1_recipe" / f"{stem}.py"
    relative = {
        node.module
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
    }
    assert relative <= set(PURE_FILES)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_refers_to_itself_by_relative_imports(package):
    absolute = [str(path) for path in sources(package) if package in imported_packages(path)]
    seam = str(REPOSITORY / "reward_fns" / "sandbox_seam.py")
    assert [path for path in absolute if path != seam] == []


def test_the_rewards_meet_the_sandbox_in_one_file_only():
    importers = [path.name for path in sources("reward_fns") if "sandbox" in imported_packages(path)]
    assert importers == ["sandbox_seam.py"]


def test_a_bare_interpreter_gets_sandbox_and_rewards_without_the_heavy_packages(tmp_path):
    program = (
        "import sys, sandbox, reward_fns, reward_fns.verl_entry\n"
        "heavy = ('numpy', 'pyarrow', 'ray', 'torch', 'transformers', 'verl', 'vllm')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("package", PACKAGES)
def test_functions_are_short(package):
    long = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path in sources(package)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES + docstring_lines(node)
    ]
    assert long == []


def docstring_lines(node):
    """Lines of a function's docstring: a long contract is no long function."""
    first = node.body[0]
    if ast.get_docstring(node) is None:
        return 0
    return first.end_lineno - first.lineno + 1


@pytest.mark.parametrize("package", PACKAGES)
def test_files_are_short(package):
    lengths = {
        str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8").count("\n") for path in sources(package)
    }
    assert {path: length for path, length in lengths.items() if length > FILE_LINES} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_library_code_prints_nothing(package):
    printing = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}"
        for path in sources(package)
        if path.name != "__main__.py"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_file_shadows_the_standard_library(package):
    shadows = [path.name for path in sources(package) if path.stem in sys.stdlib_module_names]
    assert shadows == []


@pytest.mark.parametrize("package", ["sandbox", "reward_fns"])
def test_the_reusable_packages_are_marked_as_typed(package):
    assert (REPOSITORY / package / "py.typed").is_file()
