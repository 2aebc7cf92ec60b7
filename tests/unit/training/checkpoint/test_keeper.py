"""What the keeper saves of a step comes back, policies and dataloader being stand-ins."""

from types import SimpleNamespace

import pytest

from code_a1_recipe.algorithm.mistake_book import MistakeBook
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import CheckpointError
from code_a1_recipe.runs.folder import RunFolder
from code_a1_recipe.training.checkpoint import random_states
from code_a1_recipe.training.checkpoint.folder import EXTENSIONS_NAME
from code_a1_recipe.training.checkpoint.keeper import CheckpointKeeper, TrainState


class Keepers:
    """Each is the keeper of a new start of one run."""

    def __init__(self, folder):
        self.config = read_config("cpu", [f"run_dir={folder}"])
        self.run_folder, self.loaded = RunFolder(folder), []
        self.dataloader = SimpleNamespace(load_state_dict=self.loaded.append)
        self.identity = {}

    def make(self):
        return CheckpointKeeper(self.config, self.run_folder, identity=self.identity)

    def save(self):
        states = random_states.capture()
        finished = TrainState(step=2, data="order", random_states=states, extensions={"hindsight": ["a lesson"]})
        return self.make().save(finished, policies={}, book=MistakeBook())

    def resume(self):
        return self.make().resume(policies={}, dataloader=self.dataloader)


@pytest.fixture
def keepers(tmp_path):
    return Keepers(tmp_path)


def test_a_finished_step_comes_back(keepers):
    keepers.save()
    finished, book = keepers.resume()
    assert (finished.step, finished.data, finished.extensions) == (2, "order", {"hindsight": ["a lesson"]})
    assert (book, keepers.loaded) == (MistakeBook(), ["order"])


@pytest.mark.parametrize(("text", "words"), [("[", "is damaged: "), (None, "extensions.json is missing; resume from")])
def test_lost_states_of_extensions_are_an_error(keepers, text, words):
    file = keepers.save() / EXTENSIONS_NAME
    if text is None:
        file.unlink()
    else:
        file.write_text(text.ljust(file.stat().st_size))
    with pytest.raises(CheckpointError, match=words):
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


def test_a_checkpoint_of_an_earlier_format_names_the_release_that_reads_it(keepers):
    keepers.identity = {"format": 2}
    (keepers.save() / EXTENSIONS_NAME).unlink()
    keepers.identity = {"format": 3}
    words = r"\(format: saved 2, now 3\); resume it with the release that saved it \(python .*, or start another run"
    with pytest.raises(CheckpointError, match=words):
        keepers.resume()
