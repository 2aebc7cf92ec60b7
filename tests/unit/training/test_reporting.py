"""What verl's keys ask for beside the run's folder; where a key is verl's, it is compared with what verl does."""

import random
from types import SimpleNamespace

import pytest

pytest.importorskip("verl", reason="verl is not installed: bash run_codea1.sh setup")

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.runs.rollout_record import encode_records
from code_a1_recipe.training.reporting import log_generations, sample_generations

from ..conftest import QUESTIONS, case, record, suite

MICRO = ["run_dir=/tmp/run", "policies.code.model.path=m", "policies.test.model.path=m"]
PROMPTS = {question.id: question.prompt for question in QUESTIONS}


def test_a_sample_is_a_program_with_a_suite_and_what_became_of_both(tmp_path):
    written = record(
        0, solved=False, reward=0.25, response="the program", suites=[suite(case("died"), response="the suite")]
    )
    (tmp_path / "val.jsonl").write_bytes(encode_records([written]))
    assert sample_generations(tmp_path / "val.jsonl", PROMPTS, count=5) == [
        (
            QUESTIONS[0].prompt,
            "## Program: failed 1 of 2 hidden tests\n\nthe program\n\n## Suite: 1 cases broke the program\n\nthe suite",
            0.25,
        )
    ]


def test_outages_and_responses_without_program_or_suite_say_so(tmp_path):
    rows = [
        record(0, outage="gone", reward=None),
        record(0, candidate=1, solved=None, extraction_failure="no code block", source=None),
        record(0, candidate=2, suites=[suite(verdict=None), suite(extraction_failure="none", verdict=None)]),
        record(0, kind="buggy_program"),
    ]
    (tmp_path / "val.jsonl").write_bytes(encode_records(rows))
    heads = sorted(
        [line for line in output.splitlines() if line.startswith("##")]
        for _, output, _ in sample_generations(tmp_path / "val.jsonl", PROMPTS, count=5)
    )
    assert heads == [
        ["## Program: failed 0 of 2 hidden tests", "## Suite: not judged"],
        ["## Program: gone"],
        ["## Program: no code block"],
    ]


def test_the_questions_of_the_table_are_those_that_verl_would_take(tmp_path):
    """verl sorts by the prompt and shuffles with a seed of its own (``PPOTrainer._maybe_log_val_generations``)."""
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    rows = [record(index) for index in range(len(QUESTIONS))]
    random.Random(3).shuffle(rows)  # episodes end in any order
    (tmp_path / "val.jsonl").write_bytes(encode_records(rows))
    tables = []
    trainer = SimpleNamespace(
        config=read_config("cpu", [*MICRO, "trainer.log_val_generations=2", "trainer.logger=wandb"]).for_verl(),
        global_steps=7,
        validation_generations_logger=SimpleNamespace(log=lambda *arguments: tables.append(arguments)),
    )
    log_generations(trainer, tmp_path / "val.jsonl", QUESTIONS)
    PPOTrainer._maybe_log_val_generations(
        trainer, inputs=[PROMPTS[row.question] for row in rows], outputs=[""] * len(rows), scores=[1.0] * len(rows)
    )
    (ours, verls) = tables
    assert [sample[0] for sample in ours[1]] == [sample[0] for sample in verls[1]]
    assert len(ours[1]) == min(2, len(QUESTIONS))
    assert ours[0] == verls[0] == ["wandb"] or ours[0] == verls[0] == "wandb"
    assert ours[2] == verls[2] == 7


def test_no_table_is_made_unless_one_is_asked_for(tmp_path):
    trainer = SimpleNamespace(config=read_config("cpu", MICRO).for_verl())
    log_generations(trainer, tmp_path / "nowhere.jsonl", QUESTIONS)
