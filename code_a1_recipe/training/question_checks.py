"""Checks of the questions before a run starts: that there are enough, with the tests and the length that it needs."""

from collections.abc import Sequence
from typing import Any

from ..algorithm.episode import given_tests
from ..algorithm.prompts import render
from ..algorithm.question import Question
from ..algorithm.sampling import prompt_token_ids, prompts_token_ids
from ..config.run_config import RunConfig
from ..errors import SettingsError
from ..runs.folder import RunFolder


def read_questions(config: RunConfig, key: str, *, whole: bool = False) -> Sequence[Question]:
    """The questions of ``data.<key>``, ``whole`` without ``*_max_samples``; raises SettingsError if too few or none."""
    from ..data.torch_dataset import QuestionDataset

    data, files = config.data, getattr(config.data, key)
    samples = -1 if whole else data.train_max_samples if key == "train_files" else data.val_max_samples
    try:
        questions = QuestionDataset(files, config=dict(data), max_samples=samples).questions
    except (OSError, ValueError) as error:
        raise SettingsError(f"data.{key}: {error}") from error
    needed = data.train_batch_size if key == "train_files" else 1
    if len(questions) < needed:
        raise SettingsError(
            f"data.{key}={list(files)!r} gives {len(questions)} questions"
            + (f" (data.train_max_samples={samples})" if samples > 0 else "")
            + f", a step needs {needed} (data.train_batch_size); lower that, or give more questions"
        )
    return questions


def check_left_out(config: RunConfig) -> None:
    """Every id of ``data.left_out`` is a question's."""
    if not config.data.left_out:
        return
    # Without the list itself, as the dataset would leave out the ids that are to be found.
    whole = config.with_values({"data.left_out": []})
    known = {one.id for key in ("train_files", "val_files") for one in read_questions(whole, key, whole=True)}
    if unknown := [identity for identity in config.data.left_out if identity not in known]:
        raise SettingsError(
            f"data.left_out names {unknown!r}: no question of data.train_files or data.val_files has it"
        )


def check_given_tests(config: RunConfig, train: Sequence[Question]) -> None:
    """Every question brings the tests that the Code LLM is to be rewarded on."""
    without = [question.id for question in train if not given_tests(question, config.rewards)]
    if config.rewards.uses_given_tests and without:
        column = "tests" if config.rewards.code_tests == "hidden" else "golden_tests"
        raise SettingsError(
            f"rewards.code_tests={config.rewards.code_tests} needs the column {column!r}, which {len(without)} of "
            f"{len(train)} questions of data.train_files={list(config.data.train_files)!r} leave empty, the first is "
            f"{without[0]!r}; fill it, take those rows out, or leave rewards.code_tests at suites"
        )


def check_references(config: RunConfig, key: str, questions: Sequence[Question]) -> None:
    """Every question has a reference that can answer calls of a suite, where suites are written."""
    # Validation may do without suites where training has them.
    counts = config.episode if key == "train_files" else config.validation
    listed = [question.id for question in questions if question.is_listed]
    if listed and counts.num_suites:
        raise SettingsError(
            f"data.{key}: {len(listed)} questions have listed outputs and no reference, the first is {listed[0]!r}; "
            "the Test LLM needs a reference, which answers its calls. Train the Code LLM alone (arm=golden_full), or "
            "take those rows out"
        )


def check_chat_template(config: RunConfig, name: str, tokenizer: Any) -> None:
    """Raises SettingsError where a policy's chat template refuses its prompt (some know no [system]) or drops it."""
    from jinja2 import TemplateError

    model, prompts = config.policy(name).model, config.prompts
    place = "path" if model.custom_chat_template is None else "custom_chat_template"
    template = prompts.code_template if name == "code" else prompts.test_template
    told = f"policies.{name}.model.{place}={getattr(model, place)!r}: its chat template"
    # Two questions whose prompts are equal show that the template never prints them.
    fields: dict[str, Any] = {"entry_points": "", "candidate": "", "num_cases": 1}
    try:
        short, long = (
            prompt_token_ids(tokenizer, render(template, prompt=text, **fields)) for text in ("", "f(x) " * 9)
        )
    except TemplateError as error:
        raise SettingsError(f"{told} refuses prompt {template!r}: {error}; change either") from error
    if short == long:
        raise SettingsError(f"{told} leaves the question out of prompt {template!r}; it must print `messages`")


def with_questions_that_fit(config: RunConfig, tokenizer: Any) -> RunConfig:
    """Put the questions that are too long for the Code LLM into ``data.left_out``; says how many.

    Raises:
        SettingsError: a file cannot be read.
    """
    left_out: list[str] = []
    for key in ("train_files", "val_files"):
        questions = read_questions(config, key, whole=True)  # what moves up below `*_max_samples` must fit too
        if too_long := _too_long(config, questions, tokenizer):
            left_out += too_long
            limit = f"data.max_prompt_length={config.policies.code.rollout.prompt_length} tokens"
            RunFolder.show(f"data.{key}: {len(too_long)} of {len(questions)} questions left out, longer than {limit}")
    return config.with_values({"data.left_out": [*config.data.left_out, *dict.fromkeys(left_out)]})


def _too_long(config: RunConfig, questions: Sequence[Question], tokenizer: Any) -> dict[str, int]:
    """Tokens of the Code LLM's prompt for each question that exceeds its limit, by id."""
    limit = config.policies.code.rollout.prompt_length
    found: dict[str, int] = {}
    for first in range(0, len(questions), 1000):
        some = questions[first : first + 1000]
        prompts = [render(config.prompts.code_template, **question.prompt_fields) for question in some]
        tokens = prompts_token_ids(tokenizer, prompts)
        found |= {question.id: len(ids) for question, ids in zip(some, tokens, strict=True) if len(ids) > limit}
    return found


def check_prompt_lengths(config: RunConfig, key: str, questions: Sequence[Question], tokenizer: Any) -> None:
    if too_long := _too_long(config, questions, tokenizer):
        identity = max(too_long, key=too_long.__getitem__)
        limit = config.policies.code.rollout.prompt_length
        raise SettingsError(
            f"data.{key}: {len(too_long)} of {len(questions)} questions exceed the Code LLM's prompt length of {limit} "
            f"tokens, the longest is {identity!r} with {too_long[identity]}; raise data.max_prompt_length (and "
            "policies.test.rollout.prompt_length with it), or leave them out with data.filter_overlong_prompts=true"
        )
