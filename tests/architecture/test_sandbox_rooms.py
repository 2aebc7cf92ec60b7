"""Rooms of the sandbox: other packages see its public page alone, and the rooms import downwards."""

import ast
import subprocess
from pathlib import Path

import pytest

from sandbox.confinement.clean_interpreter import clean_interpreter

REPOSITORY = Path(__file__).resolve().parents[2]
SANDBOX = REPOSITORY / "sandbox"
FACES = ("sandbox", "sandbox.text")
ROOT_FILES = {"__init__.py", "__main__.py", "errors.py", "limits.py", "text.py"}
ARROWS = {
    "errors": set(),
    "limits": {"errors"},
    "values": {"errors"},
    "cases": {"errors", "values"},
    "confinement": {"errors"},
    "runners": {"errors", "limits", "values", "cases", "confinement"},
    "judge": {"errors", "limits", "values", "cases", "confinement", "runners"},
    "service": {"errors", "limits", "values", "cases", "runners", "judge"},
    "checks": {"errors", "limits", "values", "cases", "runners", "judge"},
}
"""Room -> the rooms it may import. ``__init__``, ``text`` and ``__main__`` may import all."""


def imports(path):
    return [
        node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Import | ast.ImportFrom)
    ]


def is_module(package, name):
    place = REPOSITORY.joinpath(*package.split("."), name)
    return place.is_dir() or place.with_suffix(".py").is_file()


def absolute_modules(path):
    """Modules that a file imports by absolute name; ``from a import b`` is ``a.b`` where that is a module."""
    for node in imports(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif not node.level:
            for alias in node.names:
                yield f"{node.module}.{alias.name}" if is_module(node.module, alias.name) else node.module


def relative_rooms(path):
    """Rooms (or root files) of the sandbox that one of its files imports."""
    package = ["sandbox", *path.relative_to(SANDBOX).parts[:-1]]
    for node in imports(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            yield [*base, *(node.module or "").split("."), node.names[0].name][1]


@pytest.mark.parametrize("package", ["reward_fns", "code_a1_recipe"])
def test_other_packages_import_the_public_pages(package):
    deep = [
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in sorted((REPOSITORY / package).rglob("*.py"))
        for name in absolute_modules(path)
        if name.startswith("sandbox.") and name not in FACES
    ]
    assert deep == []


def test_the_page_for_judging_has_thirty_names():
    names = [alias.name for node in imports(SANDBOX / "__init__.py") for alias in node.names]
    assert len(names) <= 30


def test_the_root_holds_the_public_page_and_what_every_room_needs():
    assert {path.name for path in SANDBOX.glob("*.py")} == ROOT_FILES


@pytest.mark.parametrize("room", sorted(ARROWS))
def test_rooms_import_downwards(room):
    files = [SANDBOX / f"{room}.py"] if room in ("errors", "limits") else sorted((SANDBOX / room).rglob("*.py"))
    assert {used for path in files for used in relative_rooms(path)} - {room} <= ARROWS[room]


def test_every_room_has_its_arrows():
    assert {path.name for path in SANDBOX.iterdir() if path.is_dir() and path.name[0] != "_"} <= set(ARROWS)


def test_a_fork_server_loads_neither_the_judge_nor_the_runner():
    """Every process of a program starts with what its fork server has in memory."""
    statement = (
        "import sandbox.runners.local.fork_server_main; "
        "print([name for name in sys.modules if name.partition('.')[0] == 'sandbox'])"
    )
    done = subprocess.run(clean_interpreter(statement), capture_output=True, text=True, timeout=60, check=True)
    assert {name.removeprefix("sandbox.") for name in ast.literal_eval(done.stdout)} == {
        "sandbox", "cases", "cases.needs",
        "confinement", "confinement.jail", "confinement.libc", "confinement.namespaces",
        "confinement.rlimits", "confinement.seccomp", "confinement.syscalls", "errors", "runners", "runners.local",
        "runners.child", "runners.local.fork_server_main", "runners.local.jail_choice", "runners.stdin_program",
        "values", "values.encoding", "values.literals",
    }  # fmt: skip
