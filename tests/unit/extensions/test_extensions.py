"""The key ``extensions``: which instances a run has, what is refused, and what a checkpoint keeps."""

import pytest

from code_a1_recipe.algorithm.hooks import Extension
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import CodeA1Error, SettingsError
from code_a1_recipe.extensions import after_step, extensions_of, restore_states, saved_states

OWN = """
from code_a1_recipe.algorithm.hooks import Extension

class Mine(Extension):
    name = "mine"
    def __init__(self, size=1):
        self.size = size

class Nameless(Extension):
    pass

class Other:
    pass
"""


@pytest.fixture
def own(tmp_path):
    """The value of the key for a class of the user's file."""
    (tmp_path / "own.py").write_text(OWN)

    def choice(name, kwargs="{}"):
        return f"{{path: {tmp_path}/own.py, name: {name}, kwargs: {kwargs}}}"

    return choice


def names(*overrides):
    return [extension.name for extension in extensions_of(read_config("cpu", list(overrides)))]


def test_no_extension_is_on_by_default():
    assert names() == []


def test_shipped_extensions_have_their_keys_and_come_before_the_users(own):
    assert names("hindsight.weight=1.0", "episode.repair_turns=1") == ["hindsight", "repair"]
    assert names("hindsight.weight=1.0", "schedule.test_every=0") == []
    config = read_config("cpu", ["episode.repair_turns=1", f"extensions=[{own('Mine', '{size: 3}')}]"])
    repair, mine = extensions_of(config)
    assert (repair.name, mine.name, mine.size) == ("repair", "mine", 3)


def test_a_relative_path_is_found_from_any_folder_and_the_file_is_told_to_a_run_that_resumes(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    config = read_config("cpu", ["extensions=[{path: own.py, name: Mine}]"])
    assert config.user_files == {"extensions[0].path": tmp_path / "own.py"}


@pytest.mark.parametrize(
    ("name", "kwargs", "words"),
    [
        ("Absent", "{}", "own.py has no subclass 'Absent' of Extension; define `class Absent"),
        ("Other", "{}", "own.py has no subclass 'Other' of Extension"),
        ("Mine", "{length: 1}", "own.py: Mine raises TypeError: .*'length'; `kwargs` holds its keyword arguments"),
        ("Nameless", "{}", "Nameless.name must be a text that no other extension has, got ''"),
    ],
)
def test_an_extension_that_cannot_be_used_is_refused_before_a_start(own, name, kwargs, words):
    with pytest.raises(SettingsError, match=words):
        read_config("cpu", [f"extensions=[{own(name, kwargs)}]"])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("[{path: /none.py, name: Mine}]", r"extensions: /none.py cannot be loaded: FileNotFoundError"),
        ("[{path: pkg://math}]", "extensions.name is missing; give it a value"),
        ("[{path: pkg://math, name: floor, size: 1}]", "unknown key 'extensions.size'"),
        ("mine", "extensions must be a list, got 'mine'"),
        ("[mine]", "extensions must be a block of keys, got 'mine'"),
    ],
)
def test_a_value_that_is_no_list_of_extensions_is_refused(value, words):
    with pytest.raises(SettingsError, match=words):
        read_config("cpu", [f"extensions={value}"])


def test_two_extensions_of_one_name_are_refused(own):
    with pytest.raises(SettingsError, match=r"Mine.name must be a text that no other extension has, got 'mine'"):
        read_config("cpu", [f"extensions=[{own('Mine')}, {own('Mine')}]"])


class Noted(Extension):
    def __init__(self, name, state=None):
        self.name, self.noted = name, state

    def after_step(self, found):
        self.noted = found
        return {f"{self.name}/found": len(found)}

    def state(self):
        return self.noted

    def load_state(self, state):
        self.noted = state


def test_each_learns_from_what_it_kept_itself():
    extensions = (Noted("a"), Noted("b"))
    assert after_step(extensions, [{"a": 1, "b": 2}, {}, {"a": 3}]) == {"a/found": 2, "b/found": 1}
    assert [extension.noted for extension in extensions] == [[1, 3], [2]]


def test_states_come_back_by_name_and_who_has_none_begins_empty():
    saved = saved_states((Noted("a", [1]), Noted("b")))
    assert saved == {"a": [1]}
    first, second = Noted("a"), Noted("new", "empty")
    restore_states((first, second), saved | {"gone": 2})
    assert (first.noted, second.noted) == ([1], "empty")


def test_a_state_that_is_no_json_is_named():
    with pytest.raises(CodeA1Error, match=r"state\(\) of a must return JSON values"):
        saved_states((Noted("a", object()),))
