"""``code-a1 data`` and ``code-a1 harvest``: training data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..algorithm.prompts import PROMPT_PAIRS
from . import options as shared
from . import status

group = typer.Typer(help="Problem sets: prepared, turned into demonstrations, inspected.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(group, name="data", rich_help_panel="Data")
    app.command("harvest", rich_help_panel="Data")(harvest)


@group.command()
def prepare(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT...", help="files, folders, or ids of the hub")],
    output: Annotated[Path, typer.Option(help="the training set; must end in .parquet")],
    overwrite: shared.Overwrite = False,
    against: Annotated[
        list[str], typer.Option(metavar="SET", help="evaluation set that no row may repeat; repeatable")
    ] = [],  # noqa: B006  # Typer reads it as the default and hands a new list
    adapter: shared.Adapter = "auto",
    columns: shared.Columns = [],  # noqa: B006
    against_columns: Annotated[
        list[str],
        typer.Option(metavar="NAME=COLUMN", help="the same for --against; prompt=COLUMN is enough"),
    ] = [],  # noqa: B006
    limit: Annotated[int | None, typer.Option(min=1, help="rows of each INPUT, for a try")] = None,
    min_tests: Annotated[int, typer.Option(min=0, help="usable tests a row must have; 0 keeps rows without tests")] = 1,
    drop_tests: Annotated[
        bool, typer.Option("--drop-tests", help="tests that do not hold go alone; by default their row goes")
    ] = False,
    slow_seconds: Annotated[
        float,
        typer.Option(callback=shared.within(0, ends="()"), help="CPU seconds that a call of a reference may take"),
    ] = 1.0,
    ngram: Annotated[int, typer.Option(min=2, help="words in a row that a prompt may not share with --against")] = 10,
    duplicate_threshold: Annotated[
        float,
        typer.Option(callback=shared.within(0, 1, ends="(]"), help="Jaccard similarity of texts that are the same"),
    ] = 0.8,
    workers: shared.Workers = shared.NUM_CORES,
    tier: shared.Tier = 0,
    allow_missing: shared.AllowMissing = [],  # noqa: B006
) -> None:
    """Turn public problem sets into a checked training set in this project's columns.

    INPUT is a parquet, JSONL or JSON file; a folder of such files or of `datasets.save_to_disk` (FOLDER:split); or
    org/name[:split] of the Hugging Face hub: KodCode-V1, MBPP, HumanEval, LeetCodeDataset, TACO, APPS,
    UnLeakedTestBench, or any set whose columns you name. Every reference runs on its own tests in the sandbox; rows
    that overlap with evaluation sets or repeat one another go. A bad row is left out and counted.

    `code-a1 data prepare kodcode.parquet --output train.parquet --against evalplus.parquet`

    `code-a1 data prepare mine.jsonl --columns prompt=text --columns reference=code --output train.parquet --limit 100`

    Beside OUTPUT: OUTPUT.card.md (counts, overlaps, settings, how to train), OUTPUT.dropped.jsonl (file, row, id,
    reason and detail of what was left out) and OUTPUT.judged.jsonl, from which a repeated command resumes. Reasons:

    - `unusable row`: it has no text, or no Python, where some is needed; the rule follows

    - `overlap`: it repeats a question of an evaluation set

    - `load_failed`: the reference does not run at all

    - `reference_fails`: it contradicts one of its own tests, or raises in it

    - `reference_nondeterministic`: two runs with other hash seeds differ

    - `reference_slow`: a call takes more than --slow-seconds, or all of them together more than 30

    - `unencodable`: it answers with something that is no builtin value, or too large

    - `too_few_tests`: fewer than --min-tests tests can be used

    - `near_duplicate`, `duplicate_reference`: an earlier row that stays has nearly the same prompt, or the same program

    - `outage`: the sandbox failed; nothing is known of it. Repeat the command
    """
    given = dict(
        locals(),
        inputs=tuple(inputs),
        against=tuple(against),
        columns=shared.columns(columns) or None,
        against_columns=shared.columns(against_columns) or None,
        tier=tier or 0,
        allow_missing=tuple(allow_missing),
    )
    from ..curation.prepare import command
    from ..curation.prepare.options import PrepareOptions

    options = PrepareOptions(**given)
    with status.resumable(options.work_output):
        report = command.prepare(options, command=["code-a1", *sys.argv[1:]])
    status.finish(report)


@group.command()
def sft(
    output: Annotated[Path, typer.Option(help="the demonstrations; must end in .parquet")],
    files: Annotated[list[Path], typer.Argument(metavar="[FILE]...", help="questions")] = [],  # noqa: B006
    run: Annotated[
        Path | None, typer.Option(help="a run folder, or a file of its rollouts or of `code-a1 score` of them")
    ] = None,
    questions: Annotated[
        list[Path], typer.Option(metavar="FILE", help="of --run; default: the run's own; repeatable")
    ] = [],  # noqa: B006
    overwrite: shared.Overwrite = False,
    adapter: shared.Adapter = "auto",
    columns: shared.Columns = [],  # noqa: B006
    prompt: Annotated[
        str | None,
        typer.Option(
            callback=shared.one_of(tuple(sorted(PROMPT_PAIRS))),
            help="prompts.name of the run to come; default: chat_v1, or the run's",
        ),
    ] = None,
    cases: Annotated[
        int | None, typer.Option(min=1, help="asserts of a suite; default: 8, or the run's; fewer where tests are few")
    ] = None,
    mutants: Annotated[int, typer.Option(min=0, help="mutants of each reference to show")] = 0,
    only_breaking: Annotated[
        bool, typer.Option("--only-breaking", help="leave out suites that do not break the program shown")
    ] = False,
    max_per_question: Annotated[int, typer.Option(min=1, help="demonstrations of a question")] = 8,
    max_assert_chars: Annotated[int, typer.Option(min=1, help="longer asserts are not used")] = 400,
    max_chars: Annotated[int, typer.Option(min=1, help="of a demonstration's messages together")] = 16_384,
    val_frac: Annotated[
        float, typer.Option(callback=shared.within(0, 1, ends="[)"), help="of the questions, for validation")
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="of every choice")] = 0,
    model: Annotated[str | None, typer.Option(help="that the printed command trains")] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="print a command for a machine without a GPU, for tiny models")] = (
        False
    ),
    workers: shared.Workers = shared.NUM_CORES,
    tier: shared.Tier = 0,
    allow_missing: shared.AllowMissing = [],  # noqa: B006
) -> None:
    """Write demonstrations for a cold start of the Test LLM: prompts as training shows them, each with a good suite.

    A base model that writes mostly invalid asserts earns nothing to learn from; these show it suites that are well
    formed and right. Of questions (FILE): tests that the judge finds right on the reference, those first that break
    the program shown (the reference, its buggy_programs, and with --mutants small mistakes in the reference). Of a run
    (--run): suites of its Test LLM whose asserts are all right (rejection sampling).

    `code-a1 data sft train.parquet --mutants 4 --output demonstrations.parquet`

    `code-a1 data sft --run outputs/my-run --only-breaking --output demonstrations.parquet`

    OUTPUT and OUTPUT.val.parquet (without the first .parquet) have a column `messages`, split by question;
    OUTPUT.card.md has counts and the command that trains on them with verl's SFT trainer, on one NVIDIA GPU. A repeated
    command resumes from OUTPUT.judged.jsonl.
    """
    given = dict(
        locals(),
        files=tuple(files),
        questions=tuple(questions),
        columns=shared.columns(columns) or None,
        tier=tier or 0,
        allow_missing=tuple(allow_missing),
    )
    from ..curation.sft.command import make_demonstrations
    from ..curation.sft.options import SftOptions

    options = SftOptions(**given)
    with status.resumable(options.work_output):
        report = make_demonstrations(options)
    status.finish(report)


@group.command()
def inspect(
    source: Annotated[Path, typer.Argument(metavar="RUN_OR_FILE", help="run folder; or parquet, JSONL or JSON")],
    question: Annotated[str, typer.Option(metavar="ID", help="the question to show: its id, or how it begins")] = "",
    step: Annotated[
        int | None, typer.Option(help="of a run", show_default="all in the list, the last one of a question")
    ] = None,
    validation: Annotated[bool, typer.Option("--validation", help="of a run: held-out questions")] = False,
    candidate: Annotated[int | None, typer.Option(help="of a run: only this program of the step")] = None,
    limit: Annotated[int, typer.Option(min=1, help="rows of a list, tests of a question")] = 30,
    adapter: shared.Adapter = "auto",
    columns: shared.Columns = [],  # noqa: B006
) -> None:
    """Show a run, or a data set, question by question.

    - RUN, without --question: the questions it met, the hardest first, with counts

    - RUN --question ID: prompt, reference, Mistake Book, how the question went over the run, and the programs of one
    step with their rewards, suites, expected outputs, the oracle's return values and outcomes

    - FILE, without --question: what is in the data set

    - FILE --question ID: prompt, reference and tests

    `code-a1 data inspect outputs/my-run --question micro-0bcf --step 12 --candidate 2`

    `code-a1 data inspect train.parquet --question MBPP/601`

    `code-a1 rollouts` shows programs of all questions by their outcome.
    """
    given = dict(locals(), columns=shared.columns(columns) or None)
    from ..analysis.inspection import InspectOptions
    from ..analysis.inspection import inspect as inspect_questions

    typer.echo(inspect_questions(InspectOptions(**given)))


def harvest(
    run: Annotated[Path, typer.Argument(help="folder of a finished run")],
    output: Annotated[Path, typer.Option(help="JSON lines, for data.train_files with arm=static")],
    overwrite: shared.Overwrite = False,
    minimise: Annotated[
        bool, typer.Option(help="drop tests that kill nothing new; otherwise the best 32 stay, not judged again")
    ] = True,
    min_tests: Annotated[int, typer.Option(min=1, help="tests of a question that stay at least")] = 1,
    max_mutants: Annotated[int, typer.Option(min=1, help="mutants of a reference at most")] = 200,
    seed: Annotated[int, typer.Option(help="of the choice of mutants where there are more")] = 0,
    workers: shared.Workers = shared.NUM_CORES,
    tier: shared.Tier = None,
    allow_missing: shared.AllowMissing = [],  # noqa: B006
) -> None:
    """Write a run's training questions with the tests that its Test LLM wrote as golden tests.

    Of the tests of a question only as few stay as kill the same programs: mutants of its reference (small mistakes,
    made by cosmic-ray) and the buggy programs that the run recorded. The best come first. Programs are confined as in
    the run unless --tier or --allow-missing say otherwise.

    `code-a1 harvest outputs/my-run --output tests.jsonl`, then `code-a1 cpu arm=static data.train_files=tests.jsonl`.
    A repeated command resumes from OUTPUT.kills.jsonl.
    """
    given = dict(locals(), allow_missing=tuple(allow_missing))
    from ..curation.harvest import HarvestOptions, harvest_tests

    options = HarvestOptions(**given)
    with status.resumable(options.work_output):
        report = harvest_tests(options)
    status.finish(report)
