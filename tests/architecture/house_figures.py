"""Figures of the project's layout, from its tracked files alone: ``python tests/architecture/house_figures.py``.

It prints one row a figure: the value now, the goal, and whether it is met. ``LIMITS`` are the goals that a test holds.
Every figure's rule stands in the docstring of the function that counts it.
"""

from __future__ import annotations

import ast
import statistics
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("sandbox", "reward_fns", "code_a1_recipe")
RECIPE = "code_a1_recipe/"

LIMITS = {
    "lines": 38_000,
    "file_lines": 350,
    "function_lines": 60,
    "deep_imports": 0,
    "readme_lines": 200,
    "recipe_root_files": 4,
    "sandbox_root_files": 6,
}
"""Upper bounds that ``test_figures.py`` holds. They only go down, to the goals of ``FIGURES``."""

RUN_FOLDER_NAMES = {"rollouts", "metrics.jsonl", "resolved_config.yaml", "resolved_config"}
EXCEPTION_NAMES = {"Exception", "BaseException", "Warning"}


@dataclass(frozen=True)
class Source:
    """One Python file: its name below the repository, its text and its syntax tree."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @property
    def stem(self) -> str:
        return Path(self.name).stem


class House:
    """The tracked files of a checkout."""

    def __init__(self, root: Path = REPOSITORY):
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True, check=True)
        self.root = root
        self.names = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
        self.product = self._sources(*PACKAGES)
        self.tests = self._sources("tests")

    def _sources(self, *folders: str) -> list[Source]:
        python = [name for name in self.names if name.endswith(".py") and name.split("/")[0] in folders]
        return [Source(name, (self.root / name).read_text(encoding="utf-8")) for name in python]

    @property
    def recipe(self) -> list[Source]:
        return [source for source in self.product if source.name.startswith(RECIPE)]

    def lines_of(self, name: str) -> int:
        return (self.root / name).read_text(encoding="utf-8").count("\n")


def lines(house: House) -> int:
    """Count all lines of the Python files of the three packages, comments and blank lines included."""
    return sum(source.lines for source in house.product)


def root_files(house: House, package: str) -> list[str]:
    """List the Python files that lie directly in a package."""
    return [source.name for source in house.product if Path(source.name).parent.as_posix() == package]


def long_files(house: House, limit: int) -> dict[str, int]:
    """Map each file of the packages that has more lines than the limit to its lines."""
    return {source.name: source.lines for source in house.product if source.lines > limit}


def function_lines(source: Source) -> Iterator[tuple[str, int]]:
    """Yield ``file:line name`` and the number of lines of each function, without its docstring."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = node.body[0] if ast.get_docstring(node) is not None else None
            spared = docstring.end_lineno - docstring.lineno + 1 if docstring else 0
            yield f"{source.name}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1 - spared


def long_functions(house: House, limit: int) -> dict[str, int]:
    """Map each function of the packages that is longer than the limit to its lines."""
    sizes = (size for source in house.product for size in function_lines(source))
    return {place: size for place, size in sizes if size > limit}


def argument_parsers(house: House) -> int:
    """Count the calls of ``ArgumentParser`` in the recipe, and one for its Typer application with all its groups.

    ``python -m sandbox`` has a parser of its own, for it needs nothing but the standard library.
    """
    calls = [called_name(node) for source in house.recipe for node in source.nodes]
    return calls.count("ArgumentParser") + ("Typer" in calls)


def exit_status_modules(house: House) -> list[str]:
    """List the recipe's modules that set an exit status.

    They call ``sys.exit``, raise ``SystemExit`` or ``typer.Exit``, have a ``main`` that returns an ``int``, or are
    named as a string such as ``"..analysis.commands"`` by the command line, which passes on the status they return.
    ``__main__`` files do not count.
    """
    passed_on = {
        f"{RECIPE}{node.value.removeprefix('..').replace('.', '/')}.py"
        for source in house.recipe
        if source.name.startswith(f"{RECIPE}cli/")
        for node in source.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("..")
    }
    return [
        source.name
        for source in house.recipe
        if source.stem != "__main__" and (source.name in passed_on or any(map(sets_exit_status, source.nodes)))
    ]


def sets_exit_status(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef) and node.name == "main":
        return isinstance(node.returns, ast.Name) and node.returns.id == "int"
    return called_name(node) in {"exit", "SystemExit", "Exit"}


def run_folder_readers(house: House) -> list[str]:
    """List the modules of the recipe that read a run folder's files by their names.

    They name ``rollouts``, ``metrics.jsonl`` or ``resolved_config.yaml`` in code, as a string or as an attribute of
    the run folder. Asking whether a file exists, its name, and writing it do not count; neither does the module that
    defines the names, nor the command line, which prints them.
    """
    return [
        source.name
        for source in house.recipe
        if source.name != f"{RECIPE}runs/folder.py"
        and not source.name.startswith(f"{RECIPE}cli/")
        and names_run_files(source)
    ]


def names_run_files(source: Source) -> bool:
    asked = {"exists", "is_file", "is_dir", "name", "write_text"}
    spared = {id(node.value) for node in source.nodes if isinstance(node, ast.Attribute) and node.attr in asked}
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and id(node) not in spared:
            if isinstance(node.right, ast.Constant) and node.right.value in RUN_FOLDER_NAMES:
                return True
        elif isinstance(node, ast.Attribute) and node.attr in RUN_FOLDER_NAMES and id(node) not in spared:
            return True
    return False


def jsonl_stores(house: House) -> list[str]:
    """List the modules of the recipe that append to a file in binary mode: rows that must survive a crash.

    Logs are appended to in text mode.
    """
    return [
        source.name
        for source in house.recipe
        if any(
            called_name(node) == "open"
            and any(isinstance(arg, ast.Constant) and arg.value == "ab" for arg in node.args)
            for node in source.nodes
        )
    ]


def literals(nodes: list[ast.expr]) -> list[object]:
    return [node.value for node in nodes if isinstance(node, ast.Constant)]


def thread_loops(house: House) -> list[str]:
    """List the modules of the recipe that make a thread pool and collect its results in a loop.

    They call ``ThreadPoolExecutor``, and ``wait``, ``as_completed`` or the pool's ``map``. Pools whose futures are
    awaited one by one elsewhere do not count.
    """
    names = {source.name: {called_name(node) for node in source.nodes} for source in house.recipe}
    return [
        name
        for name, called in names.items()
        if "ThreadPoolExecutor" in called and called & {"wait", "as_completed", "map"}
    ]


def exception_classes(house: House) -> list[str]:
    """List the classes of the packages that derive from an exception, through classes of the packages as well."""
    bases = {
        node.name: {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases}
        for source in house.product
        for node in source.nodes
        if isinstance(node, ast.ClassDef)
    }

    def is_exception(name: str) -> bool:
        if name in bases:
            return any(is_exception(base) for base in bases[name])
        return name in EXCEPTION_NAMES or name.endswith("Error")

    return sorted(name for name in bases if is_exception(name))


def deep_imports(house: House) -> list[str]:
    """List the imports of a sandbox's inner module from ``reward_fns``, the recipe and the examples."""
    outside = [source for source in house.product if not source.name.startswith("sandbox/")]
    return [
        f"{source.name}:{node.lineno} {name}"
        for source in [*outside, *house._sources("examples")]
        for node in source.nodes
        for name in imported_modules(node)
        if name.startswith("sandbox.")
    ]


def imported_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


def called_name(node: ast.AST) -> str:
    """Return the last part of the name that a call calls, or ``""``."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def small_files(house: House) -> list[str]:
    """List the files of the packages under 30 lines that are no ``__init__`` or ``__main__``."""
    return [source.name for source in house.product if source.lines < 30 and not source.stem.startswith("__")]


@dataclass(frozen=True)
class Figure:
    """One row of the table: what is counted, how, and its goal. ``at_least`` turns the comparison round."""

    name: str
    count: Callable[[House], float]
    goal: float
    at_least: bool = False

    def row(self, house: House) -> str:
        value = self.count(house)
        met = value >= self.goal if self.at_least else value <= self.goal
        bound = ">=" if self.at_least else "<="
        return f"| {self.name} | {value:,} | {bound} {self.goal:,} | {'met' if met else 'missed'} |"


FIGURES = (
    Figure("lines of the three packages", lines, 38_000),
    Figure("Python files at the root of `code_a1_recipe/`", lambda house: len(root_files(house, "code_a1_recipe")), 4),
    Figure("Python files at the root of `sandbox/`", lambda house: len(root_files(house, "sandbox")), 6),
    Figure("lines of a file, median", lambda house: statistics.median(one.lines for one in house.product), 150),
    Figure("lines of a file, most", lambda house: max(one.lines for one in house.product), 350),
    Figure("lines of a function without its docstring, most", lambda house: max(long_functions(house, 0).values()), 60),
    Figure("argument parsers of the recipe", argument_parsers, 1),
    Figure("modules of the recipe that set an exit status", lambda house: len(exit_status_modules(house)), 1),
    Figure("readers of a run folder", lambda house: len(run_folder_readers(house)), 1),
    Figure("JSONL stores", lambda house: len(jsonl_stores(house)), 1),
    Figure("thread-pool loops", lambda house: len(thread_loops(house)), 1),
    Figure("exception classes", lambda house: len(exception_classes(house)), 20),
    Figure("imports of inner modules of `sandbox`", lambda house: len(deep_imports(house)), 0),
    Figure(
        "product files named `test_*`",
        lambda house: sum(source.stem.startswith("test_") for source in house.product),
        0,
    ),
    Figure("files under 30 lines", lambda house: len(small_files(house)), 0),
    Figure(
        "lines of tests to lines of source",
        lambda house: round(sum(source.lines for source in house.tests) / lines(house), 2),
        0.8,
        at_least=True,
    ),
    Figure("lines of the README", lambda house: house.lines_of("README.md"), 200),
    Figure("`algorithm/README.md`", lambda house: int(f"{RECIPE}algorithm/README.md" in house.names), 1, at_least=True),
    Figure("`LICENSE`", lambda house: int("LICENSE" in house.names), 1, at_least=True),
)


def main() -> None:
    house = House()
    print("| Figure | Now | Goal | |\n| --- | ---: | ---: | --- |")
    for figure in FIGURES:
        print(figure.row(house))
    missed = {
        "most lines of a file": [f"{name} {size}" for name, size in long_files(house, 350).items()],
        "exit status": exit_status_modules(house),
        "run folder": run_folder_readers(house),
        "JSONL stores": jsonl_stores(house),
        "thread-pool loops": thread_loops(house),
        "exception classes": exception_classes(house),
        "imports of inner modules": deep_imports(house),
        "small files": small_files(house),
    }
    print()
    for name, places in missed.items():
        print(f"{name}: {', '.join(places) or 'none'}")


if __name__ == "__main__":
    main()
