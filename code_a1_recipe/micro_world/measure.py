"""How good the tiny models are: sampled with transformers, judged in the sandbox."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from reward_fns.extract import extract_candidate, extract_suite
from sandbox import Judge, JudgeRequest, LocalRunner, SuiteVerdict

from .assets import MicroAssets
from .messages import Messages, code_messages, test_messages
from .mistakes import draw_mistake
from .world import ENTRY_POINT, MicroQuestion

# The longest demonstrated response has 49 tokens.
_MAX_RESPONSE_TOKENS = 64
_RECORDED_SAMPLES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeMeasurement:
    """Shares in [0, 1] over all samples."""

    parsable: float
    pass_at_1: float
    """Samples that pass all hidden tests."""
    greedy_pass_at_1: float
    mixed_groups: float
    """Questions on which some samples pass and others fail: where a group has something to learn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestMeasurement:
    """Shares in [0, 1]; the program shown is always a wrong one."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    one_valid: float
    """Responses with at least one valid assert."""
    valid_per_asked: float
    """Valid distinct asserts for each assert asked for."""
    correct_assertions: float
    """Valid asserts whose expected output is the reference's return value."""
    catches: float
    """Responses that fail the buggy program on at least one call."""


def sample_responses(
    model_folder: Path,
    prompts: Sequence[Messages],
    *,
    num_samples: int,
    temperature: float,
    seed: int = 0,
) -> list[list[str]]:
    """Sample ``[prompt][sample]`` texts with transformers; temperature 0 is greedy, with one sample."""
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model = AutoModelForCausalLM.from_pretrained(model_folder).eval()  # type: ignore[no-untyped-call]
    texts = [
        tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False) for messages in prompts
    ]
    batch = tokenizer(texts, padding=True, padding_side="left", return_tensors="pt", add_special_tokens=False)
    how = (
        {"do_sample": True, "temperature": temperature, "top_k": 0, "num_return_sequences": num_samples}
        if temperature
        else {"do_sample": False}
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        ids = model.generate(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            max_new_tokens=_MAX_RESPONSE_TOKENS,
            **how,
        )
    decoded = tokenizer.batch_decode(ids[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
    per_prompt = num_samples if temperature else 1
    return [decoded[i : i + per_prompt] for i in range(0, len(decoded), per_prompt)]


def measure_code(assets: MicroAssets, questions: Sequence[MicroQuestion], *, num_samples: int = 4) -> CodeMeasurement:
    """Programs at temperature 1 and greedy, against the hidden tests."""
    prompts = [code_messages(question.prompt) for question in questions]
    sampled = sample_responses(assets.code_model, prompts, num_samples=num_samples, temperature=1.0)
    greedy = sample_responses(assets.code_model, prompts, num_samples=1, temperature=0.0)
    with LocalRunner() as runner, Judge(runner) as judge:
        passed = [
            [_solves(judge, question, text) for text in texts]
            for question, texts in zip(questions, sampled, strict=True)
        ]
        greedy_passed = [_solves(judge, question, texts[0]) for question, texts in zip(questions, greedy, strict=True)]
    parsable = [isinstance(extract_candidate(text), str) for texts in sampled for text in texts]
    return CodeMeasurement(
        parsable=_share(parsable),
        pass_at_1=_share([one for group in passed for one in group]),
        greedy_pass_at_1=_share(greedy_passed),
        mixed_groups=_share([any(group) and not all(group) for group in passed]),
    )


def measure_tests(
    assets: MicroAssets, questions: Sequence[MicroQuestion], *, num_cases: int = 4, num_samples: int = 2
) -> TestMeasurement:
    """Suites at temperature 1 about a typical buggy program of each question."""
    rng = random.Random("programs to catch")
    wrong = [draw_mistake(rng, question.mistakes).operation.python for question in questions]
    prompts = [
        test_messages(question.prompt, candidate=program, num_cases=num_cases, black_box=False)
        for question, program in zip(questions, wrong, strict=True)
    ]
    sampled = sample_responses(assets.test_model, prompts, num_samples=num_samples, temperature=1.0)
    suites: list[SuiteVerdict] = []
    with LocalRunner() as runner, Judge(runner) as judge:
        for question, program, texts in zip(questions, wrong, sampled, strict=True):
            written = [extract_suite(text, max_asserts=num_cases) for text in texts]
            raw = tuple(suite if isinstance(suite, tuple) else () for suite in written)
            suites += judge.judge(_request(question, program, raw)).suites
    num_valid = sum(suite.num_valid for suite in suites)
    return TestMeasurement(
        one_valid=_share([suite.num_valid > 0 for suite in suites]),
        valid_per_asked=num_valid / (num_cases * len(suites)),
        correct_assertions=sum(suite.num_expected_correct for suite in suites) / max(1, num_valid),
        catches=_share([suite.num_failed > 0 for suite in suites]),
    )


def record_buggy_programs(code_model: Path, questions: Sequence[MicroQuestion]) -> dict[str, list[str]]:
    """By question id: a typical buggy program, then one that ``code_model`` wrote itself, where it wrote any.

    Recorded once, so that every Test LLM is measured on the same ones. Programs of the model run confined, as
    everywhere.
    """
    prompts = [code_messages(question.prompt) for question in questions]
    sampled = sample_responses(code_model, prompts, num_samples=_RECORDED_SAMPLES, temperature=1.0)
    found: dict[str, list[str]] = {}
    with LocalRunner() as runner, Judge(runner) as judge:
        for question, texts in zip(questions, sampled, strict=True):
            programs = dict.fromkeys(program for text in texts if isinstance(program := extract_candidate(text), str))
            wrong = (
                program for program in programs if program != question.mutant and not solves(judge, question, program)
            )
            found[question.id] = [question.mutant, *[program for program in [next(wrong, None)] if program]]
    return found


def _solves(judge: Judge, question: MicroQuestion, response: str) -> bool:
    candidate = extract_candidate(response)
    return isinstance(candidate, str) and solves(judge, question, candidate)


def solves(judge: Judge, question: MicroQuestion, candidate: str) -> bool:
    """Whether a program passes every hidden test."""
    verdict = judge.judge(_request(question, candidate, (question.hidden_tests,)))
    suite = verdict.suites[0]
    return verdict.loaded and suite.num_valid == len(question.hidden_tests) and suite.num_failed == 0


def _request(question: MicroQuestion, candidate: str, suites: tuple[tuple[str, ...], ...]) -> JudgeRequest:
    return JudgeRequest(
        question_id=question.id,
        reference=question.reference,
        candidate=candidate,
        suites=suites,
        entry_points=(ENTRY_POINT,),
    )


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)
