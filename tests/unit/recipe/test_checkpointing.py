"""A checkpoint is whole or not there; a resume finds the right one or says why not."""

import pytest

from code_a1_recipe.checkpointing import (
    CheckpointError,
    find_checkpoint,
    keep_newest,
    saved_steps,
    step_folder,
    write_state,
    writing,
)


def save(root, step, **state):
    with writing(root, step) as folder:
        write_state(folder, {"step": step, **state})


def break_off(root, step):
    with writing(root, step) as folder:
        (folder / "half").write_text("x")
        raise OSError("disk full")


def test_a_saved_step_is_found_with_its_state(tmp_path):
    save(tmp_path, 3, seed=1)
    save(tmp_path, 6, seed=1)
    checkpoint = find_checkpoint(tmp_path, mode="auto", path=None)
    assert (checkpoint.step, checkpoint.folder) == (6, step_folder(tmp_path, 6))
    assert checkpoint.state() == {"step": 6, "seed": 1}


def test_a_save_that_breaks_off_leaves_the_one_before(tmp_path):
    save(tmp_path, 3)
    with pytest.raises(OSError, match="disk full"):
        break_off(tmp_path, 6)
    assert saved_steps(tmp_path) == [3]
    assert find_checkpoint(tmp_path, mode="auto", path=None).step == 3
    save(tmp_path, 6)
    assert not (step_folder(tmp_path, 6) / "half").exists()


def test_only_the_newest_are_kept(tmp_path):
    for step in (2, 4, 10):
        save(tmp_path, step)
    keep_newest(tmp_path, None)
    assert saved_steps(tmp_path) == [2, 4, 10]
    keep_newest(tmp_path, 2)
    assert saved_steps(tmp_path) == [4, 10]


def test_the_modes_of_resuming(tmp_path):
    assert find_checkpoint(tmp_path, mode="auto", path=None) is None
    save(tmp_path, 2)
    save(tmp_path, 4)
    assert find_checkpoint(tmp_path, mode="disable", path=None) is None
    assert find_checkpoint(tmp_path, mode="resume_path", path=str(step_folder(tmp_path, 2))).step == 2


@pytest.mark.parametrize(
    ("mode", "path", "words"),
    [
        ("sometimes", None, "unknown trainer.resume_mode 'sometimes'; known: auto, disable, resume_path"),
        ("resume_path", "elsewhere", "no checkpoint at elsewhere"),
        ("resume_path", "global_step_99", "expected an existing folder named global_step_<n>"),
    ],
)
def test_a_checkpoint_that_is_not_there_is_an_error(tmp_path, mode, path, words):
    with pytest.raises(CheckpointError) as caught:
        find_checkpoint(tmp_path, mode=mode, path=path)
    assert words in str(caught.value)


def test_a_damaged_tracker_or_state_is_named(tmp_path):
    save(tmp_path, 2)
    (step_folder(tmp_path, 2) / "state.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"state\.json is missing or damaged"):
        find_checkpoint(tmp_path, mode="auto", path=None).state()
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("two")
    with pytest.raises(CheckpointError, match="must hold a step number, got 'two'; known steps: \\[2\\]"):
        find_checkpoint(tmp_path, mode="auto", path=None)
