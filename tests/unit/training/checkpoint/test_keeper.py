"""What the keeper saves of a step comes back, policies and dataloader being stand-ins."""

import json
from types import SimpleNamespace

import pytest

from code_a1_recipe.algorithm.mistake_book import MistakeBook
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import CheckpointError
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.training.checkpoint import random_states
from code_a1_recipe.training.checkpoint.folder import STATE_NAME
from code_a1_recipe.training.checkpoint.keeper import CheckpointKeeper, TrainState

SCORES = {"q1": 0.1 + 0.2, "q0": 1 / 3}


class Keepers:
    """Each is the keeper of a new start of one run."""

    def __init__(self, folder):
        self.config = read_config("cpu", [f"run_dir={folder}", "curriculum.name=variance"])
        self.run_folder, self.loaded = RunFolder(folder), []
        self.dataloader = SimpleNamespace(load_state_dict=self.loaded.append)
        self.identity = {}

    def make(self):
        return CheckpointKeeper(self.config, self.run_folder, identity=self.identity)

    def save(self):
        finished = TrainState(step=2, data="order", curriculum=SCORES, random_states=random_states.capture())
        return self.make().save(finished, policies={}, book=MistakeBook())

    def resume(self):
        return self.make().resume(policies={}, dataloader=self.dataloader)

    def change_state(self, folder, change):
        path = folder / STATE_NAME
        state = json.loads(path.read_text())
        change(state)
        path.write_text(json.dumps(state))


@pytest.fixture
def keepers(tmp_path):
    return Keepers(tmp_path)


def test_a_finished_step_comes_back_with_the_scores_of_its_curriculum(keepers):
    keepers.save()
    finished, book = keepers.resume()
    assert (finished.step, finished.data) == (2, "order")
    assert finished.curriculum == SCORES  # to the last digit
    assert (book, keepers.loaded) == (MistakeBook(), ["order"])


def test_a_checkpoint_from_before_there_was_a_curriculum_has_no_scores(keepers):
    folder = keepers.save()
    keepers.change_state(folder, lambda state: state.pop("curriculum"))
    finished, _ = keepers.resume()
    assert finished.curriculum == {}


def test_scores_that_are_none_are_a_damaged_checkpoint(keepers):
    folder = keepers.save()
    keepers.change_state(folder, lambda state: state.update(curriculum=3))
    with pytest.raises(CheckpointError, match="is damaged"):
        keepers.resume()


def test_other_questions_are_resumed_on_where_that_is_allowed(keepers):
    """Policies, book and counters go on; the order and the position are another file's."""
    keepers.identity = {"questions": "a", "train_batch_size": 8, "seed": 1}
    keepers.save()
    keepers.identity |= {"questions": "b", "train_batch_size": 2}
    with pytest.raises(
        CheckpointError, match=r"does not fit this run \(questions: saved 'a', now 'b'; train_batch_size"
    ):
        keepers.resume()
    keepers.config = read_config("cpu", [f"run_dir={keepers.run_folder.root}", "checkpoint.allow_new_questions=true"])
    finished, _ = keepers.resume()
    assert (finished.step, keepers.loaded) == (2, [])
    keepers.identity |= {"seed": 2}
    with pytest.raises(CheckpointError, match="seed: saved 1, now 2"):
        keepers.resume()
