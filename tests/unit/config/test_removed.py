"""Keys of earlier releases: who still sets one reads what takes its place, and old records are still read."""

import pytest
import yaml

from code_a1_recipe.cli.app import main
from code_a1_recipe.config.compose import read_config, recorded_config
from code_a1_recipe.config.removed import REMOVED_KEYS
from code_a1_recipe.errors import SettingsError


@pytest.mark.parametrize("key", sorted(REMOVED_KEYS))
@pytest.mark.parametrize("value", ["true", "null"])
def test_a_removed_key_is_refused_with_what_takes_its_place(key, value):
    with pytest.raises(SettingsError) as refused:
        read_config("cpu", [f"{key}={value}"])
    (message,) = refused.value.args
    assert message.startswith(f"{key}=")
    assert message.endswith(f"was removed: {REMOVED_KEYS[key]}")


def test_the_command_ends_with_status_2_before_work_starts(tmp_path, capsys):
    file = tmp_path / "mine.yaml"
    file.write_text("defaults: [cpu, _self_]\nepisode: {share_suites: false}\n")
    assert main(["train", str(file), f"run_dir={tmp_path / 'run'}"]) == 2
    assert "episode.share_suites=False was removed: each program has suites of its own" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_the_record_of_an_earlier_release_is_read_without_them(tmp_path):
    recorded = yaml.safe_load(read_config("cpu", [f"run_dir={tmp_path}"]).to_yaml())
    recorded["mistake_book"]["sampler"] = "cells"
    file = tmp_path / "resolved_config.yaml"
    file.write_text(yaml.safe_dump(recorded))
    assert recorded_config(file).mistake_book.replay_limit == 8
