"""The model card of a policy: every figure is the run's own, and what is not known is said to be."""

import shutil

import pytest
from huggingface_hub import ModelCard

from code_a1_recipe.analysis.model_card import model_card
from code_a1_recipe.files import file_fingerprint
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
    assert data.license is None


def test_the_figures_are_those_of_the_run_with_their_intervals(run):
    card = card_at(run)
    figures = {one.metric_type: (one.metric_value, one.dataset_name) for one in card.data.eval_results}
    assert figures == {
        "pass@1": (0.8333, "questions.jsonl, 6 questions"),
        "greedy": (1.0, "questions.jsonl, 6 questions"),
    }
    low, high = card.data.eval_results[0].metric_args["interval_95"]
    assert (low + high) / 2 == pytest.approx(5 / 6, abs=1e-4)
    text = squeezed(card)
    # Student's t over 6 questions, 5 solved: 2.5706 * 0.4082 / sqrt(6)
    assert "| Measure | Step 0 | Step 2 | Difference |" in text
    assert "| Code LLM, pass@1 at temperature 1 | 0.333 ± 0.542 | 0.833 ± 0.428 | +0.500 ± 0.575 |" in text
    assert "over the 6 held-out questions" in text
    assert "Test LLM, kill rate" not in text


def test_a_test_llm_has_its_own_measures_and_its_bases_folder_by_name(run):
    card = card_at(run, "test")
    assert card.data.base_model == "tester"
    assert {one.metric_type for one in card.data.eval_results} == {"valid", "kill", "kill_per_case", "detection_rate"}
    assert "| Base model | tester, fingerprint 0123456789abcdef |" in squeezed(card)


def test_an_earlier_step_has_no_figures_of_later_ones(run):
    card = card_at(run, step="1")
    assert card.data.eval_results is None
    assert "model_name" not in card.data.to_dict()
    assert "There are none: the run did not validate this policy twice up to this step." in squeezed(card)


def test_weights_that_are_newer_than_the_last_validation_are_named(run):
    with writing(run / "checkpoints", 3) as folder:
        write_state(folder, {"step": 3, **STATE})
    text = squeezed(card_at(run))
    assert "**These weights are of step 3**; the last validation up to it was at step 2." in text
    assert "These weights" not in squeezed(card_at(run, step="2"))


def test_the_card_says_how_it_was_made_and_on_what(run):
    text = squeezed(card_at(run))
    for row in ("| Arm | static |", "| Seed | 7 |", "| Step | 2 |", "| Training questions | 6 questions, digest d1 |"):
        assert row in text
    assert "commit abc-dirty |" in text
    assert "code-a1 cpu arm=frozen arm=static data.seed=7" in text
    fingerprint = file_fingerprint(run / "questions.jsonl").split()[1]
    assert f"| questions.jsonl | training | 6 | {fingerprint} |" in text
    assert f"| questions.jsonl | held out | 6 | {fingerprint} |" in text
    assert "arXiv:2603.15611" in text


def test_a_data_card_beside_the_questions_is_cited(run):
    card = "---\nlicense: mit\n---\n\n# questions.jsonl\n\n6 of 9 rows, each with a reference. Made by\n\n```bash\n"
    (run / "questions.jsonl.card.md").write_text(card)
    assert "| 6 of 9 rows, each with a reference. |" in squeezed(card_at(run))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nlicense: apache-2.0\n---\n", "apache-2.0"),
        ("# no front matter\n", None),
        ("---\nlicense: [a, b]\n---\n", None),
        ("---\nlicense: {\n---\n", None),
    ],
)
def test_the_licence_is_that_of_the_base_models_folder_where_it_states_one(run, tmp_path, text, expected):
    base = tmp_path / "base"
    base.mkdir()
    (base / "README.md").write_text(text)
    state = STATE | {"config": {"policies": {"code": {"model": {"path": str(base)}}}}}
    write_state(step_folder(run / "checkpoints", 2), {"step": 2, **state})
    assert card_at(run).data.license == expected


def test_records_that_are_gone_or_damaged_keep_nobody_from_the_weights(run, tmp_path):
    (run / "questions.jsonl").unlink()
    (run / "command.txt").unlink()
    text = squeezed(card_at(run))
    assert "| questions.jsonl | training | ? | not there any more |" in text
    assert "| Arm | not recorded |" in text
    (run / "rollouts" / "val_000002.jsonl").write_text('{"v": 1}\n')
    text = squeezed(card_at(run))
    assert "There are none: its records cannot be read (" in text
    elsewhere = tmp_path / "else" / "global_step_2"
    shutil.copytree(step_folder(run / "checkpoints", 2), elsewhere)
    assert "There are none: the checkpoint lies outside of its run's folder." in squeezed(card_at(elsewhere))
