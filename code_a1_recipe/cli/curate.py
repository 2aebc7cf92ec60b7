"""``code-a1 data``, which prepares and shows training data."""

import sys
from functools import partial

import typer

from ..jobs.terminal import echo
from ..tools.prepare.options import PrepareOptions, SftOptions
from ..tools.report.inspection import InspectOptions
from . import status
from .declared import with_options

group = typer.Typer(
    name="data", help="Prepare problem sets, make demonstrations from them, or show them.", no_args_is_help=True
)


@group.command()
@with_options
def prepare(options: PrepareOptions) -> None:
    """Turn public problem sets into a checked training set in this project's columns.

    INPUT is a parquet, JSONL or JSON file, or org/name[:split] of the Hugging Face hub: KodCode-V1, MBPP, HumanEval,
    LeetCodeDataset, TACO, APPS, UnLeakedTestBench, or any set whose columns you name. Every reference is run in the
    sandbox on the tests of its row. A row is left out and counted if it is bad, overlaps with an evaluation set, or
    repeats another row.

    `code-a1 data prepare kodcode.parquet --output train.parquet --against evalplus.parquet`

    `code-a1 data prepare mine.jsonl --columns prompt=text --columns reference=code --output train.parquet --limit 100`

    `code-a1 data prepare train.parquet --output frontier.parquet --rates out/rated --keep 0.05 0.95`

    A question that a model always solves or never solves teaches nothing. With --rates, such questions are left out by
    the verdicts of `code-a1 eval code train.parquet --model MODEL --samples 16 --temperature 1 --output out/rated`.

    OUTPUT.card.md has the sources, counts and overlaps, and says how to train. OUTPUT.dropped.jsonl has the file, row,
    id, reason and detail of each row that was left out. A repeated command resumes from OUTPUT.judged.jsonl.
    `code_a1_recipe/data/README.md` explains the reasons, and how to upload the set.
    """
    from ..tools.prepare.prepare import prepare as prepare_sets

    command = ["code-a1", *sys.argv[1:]]
    status.resume(options.work_output, partial(prepare_sets, command=command), options)


@group.command()
@with_options
def sft(options: SftOptions) -> None:
    """Write demonstrations for a cold start of the Test LLM: prompts of training, each with a good suite.

    A base model that writes mostly invalid asserts earns no reward from which it could learn. A demonstration shows a
    suite of correct asserts, which are tests of the question that pass on the reference. Tests that fail on the program
    in the prompt come first. The program in the prompt is the reference or one of the question's buggy_programs. With
    --mutants it may also be the reference with a small mistake.

    `code-a1 data sft train.parquet --mutants 4 --output demonstrations.parquet`

    Both OUTPUT and its validation file have a column `messages`, and they share no question. The validation file of
    x.parquet is x.val.parquet. OUTPUT.card.md has counts, and the command that trains on the files with verl's SFT
    trainer on one NVIDIA GPU. A repeated command resumes from OUTPUT.judged.jsonl.
    """
    from ..tools.prepare.sft import make_demonstrations

    status.resume(options.work_output, make_demonstrations, options)


@group.command()
@with_options
def inspect(options: InspectOptions) -> None:
    """Show a run or a data set, question by question.

    - RUN: the programs of one step with their rewards, suites, expected outputs, the oracle's return values, and
    outcomes; with --outcome NAME only programs with this outcome

    - RUN --question ID: prompt, reference, Mistake Book, and the question's programs of one step

    - FILE: a table of the questions in a data set

    - FILE --question ID: prompt, reference and tests

    `code-a1 data inspect outputs/my-run --question micro-0bcf --step 12`

    `code-a1 data inspect outputs/my-run --outcome detected`
    """
    from ..tools.report.inspection import inspect as inspect_questions

    echo(inspect_questions(options))
