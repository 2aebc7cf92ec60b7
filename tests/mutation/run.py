"""Mutation testing of the algorithm and the rewards: ``python tests/mutation/run.py [--modules NAME ...] [--jobs 2]``.

Each mutant is one small change of a function body, made by cosmic-ray's operators
(``tools.test_quality.mutants``). The tests of ``TESTS`` run against it in a forked process, into which the
mutant is imported in place of its module. A mutant is killed when a test fails or the time limit ends the tests; it
survives when all pass. Survivors that no test could kill are listed in ``equivalent.toml``, each with its reason.

The exit status is 0 when at most 5 % of the mutants survive without being equivalent.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import fnmatch
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

REPOSITORY = Path(__file__).resolve().parents[2]
ALGORITHM, EXTENSIONS, REWARDS = "code_a1_recipe/algorithm", "code_a1_recipe/extensions", "reward_fns"
UNIT, PROPERTY, GOLDEN = "tests/unit", "tests/property", "tests/golden"

TESTS = {
    f"{ALGORITHM}/book_file.py": (f"{UNIT}/algorithm/test_mistake_book.py", f"{PROPERTY}/algorithm/test_book_laws.py"),
    f"{ALGORITHM}/episode.py": (f"{UNIT}/algorithm/test_episode.py",),
    f"{ALGORITHM}/episode_types.py": (f"{UNIT}/algorithm/test_episode.py",),
    f"{ALGORITHM}/mistake_book.py": (
        f"{UNIT}/algorithm/test_mistake_book.py",
        f"{UNIT}/algorithm/test_book_update.py",
        f"{PROPERTY}/algorithm/test_book_laws.py",
    ),
    f"{ALGORITHM}/prompts.py": (f"{UNIT}/algorithm/test_prompts.py", f"{PROPERTY}/algorithm/test_prompt_laws.py"),
    f"{ALGORITHM}/book_update.py": (f"{UNIT}/algorithm/test_book_update.py",),
    f"{ALGORITHM}/rewards.py": (f"{UNIT}/algorithm/test_rewards.py",),
    f"{ALGORITHM}/sampling.py": (f"{UNIT}/algorithm/test_sampling.py",),
    f"{ALGORITHM}/schedule.py": (f"{UNIT}/algorithm/test_schedule.py",),
    f"{ALGORITHM}/selection.py": (
        f"{UNIT}/algorithm/test_selection.py",
        f"{PROPERTY}/algorithm/test_selection_laws.py",
    ),
    f"{ALGORITHM}/settings.py": (f"{UNIT}/algorithm/test_settings.py",),
    f"{ALGORITHM}/settings_block.py": (f"{UNIT}/algorithm/test_settings.py",),
    f"{ALGORITHM}/spans.py": (f"{UNIT}/algorithm/test_spans.py",),
    f"{ALGORITHM}/tasks.py": (f"{UNIT}/algorithm/test_tasks.py",),
    f"{ALGORITHM}/user_code.py": (f"{UNIT}/extensions/test_extensions.py", f"{UNIT}/algorithm/test_rewards.py"),
    f"{ALGORITHM}/validation.py": (f"{UNIT}/algorithm/test_episode.py",),
    f"{EXTENSIONS}/__init__.py": (f"{UNIT}/extensions/test_extensions.py",),
    f"{EXTENSIONS}/hindsight.py": (f"{UNIT}/extensions/test_hindsight.py",),
    f"{EXTENSIONS}/own.py": (f"{UNIT}/extensions/test_extensions.py",),
    f"{EXTENSIONS}/states.py": (f"{UNIT}/extensions/test_extensions.py",),
    f"{EXTENSIONS}/scripted_tester.py": (f"{UNIT}/extensions/test_scripted_tester.py",),
    f"{EXTENSIONS}/settings.py": (f"{UNIT}/extensions/test_extensions.py",),
    f"{REWARDS}/adversary_reward.py": (
        f"{PROPERTY}/reward_fns/test_adversary_laws.py",
        f"{UNIT}/reward_fns/test_registry.py",
    ),
    f"{REWARDS}/answer_blocks.py": (
        f"{UNIT}/reward_fns/test_answer_blocks.py",
        f"{PROPERTY}/reward_fns/test_extraction_laws.py",
    ),
    f"{REWARDS}/breakdown.py": (f"{UNIT}/reward_fns/test_breakdown.py",),
    f"{REWARDS}/code_llm_reward.py": (
        f"{UNIT}/reward_fns/test_code_llm_reward.py",
        f"{PROPERTY}/reward_fns/test_reward_laws.py",
        f"{GOLDEN}/reward_fns/test_worked_example.py",
        f"{UNIT}/algorithm/test_rewards.py",
    ),
    f"{REWARDS}/extract.py": (
        f"{UNIT}/reward_fns/test_which_text_is_the_program.py",
        f"{UNIT}/reward_fns/test_extract.py",
        f"{PROPERTY}/reward_fns/test_extraction_laws.py",
    ),
    f"{REWARDS}/interface.py": (f"{UNIT}/reward_fns/test_registry.py", f"{UNIT}/algorithm/test_rewards.py"),
    f"{REWARDS}/listed.py": (f"{UNIT}/reward_fns/test_verl_entry.py", f"{UNIT}/data/test_questions.py"),
    f"{REWARDS}/registry.py": (f"{UNIT}/reward_fns/test_registry.py",),
    f"{REWARDS}/test_llm_reward.py": (
        f"{UNIT}/reward_fns/test_test_llm_reward.py",
        f"{PROPERTY}/reward_fns/test_reward_laws.py",
        f"{GOLDEN}/reward_fns/test_worked_example.py",
        f"{UNIT}/algorithm/test_rewards.py",
    ),
    f"{REWARDS}/verl_entry.py": (f"{UNIT}/reward_fns/test_verl_entry.py",),
    f"{REWARDS}/weighted_reward.py": (f"{UNIT}/reward_fns/test_weighted_reward.py",),
}
"""Module -> the files that test it, the fastest first."""

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
MAX_SURVIVING = 0.05

SAME = {"ReplaceComparisonOperator_Is_Eq", "ReplaceComparisonOperator_IsNot_NotEq"}
"""Operators left out: ``is`` stands here only before ``None`` and members of enumerations, which equal nothing else."""

WARM = (
    "pytest",
    "hypothesis.strategies",
    "_hypothesis_pytestplugin",
    "sandbox",
    "msgspec",
    "pydantic",
    "numpy",
    "yaml",
)
"""Imported once, before the forks; nothing that imports a mutated package."""

PYTEST = (
    "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin",
    "--import-mode=importlib", "--hypothesis-profile=mutation",
    "--assert=plain",  # pytest would load test_llm_reward.py itself, past the mutant, since its name is a test file's
)  # fmt: skip

MIN_SECONDS = 5.0
TIMES_BASELINE = 4.0
"""A mutant's tests may take this many times the processor time of the baseline, and no less than the minimum."""
WALL_PER_PROCESSOR_SECOND = 12.0
"""The wall-clock limit ends tests that wait for ever; it is generous because other work may share the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A module with one mutant in place of its text; the text itself for the baseline."""

    module: str
    """Its file, below the root."""
    text: str
    function: str = ""
    """The innermost function that holds the change, as ``Class.method``."""
    line: int = 0
    operator: str = ""
    before: str = ""
    after: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.module, self.function, self.before, self.after

    def __str__(self) -> str:
        place = f"{self.module}:{self.line} {self.function} {self.operator}"
        return f"{place}\n    - {self.before}\n    + {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How the tests of a mutant ended."""

    trial: Trial
    status: str
    """``killed``, ``timed_out`` or ``survived``."""
    cpu_seconds: float
    log: str


class Project:
    """A checkout whose modules are mutated, and the tests that ought to notice."""

    def __init__(self, root: Path, tests: Mapping[str, Sequence[str]], *, jobs: int):
        self.root = root
        self.tests = tests
        self._jobs = jobs

    def trials(self, module: str, *, max_mutants: int | None = None) -> list[Trial]:
        """Make the mutants of a module, in the order of their lines."""
        from code_a1_recipe.tools.test_quality.mutants import mutants_of

        source = (self.root / module).read_text(encoding="utf-8")
        mutants = mutants_of(source, max_mutants=max_mutants)
        functions = function_spans(source)
        return [
            Trial(
                module=module,
                text=mutant.source,
                function=innermost(functions, mutant.line),
                line=mutant.line,
                operator=mutant.operator,
                before=changed_lines(source, mutant.source, "-"),
                after=changed_lines(source, mutant.source, "+"),
            )
            for mutant in mutants
            if mutant.operator not in SAME
        ]

    def baseline(self, module: str) -> float:
        """Run the tests of an unchanged module; return their processor time.

        Raises:
            ValueError: they fail, so that they would kill every mutant.
        """
        text = (self.root / module).read_text(encoding="utf-8")
        (outcome,) = self.run([Trial(module=module, text=text)], cpu_limit=600)
        if outcome.status != "survived":
            raise ValueError(f"the tests of {module} fail without any mutant:\n{outcome.log}")
        return outcome.cpu_seconds

    def run(self, trials: Sequence[Trial], *, cpu_limit: float) -> Iterator[Outcome]:
        """Run the tests against each mutant, ``jobs`` at a time; yield the outcomes as they come."""
        waiting = list(reversed(trials))
        running: dict[int, tuple[Trial, Path, float]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._jobs:
                    trial = waiting.pop()
                    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
                    process = self._fork(trial, folder, cpu_limit=cpu_limit)
                    running[process] = trial, folder, time.monotonic() + cpu_limit * WALL_PER_PROCESSOR_SECOND
                for process in list(running):
                    trial, folder, deadline = running[process]
                    late = time.monotonic() > deadline
                    if late:
                        os.killpg(process, signal.SIGKILL)
                    ended, status, usage = os.wait4(process, 0 if late else os.WNOHANG)
                    if ended:
                        del running[process]
                        yield finish(trial, folder, process, status, usage.ru_utime + usage.ru_stime)
                time.sleep(0.01)
        finally:
            for process, (_, folder, _) in running.items():
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
                shutil.rmtree(folder, ignore_errors=True)

    def _fork(self, trial: Trial, folder: Path, *, cpu_limit: float) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process:
            with contextlib.suppress(OSError):  # the child does the same; whoever comes first
                os.setpgid(process, process)
            return process
        status = 3
        try:
            os.setpgid(0, 0)
            log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
            os.dup2(log, 1)
            os.dup2(log, 2)
            whole = max(1, round(cpu_limit))
            resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
            status = run_tests(self.root, trial, self.tests[trial.module], folder)
        finally:
            os._exit(status)


def run_tests(root: Path, trial: Trial, files: Sequence[str], folder: Path) -> int:
    """Run the files in this process, in which the mutant is imported in place of its module; return pytest's status."""
    import pytest

    os.chdir(root)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    sys.meta_path.insert(0, MutantFinder(root, trial))
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "0"}
    return int(pytest.main([*PYTEST, f"--rootdir={root}", f"--basetemp={folder / 'tmp'}", *files]))


def finish(trial: Trial, folder: Path, process: int, status: int, cpu_seconds: float) -> Outcome:
    """Read what a child left, and end what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    log = (folder / "log").read_text(errors="replace") if (folder / "log").exists() else ""
    shutil.rmtree(folder, ignore_errors=True)
    word = "killed"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in {signal.SIGKILL, signal.SIGXCPU}:
        word = "timed_out"
    elif status == 0:
        word = "survived"
    return Outcome(trial=trial, status=word, cpu_seconds=cpu_seconds, log=log)


class MutantFinder(importlib.abc.MetaPathFinder):
    """Finds the mutated module before Python's own finders do."""

    def __init__(self, root: Path, trial: Trial):
        self._path = str(root / trial.module)
        self._name = trial.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self._text = trial.text

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = TextLoader(fullname, self._path, self._text)
        return importlib.util.spec_from_file_location(fullname, self._path, loader=loader)


class TextLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from a text instead of its file."""

    def __init__(self, fullname: str, path: str, text: str):
        super().__init__(fullname, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec", dont_inherit=True)


def function_spans(source: str) -> list[tuple[int, int, str]]:
    """List (first line, last line, dotted name) of every function."""
    spans: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, names: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = (*names, child.name)
                if not isinstance(child, ast.ClassDef):
                    spans.append((child.lineno, child.end_lineno or child.lineno, ".".join(inner)))
                visit(child, inner)
            else:
                visit(child, names)

    visit(ast.parse(source), ())
    return spans


def innermost(spans: Sequence[tuple[int, int, str]], line: int) -> str:
    around = [(last - first, name) for first, last, name in spans if first <= line <= last]
    return min(around)[1] if around else ""


def changed_lines(source: str, mutant: str, sign: str) -> str:
    """Join the lines that only the source ("-") or only the mutant ("+") has."""
    lines = list(difflib.unified_diff(source.split("\n"), mutant.split("\n"), n=0, lineterm=""))
    return " ".join(line[1:].strip() for line in lines[2:] if line.startswith(sign))


def read_equivalents(path: Path) -> dict[tuple[str, str, str, str], str]:
    """Read the survivors that no test could kill: (file, function, line before, line after) -> why.

    Raises:
        ValueError: an entry lacks a part, or its reason is empty.
    """
    if not path.exists():
        return {}
    found = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", []):
        parts = [str(entry.get(name, "")) for name in ("file", "function", "before", "after", "reason")]
        if not (parts[0] and parts[4]):
            raise ValueError(f"{path}: an equivalent mutant needs file, function, before, after and reason: {entry}")
        found[parts[0], parts[1], parts[2], parts[3]] = parts[4]
    return found


def wanted(tests: Mapping[str, Sequence[str]], patterns: Sequence[str]) -> list[str]:
    """The modules whose file matches a pattern, as a whole or by its last part without ``.py``; all without patterns.

    Raises:
        ValueError: a pattern matches none.
    """
    found = []
    for pattern in patterns or ["*"]:
        matching = [name for name in tests if any(fnmatch.fnmatch(part, pattern) for part in (name, Path(name).stem))]
        if not matching:
            raise ValueError(f"no module matches {pattern!r}; known: {', '.join(tests)}")
        found += [name for name in matching if name not in found]
    return found


def report_row(module: str, counts: Counter[str]) -> str:
    total = counts.total()
    share = (total - counts["survived"] - counts["equivalent"]) / total if total else 1.0
    cells = [counts[name] for name in ("killed", "timed_out", "equivalent", "survived")]
    return f"| {module} | {total} | " + " | ".join(map(str, cells)) + f" | {share:.1%} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", nargs="+", default=[], help="files or their names, such as replay; default: all")
    parser.add_argument("--functions", nargs="+", default=["*"], help="functions in them, such as MistakeBook.*")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--max-mutants", type=int, help="at most so many a module, spread over its lines")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(REPOSITORY))
    equivalents = read_equivalents(EQUIVALENT)
    prepare()
    project = Project(REPOSITORY, TESTS, jobs=options.jobs)
    rows, survivors, total = [], [], Counter[str]()
    for module in wanted(TESTS, options.modules):
        limit = max(MIN_SECONDS, TIMES_BASELINE * project.baseline(module))
        trials = [
            trial
            for trial in project.trials(module, max_mutants=options.max_mutants)
            if any(fnmatch.fnmatch(trial.function, pattern) for pattern in options.functions)
        ]
        counts = Counter[str]()
        for outcome in project.run(trials, cpu_limit=limit):
            status = outcome.status
            if status == "survived" and outcome.trial.key in equivalents:
                status = "equivalent"
            counts[status] += 1
            if status == "survived":
                survivors.append(outcome.trial)
                print(outcome.trial, flush=True)
        rows.append(report_row(module, counts))
        print(rows[-1], flush=True)
        total += counts
    print("\n| Module | Mutants | Killed | Timed out | Equivalent | Survived | Killed share |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    print("\n".join([*rows, report_row("all", total)]))
    return int(len(survivors) > MAX_SURVIVING * max(1, total.total()))


def prepare() -> None:
    """Import what all tests need, once; examples that hypothesis draws are the same for every mutant."""
    for name in WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    from hypothesis import Phase, settings  # among what was just imported

    settings.register_profile(
        "mutation",
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        max_examples=40,
    )


if __name__ == "__main__":
    sys.exit(main())
