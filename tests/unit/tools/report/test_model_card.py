"""The model card of a policy: every figure is the run's own, and what is not known is said to be."""

import shutil

import pytest
from huggingface_hub import ModelCard

from code_a1_recipe.files import file_fingerprint
from code_a1_recipe.tools.report.model_card import model_card
from code_a1_recipe.training.checkpoint.export import find_step
from code_a1_recipe.training.checkpoint.folder import step_folder, write_state, writing

COMMAND = "code-a1 cpu arm=frozen arm=static data.seed=7\n# python 3.11, verl 0.9.1, commit abc-dirty\n"
STATE = {
    "versions": "python 3.11, verl 0.9.1, commit abc-dirty",
    "config": {
        "data": {"seed": 7},
        "policies": {"code": {"model": {"path": "Qwen/Coder"}}, "test": {"model": {"path": "/models/tester"}}},
    },
    "identity": {"code_model": "Qwen/Coder", "test_model": "0123456789abcdef", "questions": "6 questions, digest d1"},
}


@pytest.fixture
def run(run_folder):
    """A run that was saved at both of its steps; it was validated at steps 0 and 2."""
    for step in (1, 2):
        with writing(run_folder / "checkpoints", step) as folder:
            write_state(folder, {"step": step, **STATE})
    (run_folder / "command.txt").write_text(COMMAND)
    return run_folder


def card_at(run, policy="code", step="latest"):
    """Read back as the library reads it from a file."""
    return ModelCard(model_card(find_step(run, step), policy).decode())


def squeezed(card):
    """Without the spaces that align the columns of tables."""
    return " ".join(card.text.split())


def test_the_front_matter_is_in_the_hubs_form(run):
    data = card_at(run).data
    assert (data.library_name, data.pipeline_tag, data.base_model) == ("transformers", "text-generation", "Qwen/Coder")
    assert data.tags == ["code-a1", "code-llm", "reinforcement-learning", "verl"]


def test_the_figures_are_those_of_the_run_with_their_intervals(run):
    text = squeezed(card_at(run))
    # Student's t over the differences of 6 questions, of which 3 came to be solved.
    assert "held-out questions (6), step 0 -> step 2, 95 % interval of the paired difference" in text
    assert "Code LLM, pass@1 at temperature 1 0.333 -> 0.833 +0.500 ± 0.575" in text
    assert "Test LLM, kill rate" not in text


def test_a_test_llm_has_its_own_measures_and_its_bases_folder_by_name(run):
    card = card_at(run, "test")
    assert card.data.base_model == "tester"
    text = squeezed(card)
    for measure in ("validity", "kill rate of suites", "kills per valid case", "suites that detect the bug"):
        assert f"Test LLM, {measure} " in text
    assert "Code LLM, pass@1" not in text
    assert "| Base model | tester, fingerprint 0123456789abcdef |" in text


def test_an_earlier_step_has_no_figures_of_later_ones(run):
    text = squeezed(card_at(run, step="1"))
    assert "There are no figures: the run did not validate this policy twice up to this step." in text


def test_weights_that_are_newer_than_the_last_validation_are_named(run):
    with writing(run / "checkpoints", 3) as folder:
        write_state(folder, {"step": 3, **STATE})
    text = squeezed(card_at(run))
    assert "**These weights are of step 3**; the last validation before was at step 2." in text
    assert "These weights" not in squeezed(card_at(run, step="2"))


def test_the_card_says_how_it_was_made_and_on_what(run):
    text = squeezed(card_at(run))
    for row in ("| Seed | 7 |", "| Step | 2 |", "| Training questions | 6 questions, digest d1 |"):
        assert row in text
    assert "commit abc-dirty |" in text
    assert "code-a1 cpu arm=frozen arm=static data.seed=7" in text
    fingerprint = file_fingerprint(run / "questions.jsonl").split()[1]
    assert f"| questions.jsonl | training | {fingerprint} |" in text
    assert f"| questions.jsonl | held out | {fingerprint} |" in text
    assert "arXiv:2603.15611" in text


def test_records_that_are_gone_or_damaged_keep_nobody_from_the_weights(run, tmp_path):
    (run / "questions.jsonl").unlink()
    (run / "command.txt").unlink()
    text = squeezed(card_at(run))
    assert "| questions.jsonl | training | the file does not exist any more |" in text
    assert "(not recorded)" in text
    (run / "rollouts" / "val_000002.jsonl").write_text('{"v": 1}\n')
    text = squeezed(card_at(run))
    assert "There are no figures: its records cannot be read (" in text
    elsewhere = tmp_path / "else" / "global_step_2"
    shutil.copytree(step_folder(run / "checkpoints", 2), elsewhere)
    assert "There are no figures: the checkpoint lies outside of its run's folder." in squeezed(card_at(elsewhere))
