"""A checkpoint is whole or not there; a resume finds the right one or says why not."""

from types import SimpleNamespace

import pytest

from code_a1_recipe.errors import CheckpointError, DiskFullError
from code_a1_recipe.training.checkpoint.folder import (
    TRACKER_NAME,
    announce,
    best_checkpoint,
    find_checkpoint,
    keep_newest,
    note_best,
    saved_steps,
    step_folder,
    write_state,
    writing,
)


def save(root, *steps, **state):
    for step in steps:
        with writing(root, step) as folder:
            write_state(folder, {"step": step, **state})


def found(root, mode, path=None):
    return find_checkpoint(SimpleNamespace(default_local_dir=str(root), resume_mode=mode, resume_from_path=path))


def newest(root):
    return found(root, "auto")


def named(root, path):
    return found(root, "resume_path", str(path))


def break_off(root, step):
    with writing(root, step) as folder:
        (folder / "half").write_text("x")
        raise OSError("disk full")


def test_a_saved_step_is_found_with_its_state(tmp_path):
    save(tmp_path, 3, 6, seed=1)
    checkpoint = newest(tmp_path)
    assert (checkpoint.step, checkpoint.folder) == (6, step_folder(tmp_path, 6))
    assert checkpoint.state() == {"step": 6, "seed": 1, "files": {}}


def test_a_save_that_breaks_off_leaves_the_one_before(tmp_path):
    save(tmp_path, 3)
    with pytest.raises(OSError, match="disk full"):
        break_off(tmp_path, 6)
    assert saved_steps(tmp_path) == [3]
    assert newest(tmp_path).step == 3
    assert not list(tmp_path.glob("*.partial"))
    (tmp_path / "global_step_1.partial").mkdir()  # a killed start has left it
    save(tmp_path, 6)
    assert not list(tmp_path.glob("*.partial"))
    assert not (step_folder(tmp_path, 6) / "half").exists()


def test_a_kill_between_renaming_and_announcing_leaves_the_one_before(tmp_path):
    save(tmp_path, 3, 6)
    (tmp_path / TRACKER_NAME).write_text("3")
    assert newest(tmp_path).step == 3
    save(tmp_path, 6, again=True)
    assert newest(tmp_path).state()["again"] is True


def test_without_room_nothing_is_written(tmp_path, monkeypatch):
    save(tmp_path, 3, text="x" * 1_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=(64 << 20) + 1_000_000))
    with pytest.raises(DiskFullError, match=r"a checkpoint needs 65 MiB in .*, 64 MiB are free; make room"):
        save(tmp_path, 6)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["global_step_3", TRACKER_NAME]


def test_the_best_is_kept_beside_the_newest(tmp_path):
    for step, value in ((2, 0.1), (4, 0.5), (6, 0.3), (8, 0.5), (10, 0.2)):
        save(tmp_path, step)
        note_best(tmp_path, step=step, metric="val/x", value=value)
        keep_newest(tmp_path, 1)
    assert saved_steps(tmp_path) == [4, 10]
    assert best_checkpoint(tmp_path) == {"step": 4, "metric": "val/x", "value": 0.5}
    assert not note_best(tmp_path, step=11, metric="val/x", value=9.0)  # never saved


def test_going_on_from_an_earlier_step_gives_up_the_later_ones(tmp_path):
    save(tmp_path, 2, 4, 6)
    save(tmp_path, 3)  # resumed at 2
    keep_newest(tmp_path, 2)
    assert saved_steps(tmp_path) == [2, 3]


def test_a_run_or_its_checkpoints_stand_for_their_newest_step(tmp_path):
    root = tmp_path / "run" / "checkpoints"
    save(root, 2, 4)
    assert [named(tmp_path / "elsewhere", path).step for path in (root, root.parent)] == [4, 4]


def test_changed_settings_are_told_apart_from_places(tmp_path):
    save(tmp_path, 2, config={"run_dir": "a", "trainer": {"test_freq": 5}, "rewards": {"alpha": 0.5}})
    checkpoint = newest(tmp_path)
    now = {"run_dir": "b", "trainer": {"test_freq": 5}, "rewards": {"alpha": 0.25}}
    assert checkpoint.changed_settings(now) == ["rewards.alpha: 0.5 -> 0.25"]


def test_only_the_newest_are_kept(tmp_path):
    save(tmp_path, 2, 4, 10)
    keep_newest(tmp_path, None)
    assert saved_steps(tmp_path) == [2, 4, 10]
    keep_newest(tmp_path, 2)
    assert saved_steps(tmp_path) == [4, 10]


def test_the_modes_of_resuming(tmp_path):
    assert newest(tmp_path) is None
    save(tmp_path, 2, 4)
    assert found(tmp_path, "disable") is None
    assert named(tmp_path, step_folder(tmp_path, 2)).step == 2


@pytest.mark.parametrize("path", ["elsewhere", "global_step_99"])
def test_a_checkpoint_that_is_not_there_is_an_error(tmp_path, path):
    with pytest.raises(CheckpointError, match=f"{path}: expected an existing folder named global_step_<n>"):
        named(tmp_path, path)


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_state_is_named(tmp_path, text):
    save(tmp_path, 2)
    (step_folder(tmp_path, 2) / "state.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"state\.json is .*damaged"):
        newest(tmp_path).state()


def test_the_same_command_with_a_path_goes_on_with_the_run_that_began_there(tmp_path):
    other, own = tmp_path / "other" / "checkpoints", tmp_path / "own" / "checkpoints"
    save(other, 2)
    start = step_folder(other, 2)
    assert named(own, start).folder == step_folder(other, 2)
    save(own, 3, origin=str(start))
    assert named(own, start).folder == step_folder(own, 3)
    save(other, 4)
    assert named(own, tmp_path / "other").folder == step_folder(own, 3)
    with pytest.raises(CheckpointError, match="of a run that did not start from"):
        named(own, step_folder(other, 4))
    save(tmp_path / "third" / "checkpoints", 2)
    with pytest.raises(CheckpointError, match="of a run that did not start from"):
        named(own, tmp_path / "third")


def test_what_was_given_up_is_there_until_the_next_save(tmp_path):
    save(tmp_path, 2, 4, 6)
    assert announce(tmp_path, 4) == ["given_up_6"]
    assert saved_steps(tmp_path) == [2, 4]
    assert newest(tmp_path).step == 4
    assert (tmp_path / "given_up_6" / "state.json").is_file()
    (tmp_path / "given_up_6").rename(step_folder(tmp_path, 6))  # the path was a mistake
    assert named(tmp_path, step_folder(tmp_path, 6)).step == 6
    announce(tmp_path, 2)
    save(tmp_path, 3)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["global_step_2", "global_step_3"]


def test_the_best_of_a_future_that_was_given_up_is_none_of_what_comes_instead(tmp_path):
    save(tmp_path, 2, 4)
    note_best(tmp_path, step=4, metric="x", value=0.9)
    announce(tmp_path, 2)
    save(tmp_path, 4)
    assert best_checkpoint(tmp_path) is None


def test_a_run_behind_a_symbolic_link_is_the_same_run(tmp_path):
    save(tmp_path / "run" / "checkpoints", 2)
    (tmp_path / "link").symlink_to(tmp_path / "run")
    through = tmp_path / "link" / "checkpoints"
    for mode, path in (("auto", None), ("resume_path", str(step_folder(through, 2)))):
        assert found(through, mode, path).folder == step_folder((tmp_path / "run" / "checkpoints").resolve(), 2)


def test_a_first_checkpoint_that_was_not_announced_is_found(tmp_path):
    save(tmp_path, 2)
    (tmp_path / TRACKER_NAME).unlink()
    assert newest(tmp_path).step == 2


@pytest.mark.parametrize("text", ["{}", "[]", '{"step": null}', "nonsense", '{"step": 2, "metric": "x"}'])
def test_a_damaged_note_of_the_best_keeps_nobody_from_saving(tmp_path, text):
    save(tmp_path, 2)
    (tmp_path / "best.json").write_text(text)
    keep_newest(tmp_path, 1)
    assert best_checkpoint(tmp_path) is None
    assert note_best(tmp_path, step=2, metric="x", value=0.5)
    assert not note_best(tmp_path, step=2, metric="x", value=float("nan"))


@pytest.mark.parametrize("text", [b"two", b"\xff", "²".encode(), b""])
def test_a_damaged_tracker_is_named(tmp_path, text):
    save(tmp_path, 2)
    (tmp_path / TRACKER_NAME).write_bytes(text)
    with pytest.raises(CheckpointError, match=r"must hold a step number, got .*; known steps: \[2\]"):
        newest(tmp_path)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.unlink(), "model_rank_0.pt is missing; resume from another step"),
        (lambda path: path.write_bytes(b"w"), "model_rank_0.pt has 1 bytes, expected 7; resume from"),
    ],
)
def test_a_checkpoint_with_a_cut_off_file_is_refused(tmp_path, spoil, words):
    with writing(tmp_path, 2) as folder:
        weights = folder / "code" / "actor" / "model_rank_0.pt"
        weights.parent.mkdir(parents=True)
        weights.write_bytes(b"weights")
        for name in ("mistake_book.json", "data.pt", "random_states.pt", "metrics.json"):
            (folder / name).write_text("{}")
        write_state(folder, {"step": 2})
    checkpoint = newest(tmp_path)
    checkpoint.check_whole()
    spoil(checkpoint.folder / "code" / "actor" / "model_rank_0.pt")
    with pytest.raises(CheckpointError, match=words):
        checkpoint.check_whole()


def test_a_checkpoint_that_lacks_a_file_is_refused_by_its_name(tmp_path):
    save(tmp_path, 2)
    with pytest.raises(CheckpointError, match=r"mistake_book.json is missing; resume from another step"):
        newest(tmp_path).check_whole()
