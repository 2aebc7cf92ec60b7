"""Compares the verdicts of our judge with those of EvalPlus's own judge, on the same programs, inputs and answers.

    python -m studies.evalplus_agreement evalplus.parquet --samples 2100
    python -m studies.evalplus_agreement evalplus.parquet --programs samples.jsonl

The programs come from a model (``--programs``), or are made from the references of HumanEval+ and MBPP+: the reference
itself, mutants, and references with changed results. The changes test how values are compared: another type, a close
value, another order. About a third of the made programs are correct. Our judge is ``evalplus_judge``. EvalPlus's judge
is ``untrusted_check`` of the package ``evalplus``, with its command line's defaults (``fast_check``). EvalPlus's judge
writes files and does not confine programs, so it runs in the sandbox on tier 1.
"""

import ast
import json
import os
import pickle
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from code_a1_recipe.cli import status
from code_a1_recipe.data.reader import iter_rows
from code_a1_recipe.errors import InputError, OutageError
from code_a1_recipe.files import file_fingerprint, write_whole
from code_a1_recipe.jobs.jsonl_store import JsonlStore, Row
from code_a1_recipe.jobs.judge_loop import judge_into
from code_a1_recipe.stats.tables import Table, table_with_head
from code_a1_recipe.tools.evaluate.benchmarks.evalplus import EvalPlusProblem, prepare, read_problems
from code_a1_recipe.tools.evaluate.scoring.evalplus_judge import judge_program
from code_a1_recipe.tools.evaluate.scoring.evalplus_sanitizer import INSTALL
from code_a1_recipe.tools.test_quality.mutants import Mutant, mutants_of
from sandbox import Call, CallStatus, Limits, LocalRunner, Program, Role, Runner, SandboxUnavailableError
from sandbox.text import decode
from studies.command_line import run_study, study_app

PASS = "pass"
"""EvalPlus's status for a correct program."""
PATIENT_SECONDS = 20.0
"""Time limit of an input when EvalPlus is asked again. The second answer shows if the usual limit was the reason."""
KIND_SHARES = {"reference": 1, "reformatted": 1, "mutant": 6, "reshaped": 2}
RESHAPES = {
    "int_to_float": ("int", "float(value) if type(value) is int and abs(value) < 2**53 else value"),
    "float_to_int": ("float", "int(value) if type(value) is float and value.is_integer() else value"),
    "closer_than_allowed": ("float", "value + 1e-8 if type(value) is float else value"),
    "further_than_allowed": ("float", "value * (1 + 1e-5) if type(value) is float else value"),
    "to_numpy": ("float", "__import__('numpy').float64(value) if type(value) is float else value"),
    "to_decimal": ("int float", "__import__('decimal').Decimal(value) if type(value) in (int, float) else value"),
    "one_more": ("int float", "value + 1 if type(value) in (int, float) else value"),
    "bool_to_int": ("bool", "int(value) if type(value) is bool else value"),
    "bool_to_text": ("bool", "str(value) if type(value) is bool else value"),
    "list_to_tuple": ("list", "tuple(value) if type(value) is list else value"),
    "list_to_generator": ("list", "(item for item in value) if type(value) is list else value"),
    "list_to_set": ("list", "set(value) if type(value) is list else value"),
    "items_to_float": ("list", "[float(item) if type(item) is int else item for item in value]"),
    "without_repetitions": ("list", "list(dict.fromkeys(value)) if type(value) is list else value"),
    "tuple_to_list": ("tuple", "list(value) if type(value) is tuple else value"),
    "tuple_to_set": ("tuple", "set(value) if type(value) is tuple else value"),
    "reversed": ("list tuple str", "value[::-1] if type(value) in (list, tuple, str) else value"),
    "to_subclass": ("str", "type('Text', (str,), {})(value) if type(value) is str else value"),
    "stripped": ("str", "value.strip() if type(value) is str else value"),
    "falsy_to_none": ("", "value or None"),
    "in_a_list": ("", "[value]"),
    "clears_its_input": ("", "(value, [part.clear() for part in arguments if type(part) is list])[0]"),
    "none_after_40_calls": ("", "value if len(calls) < 40 else None"),
    "none_for_long_inputs": ("", "value if len(repr(arguments)) < 50 else None"),
}
"""Change -> types of results to which it applies (empty for any type), and the expression for the new result."""
RESHAPED = """{reference}

_reference = {entry_point}
calls = []


def {entry_point}(*arguments):
    calls.append(None)
    value = _reference(*arguments)
    return {expression}
"""
THEIR_JUDGE = """
import pickle, types
import evalplus.eval as theirs

class Here:
    def __init__(self, target, args):
        self.start = lambda: target(*args)
    def join(self, timeout):
        pass
    def is_alive(self):
        return False

theirs.multiprocessing = types.SimpleNamespace(Process=Here)
theirs.Value = lambda kind, value: types.SimpleNamespace(value=value)
theirs.Array = lambda kind, items: list(items)
theirs.query_maximum_memory_bytes = lambda: None

def ask(data):
    status, details = theirs.untrusted_check(**pickle.loads(data))
    return status, len(details)
"""
"""Runs ``untrusted_check`` in the sandbox's process instead of a fork. The sandbox limits memory as EvalPlus does."""
THEIR_SECONDS = 62.0
"""EvalPlus gives all inputs of a problem 60 seconds together, and ends the process two seconds later."""
THEIR_LIMITS = Limits(
    cpu_seconds_per_case=THEIR_SECONDS,
    wall_seconds_per_case=THEIR_SECONDS,
    load_cpu_seconds=30.0,
    total_seconds=3 * THEIR_SECONDS,
    memory_bytes=4 << 30,
)
app = study_app()


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One program to judge. Only responses have a text; other programs are made when they are judged."""

    item: int
    """Position among all samples, from 0."""
    kind: str
    """A key of ``KIND_SHARES``, or ``response`` for a model's program."""
    choice: int = 0
    """Chooses one of the n programs of this kind: the program number ``choice % n``."""
    program: str = ""
    """The source of a model's program; empty for other kinds."""


def plan_samples(problems: Sequence[EvalPlusProblem], num_samples: int, *, seed: int) -> dict[str, list[Sample]]:
    """Draw samples: the problems take turns in random order, and kinds are drawn by their shares.

    Returns:
        Id of the problem -> its samples. A plan of more samples begins with the samples of a smaller plan.
    """
    rng = random.Random(seed)
    kinds = [kind for kind, share in KIND_SHARES.items() for _ in range(share)]
    plans: dict[str, list[Sample]] = {}
    item = 0
    while item < num_samples:
        for place in rng.sample(range(len(problems)), len(problems)):
            sample = Sample(item=item, kind=rng.choice(kinds), choice=rng.randrange(1 << 30))
            if item < num_samples:
                plans.setdefault(problems[place].id, []).append(sample)
            item += 1
    return plans


def read_programs(path: Path, problems: Sequence[EvalPlusProblem]) -> dict[str, list[Sample]]:
    """Read the programs of a model: id of the problem -> samples.

    Args:
        path: a file in EvalPlus's format, such as ``evalplus_samples.jsonl`` of ``code-a1 eval code``.
        problems: all problems.

    Raises:
        InputError: a row has another format, or its problem is not known.
    """
    known = {problem.id for problem in problems}
    samples: dict[str, list[Sample]] = {}
    for item, row in enumerate(iter_rows(path)):
        name = str(row.get("task_id")).replace("Mbpp/", "MBPP/")
        program = row.get("solution")
        if name not in known or not isinstance(program, str):
            raise InputError(
                f"{path}: row {item} must have a text 'solution', and the id of a problem of FILE as 'task_id', got "
                f"{name!r}; `code-a1 eval code FILE` writes such a file, evalplus_samples.jsonl"
            )
        samples.setdefault(name, []).append(Sample(item=item, kind="response", program=program))
    return samples


@cache
def _mutants(reference: str) -> Sequence[Mutant]:
    return mutants_of(reference)


def make_program(sample: Sample, problem: EvalPlusProblem) -> tuple[str, str]:
    """Make the sample's program. A reference without mutants gets a changed result instead.

    Returns:
        The source, and its detail: the operator of a mutant, or a key of ``RESHAPES``.
    """
    reference = problem.reference
    if sample.kind == "response":
        return sample.program, ""
    if sample.kind == "reference":
        return reference, ""
    if sample.kind == "reformatted":
        return f"# The same program in another layout.\n{ast.unparse(ast.parse(reference))}\n", ""
    mutants = _mutants(reference) if sample.kind == "mutant" else ()
    if mutants:
        mutant = mutants[sample.choice % len(mutants)]
        return mutant.source, mutant.operator
    result = type(decode(problem.expected[0])).__name__ if problem.expected else ""
    fitting = sorted(name for name, (types, _) in RESHAPES.items() if not types or result in types.split())
    name = fitting[sample.choice % len(fitting)]
    program = RESHAPED.format(reference=reference, entry_point=problem.entry_point, expression=RESHAPES[name][1])
    return program, name


def compare(problem: EvalPlusProblem, sample: Sample, *, ours: Runner, theirs: Runner) -> Row:
    """Ask both judges about one sample. After an outage of the sandbox, the row has the ``outage`` and no verdict.

    Args:
        problem: a problem with expected answers and the reference's seconds.
        sample: a sample of this problem.
        ours: runs the program.
        theirs: runs EvalPlus's judge; a runner of tier 1.
    """
    program, detail = make_program(sample, problem)
    row: Row = {"item": sample.item, "id": problem.id, "kind": sample.kind, "detail": detail, "outage": ""}
    try:
        verdict = judge_program(problem, program, runner=ours)
        their_status = ask_evalplus(problem, program, runner=theirs)
        row |= {"ours": asdict(verdict), "passes": verdict.passed, "theirs": their_status}
        if verdict.passed != (their_status == PASS):
            patient = ask_evalplus(problem, program, runner=theirs, least_seconds=PATIENT_SECONDS)
            row |= {"theirs_with_patience": patient, "program": program}
    except SandboxUnavailableError as error:
        row["outage"] = str(error)
    return row


def ask_evalplus(problem: EvalPlusProblem, program: str, *, runner: Runner, least_seconds: float = 1.0) -> str:
    """Get EvalPlus's verdict: ``pass``, ``fail`` or ``timeout``. The judge and the program run in the sandbox.

    Args:
        problem: a problem with expected answers and the reference's seconds.
        program: source of the untrusted program.
        runner: a runner of tier 1 that has the package ``evalplus``.
        least_seconds: time limit of an input; EvalPlus's default is 1.

    Raises:
        SandboxUnavailableError: EvalPlus's judge could not be run.
    """
    question = {
        "dataset": problem.dataset,
        "code": program,
        "inputs": [problem.arguments(index) for index in range(len(problem.calls))],
        "entry_point": problem.entry_point,
        "expected": [decode(value) for value in problem.expected],
        "atol": problem.atol,
        "ref_time": list(problem.reference_cpu_seconds),
        "fast_check": True,
        "min_time_limit": least_seconds,
    }
    request = Program(
        prelude="",
        source=THEIR_JUDGE,
        calls=(Call(expression=f"ask({pickle.dumps(question)!r})"),),
        reference_cpu_seconds=(0.0,),
        limits=THEIR_LIMITS,
        max_timeouts_without_result=1,
    )
    result = runner.run(request, role=Role.CANDIDATE)
    if not result.loaded:
        raise SandboxUnavailableError(f"EvalPlus's judge does not load in the sandbox: {result.load_error}")
    answer = result.results[0]
    if answer.status is not CallStatus.VALUE:  # for EvalPlus, a process that ends without a status timed out
        return "timeout"
    return str(decode(answer.value)[0])


def agreement_table(rows: Sequence[Row]) -> Table:
    """Count programs by kind and by the verdicts of both judges. Rows with an outage are not counted."""
    table = [["programs", "number", "both pass", "both fail", "only ours passes", "only EvalPlus passes"]]
    judged = [row for row in rows if not row["outage"]]
    for kind in [*dict.fromkeys(row["kind"] for row in judged), "all"]:
        chosen = [row for row in judged if kind in (row["kind"], "all")]
        counts = Counter((row["passes"], row["theirs"] == PASS) for row in chosen)
        cells = [counts[True, True], counts[False, False], counts[True, False], counts[False, True]]
        table.append([kind, str(len(chosen)), *map(str, cells)])
    return table_with_head(table, title="Our judge and EvalPlus's")


@app.command()
def evalplus_agreement(
    file: Annotated[Path, typer.Argument(help="HumanEval+ and MBPP+ in one parquet file, in the paper's format")],
    samples: Annotated[int, typer.Option(min=1, help="number of programs to make and judge")] = 2000,
    programs: Annotated[
        Path | None,
        typer.Option(help="a file of a model's programs in EvalPlus's format, in place of --samples"),
    ] = None,
    seed: Annotated[int, typer.Option(help="seed of the choice of programs")] = 0,
    output: Annotated[
        Path,
        typer.Option(help="folder of the results; a repeated command resumes from it"),
    ] = Path("outputs/agreement"),
    workers: Annotated[int, typer.Option(min=1)] = os.cpu_count() or 1,
) -> None:
    """Compare our judge with EvalPlus's judge, and list every program on which the verdicts differ."""
    try:
        settings: dict[str, Any] = {"file": file_fingerprint(file), "evalplus": version("evalplus")}
    except PackageNotFoundError as error:
        raise InputError(f"the comparison needs the package evalplus, which is not installed: {INSTALL}") from error
    problems = read_problems(file)
    if programs is None:
        settings["seed"] = seed
        wanted = plan_samples(problems, samples, seed=seed)
    else:
        settings["programs"] = file_fingerprint(programs)
        wanted = read_programs(programs, problems)
    with JsonlStore(output / "samples.jsonl", settings=settings, key="item") as store, status.resumable(store.path):
        _judge_all([problem for problem in problems if problem.id in wanted], wanted, store, workers)
        items = {sample.item for group in wanted.values() for sample in group}
        rows = [row for row in store.rows() if row["item"] in items]
    differing = [row for row in rows if "program" in row]
    write_whole(output / "differences.jsonl", "".join(json.dumps(row) + "\n" for row in differing))
    typer.echo(agreement_table(rows).markdown())
    for row in differing:
        ours = row["ours"]["reason"] or PASS
        theirs = f"{row['theirs']}, with {PATIENT_SECONDS:g} s an input {row['theirs_with_patience']}"
        typer.echo(f"- {row['id']}, {row['kind']} {row['detail']}: ours {ours}; EvalPlus {theirs}")
    if num_outages := sum(bool(row["outage"]) for row in rows):
        raise OutageError(f"{num_outages} programs met an outage of the sandbox; repeat the command to judge them")


def _judge_all(
    problems: Sequence[EvalPlusProblem], wanted: dict[str, list[Sample]], store: JsonlStore, workers: int
) -> None:
    """Judge the samples that the store lacks, problem by problem."""
    left = {name: [sample for sample in group if sample.item not in store] for name, group in wanted.items()}
    with (
        LocalRunner(num_workers=workers) as ours,
        LocalRunner(num_workers=workers, tier=1, preload=("evalplus.eval", "numpy")) as theirs,
    ):

        def rows_of(problem: EvalPlusProblem) -> list[Row]:
            prepared = prepare(problem, ours)
            return [compare(prepared, sample, ours=ours, theirs=theirs) for sample in left[problem.id]]

        judge_into(
            store,
            [problem for problem in problems if left[problem.id]],
            rows_of,
            num_workers=workers,
            total=sum(map(len, wanted.values())),
            what="compare",
            unit="program",
        )


if __name__ == "__main__":
    sys.exit(run_study(app, None, name="evalplus_agreement"))
