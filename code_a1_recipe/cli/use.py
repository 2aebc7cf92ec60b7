"""Commands that put a trained pair to use: select, attack, crossplay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options as shared
from . import status


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for name, command in (("select", select), ("attack", attack), ("crossplay", crossplay)):
        app.command(name, rich_help_panel="Use")(command)


def select(
    files: shared.Files,
    output: shared.Output,
    model: shared.Model = None,
    step: shared.Step = "latest",
    endpoint: shared.Endpoint = None,
    endpoint_model: shared.EndpointModel = None,
    temperature: shared.Temperature = None,
    top_p: shared.TopP = None,
    max_tokens: shared.MaxTokens = None,
    max_prompt_tokens: shared.MaxPromptTokens = None,
    engine: shared.Engine = [],  # noqa: B006  # Typer reads it as the default and hands a new list
    test_model: shared.Model = None,
    test_step: shared.Step = "latest",
    test_endpoint: shared.Endpoint = None,
    test_endpoint_model: shared.EndpointModel = None,
    test_temperature: shared.Temperature = None,
    test_top_p: shared.TopP = None,
    test_max_tokens: shared.MaxTokens = None,
    test_max_prompt_tokens: shared.MaxPromptTokens = None,
    test_engine: shared.Engine = [],  # noqa: B006
    samples: Annotated[int, typer.Option(min=1, help="programs a question")] = 16,
    suites: Annotated[int, typer.Option(min=1, help="suites a question")] = 16,
    tests: Annotated[
        int | None, typer.Option(min=1, help="asserts a suite", show_default="8, of a run its own")
    ] = None,
    rule: Annotated[
        str,
        typer.Option(
            help="whose choice is written: random, pass_count, codet, codet_sqrt, mbr_exec, mbr_exec_soft or "
            "discrimination"
        ),
    ] = "codet",
    prompt: Annotated[
        str | None, typer.Option(help="pair of templates", show_default="chat_v1, of a run its own")
    ] = None,
    adapter: shared.Adapter = "auto",
    columns: shared.Columns = [],  # noqa: B006
    limit: shared.Limit = None,
    seed: shared.Seed = 0,
    workers: shared.Workers = shared.NUM_CORES,
    sample_only: shared.SampleOnly = False,
    judge_only: shared.JudgeOnly = False,
) -> None:
    """Choose the best of N programs by generated tests, without a reference.

    Samples N programs for each question from a Code LLM and M suites from a Test LLM (--test-..., or one run for both),
    runs all programs on all tests, and chooses one program by how they agree. Where a question has tests of its own,
    all rules are compared on the same samples with random choice and with the oracle.

    `code-a1 select questions.jsonl --model outputs/my-run --samples 16 --suites 16 --output out/best-of-16`

    `code-a1 select questions.jsonl --model CODE_LLM --test-model TEST_LLM --output out/best-of-16`
    """
    given = locals()
    given["test_model"] = shared.take_model(given, prefix="test_")
    given = shared.with_model(given)
    from ..applications.best_of_n import command

    options = command.SelectOptions(**given)
    with status.resumable(output):
        report = command.select(options)
    status.finish(report)


Entry = Annotated[str | None, typer.Option(help="function or class under attack", show_default="the file's only one")]
Candidates = Annotated[list[Path], typer.Option(metavar="FILE.py", help="another program to compare with; repeatable")]
Suites = Annotated[
    list[Path],
    typer.Option(
        metavar="FILE",
        help="tests that are there already, repeatable: .py or .txt with asserts, or JSON lines with a Test LLM's "
        "'response' each",
    ),
]
Cases = Annotated[
    int | None, typer.Option(min=1, help="asserts to ask for in each", show_default="8, of a run its own")
]
Prompts = Annotated[str | None, typer.Option(help="pair of templates", show_default="chat_v1, of a run its own")]
Responses = Annotated[Path | None, typer.Option(help="responses are kept here", show_default="beside --output")]
MaxCalls = Annotated[
    int, typer.Option(min=1, help="the tests' own calls are all made; changes fill up to so many calls")
]
TestFile = Annotated[
    Path | None, typer.Option(help="the pytest file; needs --reference", show_default="test_NAME_bugs.py")
]


def attack(
    solution: Annotated[Path, typer.Argument(metavar="SOLUTION.py", help="the program to attack: one file")],
    entry: Entry = None,
    reference: Annotated[Path | None, typer.Option(help="a right solution; its answers decide")] = None,
    candidates: Candidates = [],  # noqa: B006  # Typer reads it as the default and hands a new list
    question: Annotated[Path | None, typer.Option(help="the problem as text, for the models")] = None,
    suites: Suites = [],  # noqa: B006
    num_suites: Annotated[int, typer.Option(min=1, help="responses to sample from the Test LLM")] = 16,
    cases: Cases = None,
    prompts: Prompts = None,
    responses: Responses = None,
    seed: shared.Seed = 0,
    mutate: Annotated[bool, typer.Option(help="also make calls with small changes of the tests' arguments")] = True,
    max_calls: MaxCalls = 600,
    max_bugs: Annotated[int, typer.Option(min=1, help="minimal calls to show")] = 8,
    output: TestFile = None,
    workers: shared.Workers = shared.NUM_CORES,
    tier: shared.Tier = 0,
    allow_missing: shared.AllowMissing = [],  # noqa: B006
    num_candidates: Annotated[int, typer.Option(min=1, help="programs to sample from the Code LLM")] = 8,
    model: shared.Model = None,
    step: shared.Step = "latest",
    endpoint: shared.Endpoint = None,
    endpoint_model: shared.EndpointModel = None,
    temperature: shared.Temperature = None,
    top_p: shared.TopP = None,
    max_tokens: shared.MaxTokens = None,
    max_prompt_tokens: shared.MaxPromptTokens = None,
    engine: shared.Engine = [],  # noqa: B006
    code_model: shared.Model = None,
    code_step: shared.Step = "latest",
    code_endpoint: shared.Endpoint = None,
    code_endpoint_model: shared.EndpointModel = None,
    code_temperature: shared.Temperature = None,
    code_top_p: shared.TopP = None,
    code_max_tokens: shared.MaxTokens = None,
    code_max_prompt_tokens: shared.MaxPromptTokens = None,
    code_engine: shared.Engine = [],  # noqa: B006
) -> None:
    """Look for bugs in a Python function of yours.

    Asserts that a Test LLM (--model, --endpoint) writes for it, or that you have (--suites), and small changes of their
    arguments are run in the sandbox. Every call with a wrong answer is shrunk to a minimal one:

    `assert median([0, 1]) == 0.5  # your function: 1`

    With --reference (a slow but right solution, an old version) wrong means: another answer than the reference's, and
    the minimal calls are written as a pytest file. The reference also decides what is a valid call: where it raises
    nothing is compared; where it answers inputs that the problem rules out, so must you (--no-mutate keeps to the
    tests' calls). Without a reference the function is compared with other programs: yours (--candidates) or those that
    a Code LLM writes (--code-model, --code-endpoint). Then disagreements are shown, not who is right, and no test file
    is written, for it might test the wrong answer.

    `code-a1 attack median.py --reference slow_median.py --suites tests.py`

    `code-a1 attack median.py --question median.md --reference slow_median.py --model my-test-llm`

    `code-a1 attack median.py --question median.md --model outputs/my-run --code-model outputs/my-run`

    Ends with status 0 where every call that can be compared was asked and nothing was found; with 1 where bugs or
    disagreements were found (without reference and other programs: tests that claim something else), where calls could
    not be asked for want of time, or where a model or the sandbox is down.
    """
    given = dict(
        locals(),
        candidates=tuple(candidates),
        suites=tuple(suites),
        tier=tier or 0,
        allow_missing=tuple(allow_missing),
    )
    given["code_model"] = shared.take_model(given, prefix="code_")
    given["model"] = shared.take_model(given)
    from ..applications.bug_finder import command

    options = command.AttackOptions(**given)
    with status.resumable(responses or Path.cwd()):
        report = command.attack(options)
    status.finish(report)


def crossplay(
    run: Annotated[Path, typer.Argument(help="run folder; a run with one model (self-play) meets itself")],
    output: shared.Output,
    steps: Annotated[
        list[str], typer.Option(metavar="STEP", help="0 (the base models) or a saved step; repeatable; default: all")
    ] = [],  # noqa: B006  # Typer reads it as the default and hands a new list
    questions: Annotated[int | None, typer.Option(min=1, help="only the first so many held-out questions")] = None,
    candidates: Annotated[int, typer.Option(min=1, help="programs a question and step")] = 4,
    suites: Annotated[int, typer.Option(min=1, help="suites a program and Test LLM step")] = 1,
    win: Annotated[
        str,
        typer.Option(
            callback=shared.one_of(("broke", "caught")),
            help="the Test LLM wins by any valid case that breaks the program (broke), or only by one whose expected "
            "output is right as written (caught); matches are not judged anew",
        ),
    ] = "broke",
    judge_only: shared.JudgeOnly = False,
) -> None:
    """Let all saved steps of a run's Code LLM meet all saved steps of its Test LLM.

    They meet on the run's held-out questions, with the run's own prompts, sampling and judge. Does the newest one also
    win against older opponents, or has it forgotten how? Shows who wins how often, ratings over training, and signs of
    forgetting and cycling; writes a picture (crossplay.png), tables (table.*, ratings.*) and crossplay.json.

    `code-a1 crossplay outputs/cpu-20260101-120000 --output outputs/crossplay`

    `code-a1 crossplay outputs/cpu-20260101-120000 --output outputs/crossplay --steps 0 --steps 40 --questions 50`

    Models are loaded one at a time. A repeated command resumes; more steps, questions, candidates or suites only add to
    what is there.
    """
    given = dict(locals(), steps=tuple(steps))
    from ..applications.crossplay import command

    options = command.CrossPlayOptions(**given)
    with status.resumable(output):
        report = command.crossplay(options)
    status.finish(report)
