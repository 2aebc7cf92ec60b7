"""The testers: what each is asked, and the calls that come of what it prints."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from code_a1_recipe.errors import InputError

from .calls import calls_after_marks, calls_in_lines, calls_in_tests
from .confine import ToolRun, run_confined

DRIVERS = Path(__file__).with_name("drivers")
SUBJECT = "subject"
"""The module that holds the program under test, in the scratch folder."""
MIN_SEARCH_SECONDS = 2.0
"""A search that is over early is repeated with another seed while so much of the budget is left."""


CROSSHAIR_START_SECONDS = 2.0
"""Of a budget, for its start and for the path that it is on when its time is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The calls of one tester for one program, best first."""

    calls: tuple[str, ...]
    cpu_seconds: float
    num_runs: int
    note: str = ""
    """The end of what the tool said where it found nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tester:
    """One way to find calls."""

    package: str
    """What its interpreter must have; empty for the standard library alone."""
    driver: str
    """File of ``drivers``, or empty: ``words`` says all."""
    words: Callable[[str, float, int, int], list[str]]
    """(function, CPU seconds, calls, seed) -> arguments of the interpreter."""
    calls: Callable[[str, str], list[str]]
    """(output, function) -> calls."""
    repeats: bool = False
    """Another seed gives other calls, and the tool may stop before its time."""


def _sample(kind: str) -> Callable[[str, float, int, int], list[str]]:
    def words(name: str, cpu_seconds: float, num_calls: int, seed: int) -> list[str]:
        return ["sample.py", kind, f"{SUBJECT}.py", name, f"{cpu_seconds:.2f}", str(num_calls), str(seed)]

    return words


def _crosshair(name: str, cpu_seconds: float, num_calls: int, seed: int) -> list[str]:
    return [
        "-m",
        "crosshair",
        "cover",
        f"{SUBJECT}.{name}",
        "--per_condition_timeout",
        f"{max(cpu_seconds - 1, 1):.2f}",
    ]


def _pynguin(name: str, cpu_seconds: float, num_calls: int, seed: int) -> list[str]:
    return ["pynguin_cpu.py", ".", SUBJECT, f"{cpu_seconds:.2f}", str(seed)]


TESTERS = {
    "random": Tester(package="", driver="sample.py", words=_sample("random"), calls=calls_after_marks),
    "hypothesis": Tester(
        package="hypothesis", driver="sample.py", words=_sample("hypothesis"), calls=calls_after_marks
    ),
    "crosshair": Tester(package="crosshair", driver="", words=_crosshair, calls=calls_in_lines),
    "pynguin": Tester(package="pynguin", driver="pynguin_cpu.py", words=_pynguin, calls=calls_in_tests, repeats=True),
}


def check_installed(tester: str, python: Path) -> str:
    """The version of the tester's package.

    Raises:
        InputError: the interpreter does not have it.
    """
    package = {"crosshair": "crosshair-tool"}.get(TESTERS[tester].package, TESTERS[tester].package)
    if not package:
        return "none"
    question = f"import importlib.metadata as m; print(m.version({package!r}))"
    found = run_confined(python, ["-c", question], files={}, cpu_seconds=5, confinement="limits")
    if found.exit_status:
        raise InputError(
            f"--tester {tester} needs the package {package}, which {python} does not have; make an environment of it "
            f"(pip install -r examples/baselines/requirements-{tester}.txt) and name its interpreter with --python"
        )
    return found.output.strip()


def find_calls(
    tester: str,
    program: str,
    name: str,
    *,
    python: Path,
    cpu_seconds: float,
    num_calls: int,
    seed: int,
    confinement: str = "namespaces",
) -> Found:
    """Run a tester on one program within its budget.

    Args:
        tester: of ``TESTERS``.
        program: source that defines the function ``name`` at top level.
        name: the function.
        python: an interpreter that has the tester's package.
        cpu_seconds: of all of its processes, start-up included.
        num_calls: as many as are wanted; a tester may give more, or fewer.
        seed: of its choices.
        confinement: see ``run_confined``.

    Raises:
        InputError: it cannot be confined.
    """
    one = TESTERS[tester]
    files = {f"{SUBJECT}.py": program}
    if one.driver:
        files[one.driver] = (DRIVERS / one.driver).read_text(encoding="utf-8")
    calls: dict[str, None] = {}
    used, runs = 0.0, 0
    while not runs or (one.repeats and cpu_seconds - used >= MIN_SEARCH_SECONDS):
        words = one.words(name, cpu_seconds - used, num_calls, seed + 1_000 * runs)
        done: ToolRun = run_confined(
            python, words, files=files, cpu_seconds=cpu_seconds - used, confinement=confinement
        )
        calls |= dict.fromkeys(one.calls(done.output, name))
        used, runs = used + done.cpu_seconds, runs + 1
    lines = done.errors.strip().splitlines()
    note = "" if calls else f"exit status {done.exit_status}: {lines[-1][:200] if lines else 'no call'}"
    return Found(calls=tuple(calls), cpu_seconds=used, num_runs=runs, note=note)
