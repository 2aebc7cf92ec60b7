"""Checks the questions before a run starts: their number, references, tests and lengths."""

from collections.abc import Sequence
from typing import Any

from ..algorithm.episode import given_tests
from ..algorithm.prompts import render
from ..algorithm.question import Question
from ..algorithm.sampling import prompt_token_ids, prompts_token_ids
from ..config.run_config import RunConfig
from ..errors import SettingsError


def questions_of_run(config: RunConfig, key: str, *, whole: bool = False) -> Sequence[Question]:
    """Read the questions of ``data.<key>``.

    Args:
        config: the run's.
        key: "train_files" or "val_files".
        whole: ignore ``data.*_max_samples``.

    Raises:
        SettingsError: a file cannot be read, or there are too few questions for a step.
    """
    from ..data.torch_dataset import QuestionDataset

    data, files = config.data, getattr(config.data, key)
    samples = data.train_max_samples if key == "train_files" else data.val_max_samples
    if whole:
        samples = -1  # verl's value for all
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
    """Raise SettingsError if an id of ``data.left_out`` belongs to no question."""
    if not config.data.left_out:
        return
    # The list is emptied, since the dataset would otherwise leave out exactly the questions that are looked for.
    whole = config.with_values({"data.left_out": []})
    known = set()
    for key in ("train_files", "val_files"):
        known |= {question.id for question in questions_of_run(whole, key, whole=True)}
    if unknown := [identity for identity in config.data.left_out if identity not in known]:
        raise SettingsError(
            f"data.left_out names {unknown!r}: no question of data.train_files or data.val_files has it"
        )


def check_given_tests(config: RunConfig, train: Sequence[Question]) -> None:
    """Raise SettingsError if a question lacks the tests that the Code LLM is rewarded on."""
    without = [question.id for question in train if not given_tests(question, config.rewards)]
    if config.rewards.uses_given_tests and without:
        column = "tests" if config.rewards.code_tests == "hidden" else "golden_tests"
        raise SettingsError(
            f"rewards.code_tests={config.rewards.code_tests} needs the column {column!r}, which {len(without)} of "
            f"{len(train)} questions of data.train_files={list(config.data.train_files)!r} leave empty, the first is "
            f"{without[0]!r}; fill it, take those rows out, or leave rewards.code_tests at suites"
        )


def check_references(config: RunConfig, key: str, questions: Sequence[Question]) -> None:
    """Raise SettingsError if suites are written for a question that has no reference. Suites need a reference."""
    # Training and validation each have their own number of suites, which may be 0.
    counts = config.episode if key == "train_files" else config.validation
    listed = [question.id for question in questions if question.is_listed]
    if listed and counts.num_suites:
        raise SettingsError(
            f"data.{key}: {len(listed)} questions have listed outputs and no reference, the first is {listed[0]!r}; "
            "the Test LLM needs a reference, which answers its calls. Train the Code LLM alone (arm=golden_full), or "
            "take those rows out"
        )


def check_chat_template(config: RunConfig, name: str, tokenizer: Any) -> None:
    """Raise SettingsError if a policy's chat template refuses the messages, or does not print the question."""
    from jinja2 import TemplateError

    model, prompts = config.policy(name).model, config.prompts
    place = "path" if model.custom_chat_template is None else "custom_chat_template"
    template = prompts.code_template if name == "code" else prompts.test_template
    told = f"policies.{name}.model.{place}={getattr(model, place)!r}: its chat template"
    # If two different questions give the same prompt, the template does not print the question.
    fields: dict[str, Any] = {"entry_points": "", "candidate": "", "num_cases": 1}
    try:
        short = prompt_token_ids(tokenizer, render(template, prompt="", **fields))
        long = prompt_token_ids(tokenizer, render(template, prompt="f(x) " * 9, **fields))
    except TemplateError as error:
        raise SettingsError(f"{told} refuses prompt {template!r}: {error}; change either") from error
    if short == long:
        raise SettingsError(f"{told} leaves the question out of prompt {template!r}; it must print `messages`")


def check_prompt_lengths(config: RunConfig, key: str, questions: Sequence[Question], tokenizer: Any) -> None:
    """Raise SettingsError if a question is too long for the Code LLM."""
    if lengths := overlong_prompts(config, questions, tokenizer):
        identity = max(lengths, key=lengths.__getitem__)
        limit = config.policies.code.rollout.prompt_length
        raise SettingsError(
            f"data.{key}: {len(lengths)} of {len(questions)} questions exceed the Code LLM's prompt length of {limit} "
            f"tokens, the longest is {identity!r} with {lengths[identity]}; raise data.max_prompt_length (and "
            "policies.test.rollout.prompt_length with it), or leave them out with data.filter_overlong_prompts=true"
        )


def overlong_prompts(config: RunConfig, questions: Sequence[Question], tokenizer: Any) -> dict[str, int]:
    """Find questions that are too long for the Code LLM. Return their prompt lengths in tokens by question id."""
    limit = config.policies.code.rollout.prompt_length
    lengths: dict[str, int] = {}
    for first in range(0, len(questions), 1000):  # all prompts of a large data set at once would fill the memory
        some = questions[first : first + 1000]
        prompts = [render(config.prompts.code_template, **question.prompt_fields) for question in some]
        for question, ids in zip(some, prompts_token_ids(tokenizer, prompts), strict=True):
            if len(ids) > limit:
                lengths[question.id] = len(ids)
    return lengths
