"""Fixed buggy programs for the questions: one has a typical mistake, and the trained Code LLM writes the other."""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from reward_fns.extract import extract_candidate
from sandbox import Judge, JudgeRequest, Kind, LocalRunner
from sandbox.text import passes_all

from ..algorithm.prompts import render
from .demonstrations import Messages
from .world import ENTRY_POINT, MicroQuestion

# The longest demonstrated response has 49 tokens.
_MAX_RESPONSE_TOKENS = 64
_RECORDED_SAMPLES = 4


def record_buggy_programs(code_model: Path, questions: Sequence[MicroQuestion]) -> dict[str, list[str]]:
    """Return the buggy programs of each question, by question id.

    The first program has a typical mistake. The second program is the first wrong sample of ``code_model``, if any
    sample is wrong. The programs are recorded once, so that every Test LLM is measured on the same programs. Sampled
    programs run in the sandbox.
    """
    prompts = [render("micro_code", prompt=question.prompt) for question in questions]
    # A row's draws depend on the number of rows. With half of the rows once more, the batch has the size with which the
    # programs of the kept results were recorded; what these rows give is not read.
    sampled = _sample(code_model, [*prompts, *prompts[: len(prompts) // 2]])[: len(prompts)]
    recorded = {}
    with LocalRunner() as runner:
        judge = Judge(runner)
        for question, texts in zip(questions, sampled, strict=True):
            programs = recorded[question.id] = [question.mutant]
            for text in dict.fromkeys(texts):
                program = extract_candidate(text, reads_input=question.kind == Kind.STDIN)
                if not isinstance(program, str) or program == question.mutant:
                    continue
                if not _solves(judge, question, program):
                    programs.append(program)
                    break
    return recorded


def _sample(model_folder: Path, prompts: Sequence[Messages]) -> list[list[str]]:
    """Sample a list of texts for each prompt at temperature 1, with transformers."""
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model = AutoModelForCausalLM.from_pretrained(model_folder).eval()  # type: ignore[no-untyped-call]
    texts = [
        tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False) for messages in prompts
    ]
    batch = tokenizer(texts, padding=True, padding_side="left", return_tensors="pt", add_special_tokens=False)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        ids = model.generate(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            max_new_tokens=_MAX_RESPONSE_TOKENS,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            num_return_sequences=_RECORDED_SAMPLES,
        )
    decoded = tokenizer.batch_decode(ids[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
    return [decoded[i : i + _RECORDED_SAMPLES] for i in range(0, len(decoded), _RECORDED_SAMPLES)]


def _solves(judge: Judge, question: MicroQuestion, candidate: str) -> bool:
    """Return True if a program passes every hidden test."""
    request = JudgeRequest(
        question_id=question.id,
        reference=question.reference,
        candidate=candidate,
        suites=(question.hidden_tests,),
        entry_points=(ENTRY_POINT,),
        kind=question.kind,
        given=True,
    )
    return passes_all(judge.judge(request))
