"""``code-a1 eval``, which evaluates models on benchmarks and compares evaluations."""

from pathlib import Path
from typing import Annotated

import typer

from ..files import write_whole
from ..jobs.outputs import Report
from ..tools.evaluate.options import CodeEvalOptions, SuiteEvalOptions
from ..tools.evaluate.results import Results, comparison_table, results_table
from .declared import with_options
from .status import finish, resumable
from .tables import print_table

group = typer.Typer(name="eval", help="Evaluate models on benchmarks.", no_args_is_help=True)


@group.command("code")
@with_options
def evaluate_code(options: CodeEvalOptions) -> None:
    """Sample programs from a Code LLM and grade them: avg@n and pass@k with bootstrap intervals.

    HumanEval+ and MBPP+ are graded by EvalPlus's rules. Other files are graded by their asserts, with the reference
    solution as the oracle. A program cannot see expected values, because they stay outside of its process. For
    LiveCodeBench and BigCodeBench the command writes samples for the benchmark's own evaluator. The table then names
    the command that judges the samples.

    Examples:

    - `code-a1 eval code evalplus.parquet --model Qwen/Qwen2.5-Coder-1.5B-Instruct --samples 32 --output out/base`
    - `code-a1 eval code evalplus.parquet --model outputs/my-run --step best --samples 32 --output out/trained`
    - `code-a1 eval code mbpp.jsonl --endpoint http://localhost:8000/v1 --endpoint-model NAME --output out/x`
    - `code-a1 eval code test6.jsonl --model MODEL --samples 10 --output out/livecodebench`
    - `code-a1 eval code bigcodebench.parquet --split instruct --model MODEL --samples 32 --output out/bigcodebench`
    - `code-a1 eval code mine.jsonl --references --output out/check`
    - `code-a1 eval compare out/base out/trained`
    """
    from ..tools.evaluate import code_llm

    with resumable(options.output):
        results, failed = code_llm.evaluate(options)
    _show(results, options.output)
    if failed:
        lines = "\n".join(f"does not pass: {line}" for line in failed)
        finish(Report(text=lines, failure=f"{len(failed)} references in the files do not pass"))


@group.command("test")
@with_options
def evaluate_tests(options: SuiteEvalOptions) -> None:
    """Let a Test LLM write tests for functions, and measure the tests as UnLeakedTestBench defines it.

    Metrics: correct assertions (pass@k), line and branch coverage, killed mutants (mut@k), and Mul = pass@k * mut@k.

    - mut@k counts only functions whose first k tests are all correct
    - mut_all@k counts all functions; a function with an incorrect test counts as 0
    - *_killable counts only mutants that the question's own tests kill; the others may be equivalent to the original

    Examples:

    - `code-a1 eval test ULT_Lite.jsonl --model outputs/my-run --tests 5 --output out/trained`
    - `code-a1 eval test ULT_Lite.jsonl --own-tests --output out/baseline`
    - `code-a1 eval compare out/baseline out/trained`
    """
    from ..tools.evaluate import tests_llm

    with resumable(options.output):
        results = tests_llm.evaluate(options)
    _show(results, options.output)


@group.command()
def compare(
    first: Annotated[Path, typer.Argument(help="--output of the first evaluation")],
    second: Annotated[Path, typer.Argument(help="--output of the second; differences are second minus first")],
) -> None:
    """Compare two finished evaluations. Differences are paired by question and have 95 % intervals."""
    print_table(comparison_table(Results.load(first), Results.load(second)))


def _show(results: Results | int, output: Path) -> None:
    """Print the table of an evaluation, and write it beside the results. Raise CodeA1Error if responses were lost."""
    if isinstance(results, int):
        typer.echo(f"{results} responses are in {output}; judge them with --judge-only")
        return
    table = results_table(results)
    write_whole(output / "table.md", table.markdown())
    print_table(table)
    if results.num_lost:
        finish(Report(text="", failure=f"{results.num_lost} responses met an outage; repeat the command to judge them"))
