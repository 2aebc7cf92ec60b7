import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from code_a1_recipe.errors import CodeA1Error
from code_a1_recipe.micro_world import assets as cache, builder, ensure_assets
from code_a1_recipe.micro_world.settings import MicroSettings, ModelSettings

TINY = ModelSettings(hidden_size=32, num_layers=1, intermediate_size=32, num_steps=2, batch_size=4)
TINY_SETTINGS = MicroSettings(num_train=40, num_heldout=5, code=TINY, test=TINY, both=TINY)


@pytest.fixture
def fake_build(monkeypatch):
    """Replace the real build by one that writes the files at once, and return the mock that counts its calls."""

    def install(*, seconds=0.0, fails=False):
        def build(settings, folder):
            for role in settings.roles:
                (folder / role).mkdir()
                (folder / role / "config.json").write_text(str(settings.seed))
            time.sleep(seconds)
            if fails:
                raise CodeA1Error("the warm start failed")
            (folder / "train.jsonl").touch()

        monkeypatch.setattr(cache, "build_assets", Mock(side_effect=build))
        return cache.build_assets

    return install


def folders(cache_dir):
    return sorted(path.name for path in cache_dir.iterdir() if path.is_dir())


def test_assets_are_built_once_for_equal_settings(tmp_path, fake_build):
    build = fake_build()
    first = ensure_assets(tmp_path)
    assert ensure_assets(tmp_path, settings=MicroSettings()) == first
    assert build.call_count == 1
    assert first.code_model != first.test_model
    assert first.train_file.is_file()


def test_other_settings_get_other_assets(tmp_path, fake_build):
    build = fake_build()
    for seed in (1, 2):
        assets = ensure_assets(tmp_path, settings=MicroSettings(seed=seed))
        assert (assets.code_model / "config.json").read_text() == str(seed)
    assert build.call_count == 2


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("settings.FORMAT_VERSION", 0),
        ("demonstrations.render", lambda *_, **__: []),  # another prompt
        ("world._CONSTANTS", range(5)),
        ("world._GOLDEN_TESTS_PER_QUESTION", 3),
    ],
)
def test_changed_code_gets_other_assets(tmp_path, fake_build, monkeypatch, name, changed):
    fake_build()
    before = ensure_assets(tmp_path)
    monkeypatch.setattr(f"code_a1_recipe.micro_world.{name}", changed)
    assert ensure_assets(tmp_path).code_model != before.code_model


def test_a_failed_build_leaves_nothing_behind(tmp_path, fake_build):
    fake_build(fails=True)
    with pytest.raises(CodeA1Error, match="the warm start failed"):
        ensure_assets(tmp_path)
    assert folders(tmp_path) == []
    build = fake_build()
    ensure_assets(tmp_path)
    assert build.call_count == 1


def test_what_a_killed_build_left_is_removed_and_never_used(tmp_path, fake_build):
    fake_build()
    finished = ensure_assets(tmp_path).code_model.parent
    name = finished.name
    finished.rename(tmp_path / f".{name}.building")
    build = fake_build()
    ensure_assets(tmp_path)
    assert build.call_count == 1
    assert folders(tmp_path) == [name]


def test_of_two_that_start_at_once_one_builds(tmp_path, fake_build):
    build = fake_build(seconds=0.3)
    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(ensure_assets, [tmp_path] * 2)
    assert build.call_count == 1
    assert one == other


def test_a_cache_that_cannot_be_written_names_folder_and_cure(tmp_path, fake_build):
    fake_build()
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CodeA1Error, match=r"cannot be kept in .*/file/cache: .*Hint: set CODE_A1_CACHE to"):
        ensure_assets(tmp_path / "file" / "cache")


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("CODE_A1_CACHE", str(tmp_path / "own"))
    assert cache.default_cache_dir() == tmp_path / "own"
    monkeypatch.delenv("CODE_A1_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.default_cache_dir() == tmp_path / ".cache" / "code-a1"


def test_a_failed_training_process_shows_the_end_of_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "_IMPORT_ROOT", tmp_path)  # nothing to import there
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr(builder.sys, "executable", "/usr/bin/false")
    with pytest.raises(CodeA1Error, match="model ended with status 1; the end of its log"):
        ensure_assets(tmp_path, settings=TINY_SETTINGS)
    assert folders(tmp_path) == []


def test_progress_is_shown_and_the_first_that_fails_ends_the_other(tmp_path, monkeypatch, capsys):
    started = {}

    def start(role, settings, folder, reported):
        (folder / f"{role}.log").write_text(f"{role} went wrong")
        # One write a line, as training reports: an unbuffered print makes two, between which the other may write.
        script = "import sys; sys.stdout.write('20\\n'); sys.exit(3)"
        if role == "test":
            script = (
                "import sys, time\nfor n in range(200): sys.stdout.write('1\\n'); sys.stdout.flush(); time.sleep(0.05)"
            )
        started[role] = subprocess.Popen([sys.executable, "-c", script], stdout=reported)
        return started[role]

    monkeypatch.setattr(builder, "_start", start)
    with pytest.raises(CodeA1Error, match="tiny code model ended with status 3; the end of its log:\ncode went wrong"):
        ensure_assets(tmp_path, settings=TINY_SETTINGS)
    assert started["test"].returncode == -signal.SIGKILL
    assert "training tiny models" in capsys.readouterr().err
