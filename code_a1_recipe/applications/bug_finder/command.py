"""``code-a1 attack``: bugs in one's own function, found by a Test LLM's asserts and small changes of them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reward_fns import extract_candidate
from sandbox import LocalRunner

from ...algorithm.episode_types import Message
from ...algorithm.prompts import render, template_for
from ...algorithm.question import entry_points_text
from ...algorithm.sampling import sampling_seed
from ...errors import InputError
from ...evaluation.models.options import ModelOptions, run_of, usual_prompt
from ...evaluation.models.response_store import ResponseStore
from ...evaluation.models.source import choose_model, sample_all
from ...jobs.outputs import Report
from .inputs import Target, check_defines, entry_point, read_program, read_suites, read_text, suites_in
from .options import AttackOptions
from .output import may_be_written
from .run import LIMITS, check_programs, run_attack


def attack(options: AttackOptions) -> Report:
    """Look for bugs; the report fails where some were found, or calls could not be asked.

    Raises:
        InputError, SandboxConfigError: something cannot be used.
        OutageError, SandboxUnavailableError: a model or the sandbox is down.
    """
    if options.code_model.is_named or options.question is not None:
        _question(options, "Code")
    run = run_of(options.model, options.code_model)
    cases = options.cases or (run.episode.cases_per_suite if run else 8)
    policies = ("code", "test") if options.code_model.is_named else ("test",)
    options = replace(options, prompt=options.prompt or usual_prompt(run, *policies), cases=cases)
    target = _target(options)
    suites = read_suites(options.suites) if options.suites else None
    prompt = [] if suites is not None else _prompt(options, target.source)
    with LocalRunner(
        num_workers=options.workers, limits=LIMITS, tier=options.tier, allow_missing=options.allow_missing
    ) as runner:
        check_programs(target, runner)
        if suites is None:
            responses = options.responses or target.output.with_suffix(".responses.jsonl")
            suites = suites_in(sample_suites(options, prompt, responses))
        return run_attack(target, suites, runner, drawn=sample_programs(options))


def sample_suites(options: AttackOptions, prompt: list[Message], responses: Path) -> Sequence[str | None]:
    """Responses of the Test LLM; what is in the file already is not sampled again. None: the prompt is too long."""
    return _sampled(options.model, "test", prompt, responses, options.num_suites, seed=options.seed, what="suites")


def sample_programs(options: AttackOptions) -> Sequence[str]:
    """Programs that the Code LLM writes for the question; none where none is named.

    Raises:
        InputError: there is no question, or the model cannot be started.
        OutageError: the model is down.
    """
    if not options.code_model.is_named:
        return ()
    question = _question(options, "Code")
    names = entry_points_text(read_program(options.solution, "the program to attack"))
    prompt = render(template_for("code", str(options.prompt)), prompt=question, entry_points=names)
    responses = options.responses or options.solution.with_suffix(".responses.jsonl")
    number = options.num_candidates
    texts = _sampled(options.code_model, "code", prompt, responses, number, seed=options.seed, what="programs")
    programs = [extract_candidate(text) for text in texts if text is not None]
    return [program for program in programs if isinstance(program, str)]


def _sampled(
    options: ModelOptions, policy: str, prompt: list[Message], responses: Path, number: int, *, seed: int, what: str
) -> Sequence[str | None]:
    """So many responses to one prompt; those that the file ``responses`` has are not sampled again."""
    seeds = [[sampling_seed(seed, 0, place) for place in range(number)]]
    parameters = options.sampling(policy)
    with ResponseStore(responses) as store:
        model = choose_model(options, policy=policy, work_folder=responses.parent)
        (found,) = sample_all(model, [("0", prompt)], seeds=seeds, parameters=parameters, store=store, description=what)
        return [response.text if response else None for response in found]


def _target(options: AttackOptions) -> Target:
    """The programs, checked before anything runs.

    Raises:
        InputError: something is missing or cannot be used.
    """
    source = read_program(options.solution, "the program to attack")
    entry = entry_point(options.entry, source, options.solution)
    output = options.output or Path(f"test_{entry}_bugs.py".lower())
    reference = None
    if options.reference is not None:
        reference = _other_program(options.reference, "--reference", entry)
        if options.candidates:
            raise InputError("name either --reference, which decides, or --candidates, of which none does")
        if not may_be_written(output):
            raise InputError(f"--output {output} exists and was not written by code-a1 attack; choose another")
    elif options.output is not None:
        raise InputError(
            "--output needs --reference: without one nobody knows which answer is right, and a test of the wrong one "
            "is worse than none; leave it out and read what is printed"
        )
    candidates = tuple(_other_program(path, "--candidates", entry) for path in options.candidates)
    return Target(
        options=options, source=source, entry=entry, reference=reference, candidates=candidates, output=output
    )


def _other_program(path: Path, option: str, entry: str) -> str:
    source = read_program(path, option)
    check_defines(source, entry, str(path), hint="the function must have the same name there")
    return source


def _prompt(options: AttackOptions, source: str) -> list[Message]:
    """What the Test LLM is asked.

    Raises:
        InputError: no Test LLM is named, or no question.
    """
    if not options.model.is_named:
        raise InputError(
            "tests are missing: name a file of them (--suites tests.py) or a Test LLM that writes them (--model "
            "FOLDER, or --endpoint URL --endpoint-model NAME)"
        )
    return render(
        template_for("test", str(options.prompt)),
        prompt=_question(options, "Test"),
        entry_points=entry_points_text(source),
        candidate=source.strip(),
        num_cases=options.cases or 0,
    )


def _question(options: AttackOptions, role: str) -> str:
    if options.question is None:
        raise InputError(f"a {role} LLM needs --question, a text file with the problem that the function solves")
    return read_text(options.question, "--question").strip()
