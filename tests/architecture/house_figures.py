"""Figures of the project's layout, from its tracked files alone.

``python tests/architecture/house_figures.py`` prints one row a figure: the value now, the goal, and whether
it is met. A figure that misses its goal has a limit, the value it had when it was last lowered: ``test_figures.py``
holds the better of the two, so a figure only improves. Every figure's rule stands in the docstring of what counts it.
"""

from __future__ import annotations

import ast
import io
import statistics
import subprocess
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("sandbox", "reward_fns", "code_a1_recipe")
RECIPE = "code_a1_recipe/"
PAPER = f"{RECIPE}algorithm/"
CORE = (PAPER, f"{RECIPE}training/", "sandbox/", "reward_fns/")
"""Rooms whose code is clever enough to need its reasons beside it."""

FILE_LINES, FUNCTION_LINES, FILE_DENSITY = 350, 60, 10.0

RUN_FOLDER_NAMES = {"rollouts", "metrics.jsonl", "resolved_config.yaml", "resolved_config"}
EXCEPTION_NAMES = {"Exception", "BaseException", "Warning"}
CODE = {tokenize.NAME, tokenize.NUMBER, tokenize.OP, tokenize.STRING}


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

    @cached_property
    def docstring_rows(self) -> set[int]:
        """Rows of docstrings, those below a field included."""
        owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        children = [child for node in self.nodes if isinstance(node, owners) for child in node.body]
        return {
            row
            for child in children
            if isinstance(child, ast.Expr)
            and isinstance(child.value, ast.Constant)
            and isinstance(child.value.value, str)
            for row in range(child.lineno, child.end_lineno + 1)
        }

    @cached_property
    def _counts(self) -> tuple[int, int, int]:
        """Code tokens, lines that hold one, and comments.

        Names, numbers, operators and strings are code tokens; docstrings and comments are none, so that neither long
        lines nor explanations change the count. An f-string is one token wherever Python's tokenizer takes it apart.
        """
        tokens = comments = 0
        code_rows = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            row, kind = token.start[0], tokenize.tok_name[token.type]
            if token.type == tokenize.COMMENT:
                comments += 1
            elif row in self.docstring_rows:
                continue
            elif token.type in CODE:
                tokens += 1
                code_rows.add(row)
            elif kind.startswith("FSTRING"):
                tokens += kind == "FSTRING_START"
                code_rows.add(row)
        return tokens, len(code_rows), comments

    @property
    def tokens(self) -> int:
        return self._counts[0]

    @property
    def code_lines(self) -> int:
        return self._counts[1]

    @property
    def comments(self) -> int:
        return self._counts[2]

    @property
    def density(self) -> float:
        """Tokens a code line."""
        return self.tokens / max(1, self.code_lines)


class House:
    """The tracked files of a checkout."""

    def __init__(self, root: Path = REPOSITORY):
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True, check=True)
        self.root = root
        self.names = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
        python = [name for name in self.names if name.endswith(".py")]
        self.sources = [Source(name, (root / name).read_text(encoding="utf-8")) for name in python]
        self.product = self.below(*PACKAGES)
        self.tests = self.below("tests")

    def below(self, *folders: str) -> list[Source]:
        """The Python files below these folders, which are named from the repository's root."""
        starts = tuple(f"{folder.rstrip('/')}/" for folder in folders)
        return [source for source in self.sources if source.name.startswith(starts)]

    @property
    def recipe(self) -> list[Source]:
        return [source for source in self.product if source.name.startswith(RECIPE)]

    def readme(self) -> str:
        return (self.root / "README.md").read_text(encoding="utf-8")


def tokens(sources: Iterable[Source]) -> int:
    """Count code tokens."""
    return sum(source.tokens for source in sources)


def density(sources: Iterable[Source]) -> float:
    """Code tokens a code line, of all files together."""
    counted = list(sources)
    return round(tokens(counted) / max(1, sum(source.code_lines for source in counted)), 1)


def comment_rate(sources: Iterable[Source]) -> float:
    """Comments a hundred code lines, of all files together."""
    counted = list(sources)
    comments = sum(source.comments for source in counted)
    return round(100 * comments / max(1, sum(source.code_lines for source in counted)), 1)


def dense_files(house: House, limit: float) -> dict[str, float]:
    """Map each file of the packages with more tokens a code line than the limit to its density, but for tiny ones."""
    return {
        source.name: round(source.density, 1)
        for source in house.product
        if source.density > limit and source.code_lines > 20
    }


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

    They call ``sys.exit``, raise ``SystemExit`` or ``typer.Exit``, or have a ``main`` that returns an ``int``.
    ``__main__`` files do not count.
    """
    return [
        source.name for source in house.recipe if source.stem != "__main__" and any(map(sets_exit_status, source.nodes))
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
    """List the imports of a module below the sandbox's two pages from rewards, recipe, examples and studies."""
    outside = [source for source in house.product if not source.name.startswith("sandbox/")]
    return [
        f"{source.name}:{node.lineno} {name}"
        for source in [*outside, *house.below("examples", "studies")]
        for node in source.nodes
        for name in imported_modules(node)
        if name.startswith("sandbox.") and name != "sandbox.text"
    ]


def imported_modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


def called_name(node: ast.AST) -> str:
    """Return the last part of the name that a call calls, or ``""``."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


@dataclass(frozen=True)
class Figure:
    """One row of the table: what is counted, how, and its goal.

    ``limit`` is the value that a missed goal had when it was last improved. ``at_least`` turns comparisons round.
    """

    name: str
    count: Callable[[House], float]
    goal: float
    limit: float | None = None
    at_least: bool = False

    def is_met(self, value: float) -> bool:
        return value >= self.goal if self.at_least else value <= self.goal

    def is_held(self, value: float) -> bool:
        """The value meets its goal, or at least is no worse than it was."""
        if self.is_met(value) or self.limit is None:
            return self.is_met(value)
        return value >= self.limit if self.at_least else value <= self.limit

    def row(self, house: House) -> str:
        value = self.count(house)
        bound = ">=" if self.at_least else "<="
        return f"| {self.name} | {value:,} | {bound} {self.goal:,} | {'met' if self.is_met(value) else 'missed'} |"


def tests_to_packages(house: House) -> float:
    """Code tokens of the tests, as a multiple of the packages' own."""
    return round(tokens(house.tests) / tokens(house.product), 2)


FIGURES = (
    Figure("code tokens of the three packages", lambda house: tokens(house.product), 195_000, 206_550),
    Figure("code tokens of `algorithm/`, the paper alone", lambda house: tokens(house.below(PAPER)), 11_000),
    Figure("tokens a code line", lambda house: density(house.product), 8.2, 8.4),
    Figure("files above 10 tokens a code line", lambda house: len(dense_files(house, FILE_DENSITY)), 0),
    Figure(
        "comments a hundred code lines of the core", lambda house: comment_rate(house.below(*CORE)), 5, at_least=True
    ),
    Figure("lines of all Python", lambda house: sum(source.lines for source in house.sources), 75_000, 75_850),
    Figure("tokens of tests to tokens of packages", tests_to_packages, 1.1, 1.14),
    Figure(
        "files in `examples/` and `studies/`",
        lambda house: sum(name.startswith(("examples/", "studies/")) for name in house.names),
        90,
    ),
    Figure("lines of the README", lambda house: house.readme().count("\n"), 150),
    Figure("words of the README", lambda house: len(house.readme().split()), 1_500),
    Figure("Python files at the root of `code_a1_recipe/`", lambda house: len(root_files(house, "code_a1_recipe")), 4),
    Figure("Python files at the root of `sandbox/`", lambda house: len(root_files(house, "sandbox")), 6),
    Figure("lines of a file, median", lambda house: statistics.median(file.lines for file in house.product), 150),
    Figure("lines of a file, most", lambda house: max(file.lines for file in house.product), FILE_LINES),
    Figure(
        "lines of a function without its docstring, most",
        lambda house: max(long_functions(house, 0).values()),
        FUNCTION_LINES,
    ),
    Figure("argument parsers of the recipe", argument_parsers, 1),
    Figure("modules of the recipe that set an exit status", lambda house: len(exit_status_modules(house)), 1),
    Figure("readers of a run folder", lambda house: len(run_folder_readers(house)), 1),
    Figure("JSONL stores", lambda house: len(jsonl_stores(house)), 1),
    Figure("thread-pool loops", lambda house: len(thread_loops(house)), 1),
    Figure("exception classes", lambda house: len(exception_classes(house)), 20),
    Figure("imports of inner modules of `sandbox`", lambda house: len(deep_imports(house)), 0),
)


def main() -> None:
    house = House()
    print("| Figure | Now | Goal | |\n| --- | ---: | ---: | --- |")
    for figure in FIGURES:
        print(figure.row(house))
    missed = {
        "dense files": [f"{name} {value}" for name, value in dense_files(house, FILE_DENSITY).items()],
        "long files": [f"{name} {size}" for name, size in long_files(house, FILE_LINES).items()],
        "exit status": exit_status_modules(house),
        "run folder": run_folder_readers(house),
        "JSONL stores": jsonl_stores(house),
        "thread-pool loops": thread_loops(house),
        "imports of inner modules": deep_imports(house),
    }
    print()
    for name, places in missed.items():
        print(f"{name}: {', '.join(places) or 'none'}")


if __name__ == "__main__":
    main()
