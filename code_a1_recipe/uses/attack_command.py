"""``code-a1 attack``: bugs in one's own function, found by a Test LLM's asserts and small changes of them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from reward_fns import extract_candidate
from sandbox import LocalRunner, SandboxConfigError, SandboxUnavailableError
from sandbox.confine import OPTIONAL_FEATURES
from sandbox.tiers import LOCAL_TIERS

from ..argument_types import positive
from ..episode_data import Message
from ..evaluation.endpoint import ModelError
from ..evaluation.models import add_model_arguments, has_model, sample_texts
from ..evaluation.response_store import ResponseStore
from ..evaluation.run_defaults import fill_defaults
from ..prompts import PROMPT_PAIRS, PromptError, find_prompt_pair, render
from ..score_file import ScoreFileError
from .attack import ProgramError
from .attack_inputs import (
    AttackInputError,
    Target,
    check_defines,
    entry_point,
    read_program,
    read_suites,
    read_text,
    suites_in,
)
from .attack_output import may_be_written
from .attack_run import LIMITS, AttackSettings, check_programs, run_attack

REFUSED, SANDBOX_DOWN, INTERRUPTED = 2, 3, 130
_DESCRIPTION = """\
Looks for bugs in a Python function of yours. Asserts that a Test LLM writes for it (or that you have) and small changes
of their arguments are run in the sandbox, and every call with a wrong answer is shrunk to a minimal one:

  assert median([0, 1]) == 0.5  # your function: 1

With --reference (a slow but right solution, an old version) wrong means: another answer than the reference's, and the
minimal calls are written as a pytest file. The reference also decides what is a valid call: where it raises nothing is
compared; where it answers inputs that the problem rules out, so must you (--no-mutate keeps to the tests' calls).

Without a reference the function is compared with other programs for the problem: yours (--candidates) or those that a
Code LLM writes (--code-model, --code-endpoint). Then disagreements are shown, not who is right, and no test file is
written, for it might test the wrong answer.
"""
_EPILOG = """\
examples:
  code-a1 attack median.py --reference slow_median.py --suites tests.py
  code-a1 attack median.py --entry median --question median.md --reference slow_median.py --model my-test-llm
  code-a1 attack median.py --question median.md --candidates other1.py other2.py \\
      --endpoint http://localhost:8000/v1 --endpoint-model test-llm
  code-a1 attack median.py --question median.md --model outputs/my-run --code-model outputs/my-run

exit status: 0 every call that can be compared was asked and nothing found, 1 bugs or disagreements found (without
reference and other programs: tests that claim something else) or calls left that could not be asked for want of time
(`not complete` on the last lines), 2 refused, or no call at all could be compared, 3 the sandbox is down, 130
interrupted
"""

SampleSuites = Callable[[argparse.Namespace, list[Message], Path], Sequence[str | None]]
"""``(options, prompt, responses_file)`` -> responses of a Test LLM; None where the prompt is too long."""
DrawCandidates = Callable[[argparse.Namespace], Sequence[str]]
"""Further programs for the same question, of a Code LLM."""


def sample_suites(options: argparse.Namespace, prompt: list[Message], responses: Path) -> Sequence[str | None]:
    """Ask the Test LLM of the command line; what is in the file already is not sampled again."""
    with ResponseStore(responses) as store:
        return sample_texts(
            options,
            [prompt],
            num_samples=options.num_suites,
            policy="test",
            store=store,
            work_folder=responses.parent,
            seed=options.seed,
            description="suites",
        )[0]


def draw_programs(options: argparse.Namespace) -> Sequence[str]:
    """Programs that the Code LLM of the command line writes for the question; none where none is named.

    Raises:
        AttackInputError: there is no question.
        ModelError: the model cannot be started, reached or asked.
    """
    if not has_model(options, prefix="code-"):
        return ()
    if options.question is None:
        raise AttackInputError("a Code LLM needs --question, a text file with the problem that the function solves")
    question = read_text(options.question, "--question")
    responses = options.responses or options.solution.with_suffix(".responses.jsonl")
    with ResponseStore(responses) as store:
        texts = sample_texts(
            options,
            [render(find_prompt_pair(options.prompts).code, prompt=question.strip())],
            num_samples=options.num_candidates,
            policy="code",
            store=store,
            work_folder=responses.parent,
            prefix="code-",
            seed=options.seed,
            description="programs",
        )[0]
    found = [extract_candidate(text) for text in texts if text is not None]
    return [program for program in found if isinstance(program, str)]


def main(
    arguments: Sequence[str] | None = None,
    *,
    sample: SampleSuites = sample_suites,
    draw_candidates: DrawCandidates = draw_programs,
) -> int:
    """Exit status: 0 nothing found, 1 found or not complete, 2 refused, 3 the sandbox is down, 130 interrupted."""
    options = _parser().parse_args(arguments)
    try:
        fill_defaults(options, policies={"": "test", "code-": "code"}, prompt="prompts", cases=("cases", 8))
        target = read_target(options)
        if options.reference and has_model(options, prefix="code-"):
            raise AttackInputError("name either --reference, which decides, or a Code LLM for programs to compare with")
        if options.suites and has_model(options):
            raise AttackInputError("name either --suites or a Test LLM (--model, --endpoint), not both")
        suites = read_suites(options.suites) if options.suites else None
        prompt = [] if suites is not None else read_prompt(options, target.source)
        settings = AttackSettings(
            mutate=options.mutate,
            max_calls=options.max_calls,
            max_bugs=options.max_bugs,
            num_threads=options.workers,
        )
        with LocalRunner(
            num_workers=options.workers, limits=LIMITS, tier=options.tier, allow_missing=options.allow_missing
        ) as runner:
            check_programs(target, runner)
            if suites is None:
                responses = options.responses or target.output.with_suffix(".responses.jsonl")
                suites = suites_in(sample(options, prompt, responses))
            return run_attack(target, suites, runner, settings, drawn=draw_candidates(options))
    except (AttackInputError, ProgramError, PromptError, ModelError, ScoreFileError, SandboxConfigError) as error:
        sys.stderr.write(f"error: {error}\n")
        return REFUSED
    except OSError as error:
        sys.stderr.write(f"error: {error}. Make room, or name other files, then repeat the command\n")
        return REFUSED
    except SandboxUnavailableError as error:
        sys.stderr.write(f"error: the sandbox is down: {error}. Try `python -m sandbox check`, then repeat\n")
        return SANDBOX_DOWN
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted; repeat the command: responses that were sampled are kept, the rest is short\n")
        return INTERRUPTED


def read_target(options: argparse.Namespace) -> Target:
    """The programs, checked before anything runs.

    Raises:
        AttackInputError: something is missing or cannot be used.
    """
    source = read_program(options.solution, "the program to attack")
    entry = entry_point(options.entry, source, options.solution)
    others = {path: read_program(path, "--candidates") for path in options.candidates}
    reference = None
    if options.reference is not None:
        reference = read_program(options.reference, "--reference")
        if others:
            raise AttackInputError("name either --reference, which decides, or --candidates, of which none does")
        others_and_reference = {options.reference: reference}
    else:
        others_and_reference = others
    for path, program in others_and_reference.items():
        check_defines(program, entry, str(path), cure="the function must have the same name there")
    if reference is None and options.output is not None:
        raise AttackInputError(
            "--output needs --reference: without one nobody knows which answer is right, and a test of the wrong one "
            "is worse than none; leave it out and read what is printed"
        )
    output = options.output or Path(f"test_{entry}_bugs.py".lower())
    if reference is not None and not may_be_written(output):
        raise AttackInputError(f"--output {output} exists and was not written by code-a1 attack; choose another")
    return Target(
        path=options.solution,
        source=source,
        entry=entry,
        reference_path=options.reference,
        reference=reference,
        candidates=tuple(others.values()),
        output=output,
    )


def read_prompt(options: argparse.Namespace, source: str) -> list[Message]:
    """What the Test LLM is asked.

    Raises:
        AttackInputError, PromptError: no Test LLM is named, or no question.
    """
    if not has_model(options):
        raise AttackInputError(
            "tests are missing: name a file of them (--suites tests.py) or a Test LLM that writes them (--model "
            "FOLDER, or --endpoint URL --endpoint-model NAME)"
        )
    if options.question is None:
        raise AttackInputError("a Test LLM needs --question, a text file with the problem that the function solves")
    question = read_text(options.question, "--question")
    template = find_prompt_pair(options.prompts).test
    return render(template, prompt=question.strip(), candidate=source.strip(), num_cases=options.cases)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="code-a1 attack",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("solution", type=Path, metavar="SOLUTION.py", help="the program to attack: one file")
    add("--entry", metavar="NAME", help="function or class under attack (default: the only one of the file)")
    add("--reference", type=Path, metavar="FILE.py", help="a right solution; its answers decide")
    add("--candidates", nargs="+", type=Path, default=[], metavar="FILE.py", help="other programs to compare with")
    add("--question", type=Path, metavar="FILE", help="the problem as text, for the Test LLM")
    add(
        "--suites",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="tests that are there already: .py or .txt with asserts, or JSON lines with a Test LLM's 'response' each",
    )
    add("--num-suites", type=positive, default=16, help="responses to draw of the Test LLM (default 16)")
    add("--cases", type=positive, help="asserts to ask for in each (default 8, of a run its own)")
    add("--prompts", choices=sorted(PROMPT_PAIRS), help="prompt style (default chat_v1, of a run its own)")
    add("--responses", type=Path, metavar="FILE", help="responses are kept here (default: beside --output)")
    add("--seed", type=int, default=0, help="of sampling (default 0)")
    add(
        "--mutate",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also make calls with small changes of the tests' arguments (default: yes)",
    )
    add(
        "--max-calls",
        type=positive,
        default=600,
        help="the tests' own calls are all made; changes fill up to so many calls (default 600)",
    )
    add("--max-bugs", type=positive, default=8, help="minimal calls to tell (default 8)")
    add("--output", type=Path, metavar="FILE", help="the pytest file (default test_NAME_bugs.py; needs --reference)")
    add("--workers", type=positive, default=os.cpu_count() or 1, help="programs at once (default: one a core)")
    add("--tier", type=int, default=0, choices=LOCAL_TIERS, help="how programs are confined (default 0)")
    add(
        "--allow-missing",
        nargs="+",
        default=[],
        choices=OPTIONAL_FEATURES,
        metavar="NAME",
        help="protections this kernel lacks: landlock, seccomp",
    )
    add("--num-candidates", type=positive, default=8, help="programs to draw of the Code LLM (default 8)")
    add_model_arguments(parser, role="the Test LLM")
    add_model_arguments(parser, prefix="code-", role="the Code LLM, where there is no reference")
    return parser


if __name__ == "__main__":
    sys.exit(main())
