"""The models that the package ships are those that its code makes."""

from unittest.mock import Mock

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from code_a1_recipe.algorithm.prompts import render
from code_a1_recipe.data.reader import iter_rows
from code_a1_recipe.micro_world import MicroSettings, builder, ensure_assets
from code_a1_recipe.micro_world.recorded_programs import _sample
from sandbox import JudgeRequest
from sandbox.text import passes_all


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(builder, "_train_all", Mock(side_effect=AssertionError("models are trained")))
        return ensure_assets(tmp_path / "shipped")


def test_the_shipped_models_are_those_of_the_default_settings():
    names = [folder.name for folder in builder.SHIPPED.iterdir()]
    assert names == [MicroSettings().digest()], "make the models anew: python tests/ship_models.py"
    assert sum(file.stat().st_size for file in builder.SHIPPED.rglob("*")) < 5_000_000


def test_shipped_assets_are_complete_and_loadable(shipped):
    rows = list(iter_rows(shipped.val_file))
    assert (len(list(iter_rows(shipped.train_file))), len(rows)) == (3000, 200)
    assert sum(len(row["buggy_programs"]) == 2 for row in rows) > 100  # recorded programs of the shipped Code LLM
    sizes = set()
    for folder in (shipped.code_model, shipped.test_model):
        model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        assert model.config.vocab_size == len(tokenizer) == tokenizer.vocab_size
        assert model.config.eos_token_id == tokenizer.eos_token_id
        assert model.config.max_position_embeddings >= 512
        assert model.config.head_dim == 32
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}
        sizes.add(len(tokenizer))
    assert len(sizes) == 2


def right_shares(assets, judge_all):
    """On the held-out questions: the share of right programs and the share of right asserts."""
    questions = MicroSettings().split().heldout
    programs = _sample(assets.code_model, [render("micro_code", prompt=one.prompt) for one in questions])
    shown = [render("micro_test", prompt=one.prompt, candidate=one.mutant, num_cases=1) for one in questions]
    asserts = _sample(assets.test_model, shown)

    def ask(question, candidate, suites):
        of_question = {"question_id": question.id, "reference": question.reference, "entry_points": ("f",)}
        return JudgeRequest(candidate=candidate, suites=suites, given=True, **of_question)

    hidden = [
        ask(one, text, (one.hidden_tests,)) for one, texts in zip(questions, programs, strict=True) for text in texts
    ]
    written = [
        ask(one, one.mutant, tuple((text,) for text in texts)) for one, texts in zip(questions, asserts, strict=True)
    ]
    suites = [suite for verdict in judge_all(written) for suite in verdict.suites]
    solved = [passes_all(verdict) for verdict in judge_all(hidden)]
    valid = [any(case.expected_correct for case in suite.cases) for suite in suites]
    return sum(solved) / len(solved), sum(valid) / len(valid)


@pytest.mark.nightly
def test_models_made_anew_do_what_the_shipped_ones_do(shipped, tmp_path, monkeypatch, judge_all):
    monkeypatch.setattr(builder, "SHIPPED", tmp_path)
    made = ensure_assets(tmp_path / "made")
    # Processors round differently, so models of another processor answer some questions otherwise.
    assert right_shares(made, judge_all) == pytest.approx(right_shares(shipped, judge_all), abs=0.1)
