"""A run with a reward function and a prompt template of the user's, both outside the package and named by key."""

import shutil
from collections import Counter
from itertools import groupby

import pytest

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def run(train, repository, tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    shutil.copy(repository / "examples" / "own_reward" / "crowding.py", folder / "mine.py")
    shipped = repository / "code_a1_recipe" / "algorithm" / "prompt_templates" / "micro_test.txt"
    shutil.copy(shipped, folder / "mine.txt")
    return train(
        folder / "run",
        f"rewards.test.path={folder / 'mine.py'}",
        "rewards.test.name=crowding",
        "rewards.test.kwargs={power: 0.5}",
        "rewards.alpha=0.25",
        f"prompts.test={folder / 'mine.txt'}",
        "trainer.total_training_steps=1",
        "trainer.save_freq=-1",
        "trainer.test_freq=-1",
        "trainer.val_before_train=false",
        "data.val_max_samples=8",
    )


def test_both_policies_train_on_the_users_reward(run):
    assert run.returncode == 0, run.output[-3000:]
    (row,) = run.metrics
    assert "code/actor/grad_norm" in row
    assert "test/actor/grad_norm" in row


def test_the_suites_have_the_rewards_of_the_users_function(run):
    records = [record for record in run.rollouts(1) if record.verdict is not None and record.suites]
    by_question = {question: list(group) for question, group in groupby(records, key=lambda one: one.question)}
    assert by_question
    for programs in by_question.values():
        written = [(program, suite) for program in programs for suite in program.suites]
        times = Counter(case.key for _, suite in written for case in suite.verdict.cases)
        for program, suite in written:
            failed = [case for case in suite.verdict.cases[:1] if case.outcome.failed]  # K of the preset is 1
            adv = sum(times[case.key] ** -0.5 for case in failed)
            assert suite.reward.parts["adversarial"] == pytest.approx(0.75 * adv * program.verdict.loaded)
    assert any(suite.reward.parts["adversarial"] > 0 for one in records for suite in one.suites)
