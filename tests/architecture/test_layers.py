"""Who may import whom, read from the source: stdlib <- sandbox <- reward_fns <- recipe."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("sandbox", "reward_fns", "code_a1_recipe")

ALLOWED = {"sandbox": {"sandbox", "seccomp", "pyseccomp"}, "reward_fns": {"sandbox", "reward_fns"}}
"""Imports beside the standard library. A seccomp binding is the sandbox's one optional dependency."""

PURE_ROOMS = ("algorithm", "data", "extensions", "stats")
"""Rooms of the recipe that run without torch, verl, Ray and hydra."""

PURE_LIBRARIES = {
    "algorithm": {"pydantic"},
    "data": {"pyarrow", "msgspec", "datasets"},
    "extensions": {"pydantic"},
    "stats": {"numpy", "scipy"},
}
"""What a pure room may import beside the standard library, ``sandbox`` and ``reward_fns``."""

EXEMPT_FROM_PURE = ("data/torch_dataset.py",)
"""The questions in the form that verl's dataloader asks for."""

LAUNCH = REPOSITORY / "code_a1_recipe" / "training" / "lifecycle" / "launch.py"
"""It imports verl as a whole, which loads the plugin, and no name of it."""

ROOT_FILES = {"errors", "files"}
"""Files at the root that every room may import."""

ARROWS = {
    "algorithm": set(),
    "extensions": {"algorithm"},
    "data": {"algorithm"},
    "stats": set(),
    "config": {"algorithm", "data", "extensions"},
    "runs": {"algorithm", "config", "data"},
    "jobs": {"algorithm", "data", "runs"},
    "verl_plugin": {"algorithm", "config"},
    "micro_world": {"algorithm"},
    "training": {
        "algorithm", "config", "data", "extensions", "jobs", "micro_world", "runs", "stats", "verl_plugin"
    },
    "tools": {
        "algorithm", "config", "data", "extensions", "jobs", "runs", "stats", "training", "verl_plugin"
    },
    "api": {"config", "data", "runs"},
}  # fmt: skip
"""Room -> the rooms it may import. ``cli`` may import all; nobody but ``__main__`` imports ``cli``."""

TOOLS = {
    "test_quality": set(),
    "evaluate": {"test_quality"},
    "prepare": {"evaluate", "test_quality"},
    "report": {"prepare"},
    "recorded": {"evaluate", "test_quality"},
    "best_of_n": {"evaluate"},
    "bug_finder": {"evaluate", "test_quality"},
}
"""Tool -> the tools it may import."""


@cache
def sources(package):
    return sorted((REPOSITORY / package).rglob("*.py"))


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
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


@pytest.mark.parametrize("room", PURE_ROOMS)
def test_a_pure_room_of_the_recipe_needs_neither_torch_nor_verl(room):
    allowed = {"sandbox", "reward_fns"} | PURE_LIBRARIES.get(room, set())
    paths = [path for path in sources("code_a1_recipe") if room_of(path) == room and not is_exempt(path)]
    found = {str(path): foreign_imports(path, allowed) for path in paths}
    assert paths
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize("room", sorted(ARROWS))
def test_a_room_imports_only_the_rooms_below_it(room):
    wrong = [
        f"{path.relative_to(REPOSITORY)} imports {other}"
        for path in sources("code_a1_recipe")
        if room_of(path) == room
        for other in imported_rooms(path) - ARROWS[room] - ROOT_FILES - {room}
    ]
    assert wrong == []


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_a_tool_imports_only_the_tools_below_it(tool):
    folder = REPOSITORY / "code_a1_recipe" / "tools"
    wrong = [
        f"{path.relative_to(REPOSITORY)} imports {other}"
        for path in (folder / tool).rglob("*.py")
        for other in imported_rooms(path, depth=2) - TOOLS[tool] - {tool}
    ]
    assert wrong == []
    assert {path.name for path in folder.iterdir() if (path / "__init__.py").is_file()} == set(TOOLS)


def test_every_room_has_its_arrows_and_no_two_rooms_import_one_another():
    folders = {path.name for path in (REPOSITORY / "code_a1_recipe").iterdir() if (path / "__init__.py").is_file()}
    assert folders - {"cli"} == set(ARROWS)
    assert [(room, other) for room, below in ARROWS.items() for other in below if room in ARROWS[other]] == []


def test_the_readme_of_the_rooms_shows_these_arrows():
    text = (REPOSITORY / "code_a1_recipe" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[?`(\w+)/`[^|]*\|[^|]*\| ([\w, ]*)\|$", text, re.MULTILINE)
    shown = {room: set(below.replace(",", " ").split()) for room, below in rows}
    assert shown == ARROWS | {"cli": {"all"}}


def room_of(path):
    """The first folder below the package, or the file's own name at its root."""
    return path.relative_to(REPOSITORY / "code_a1_recipe").with_suffix("").parts[0]


def is_exempt(path):
    return str(path.relative_to(REPOSITORY / "code_a1_recipe")) in EXEMPT_FROM_PURE


def imported_rooms(path, depth=1):
    """Rooms (or with depth 2 tools) of the recipe that a file imports, by relative imports of any level.

    Imports inside functions count too.
    """
    above = ("code_a1_recipe", "tools")[:depth]
    parts = path.relative_to(REPOSITORY).parts
    rooms = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*parts[: len(parts) - node.level], *(node.module.split(".") if node.module else [])]
            path_below = [*base, *(alias.name for alias in node.names)]
            if tuple(path_below[:depth]) == above:
                rooms.update([path_below[depth]] if len(base) > depth else path_below[len(base) :])
    return rooms


def test_verl_is_imported_in_one_room_only():
    importers = [path for path in sources("code_a1_recipe") if "verl" in imported_packages(path) and path != LAUNCH]
    assert {room_of(path) for path in importers} == {"verl_plugin"}


def test_verls_queue_is_known_in_one_file_only():
    importers = [path.name for path in sources("code_a1_recipe") if "transfer_queue" in imported_packages(path)]
    assert importers == ["row_queue.py"]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_refers_to_itself_by_relative_imports(package):
    absolute = [str(path) for path in sources(package) if package in imported_packages(path)]
    assert absolute == []


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
