"""The key ``extensions``: which instances a run has, what is refused, and what a checkpoint keeps."""

import math
from dataclasses import replace

import pytest

from code_a1_recipe.algorithm.episode_types import EpisodeTask
from code_a1_recipe.algorithm.hooks import Extension, JudgedQuestion
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.errors import CodeA1Error, SettingsError
from code_a1_recipe.extensions import after_step, extensions_of
from code_a1_recipe.extensions.states import restore_states, saved_states

OWN = """
from code_a1_recipe.algorithm.episode_types import EpisodeTask
from code_a1_recipe.algorithm.hooks import Extension

class Mine(Extension):
    name = "mine"
    def __init__(self, size=1):
        self.size = size

class Nameless(Extension):
    pass

class Numbered(Extension):
    name = 3

class Misspelt(Extension):
    name = "misspelt"
    def before_episod(self, task, book):
        return task
    def _after_stepp(self):
        pass
    def helper(self):
        pass
    async def after_step(self, found):
        return {}

class Short(Extension):
    name = "short"
    def before_episode(self, task):
        return task

class Async(Extension):
    name = "waits"
    async def after_verdicts(self, work):
        return None

class Lossy(Extension):
    name = "lossy"
    def state(self):
        return {1: (2, 3)}

class Failing(Extension):
    name = "failing"
    result = None
    def called(self, *_):
        if self.result is None:
            raise KeyError("mine")
        return self.result
    before_episode = lambda self, task, book: self.called()
    after_step = lambda self, found: self.called()
    metrics = lambda self, episode: self.called()
    extra_groups = lambda self, episode: self.called()
    imitated = lambda self, task: self.called()
    needs_all_cases = lambda self, task: self.called()
    load_state = lambda self, state: self.called()
    after_verdicts = lambda self, work: self.called()

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
    assert names("hindsight.weight=1.0") == ["hindsight"]
    assert names("hindsight.weight=1.0", "schedule.test_every=0") == []
    config = read_config("cpu", ["hindsight.weight=1.0", f"extensions=[{own('Mine', '{size: 3}')}]"])
    hindsight, mine = extensions_of(config)
    assert (hindsight.name, mine.name, mine.own.size) == ("hindsight", "mine", 3)


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
        ("Mine", "{length: 1}", "own.py: Mine: TypeError: .*'length'; `kwargs` holds its keyword arguments"),
        ("Nameless", "{}", "Nameless.name must be letters, digits and _, got ''"),
        ("Numbered", "{}", "Numbered.name must be letters, digits and _, got 3"),
        ("Misspelt", "{}", r"before_episod is no hook \(did you mean before_episode\?\); after_step must not be async"),
        ("Short", "{}", r"before_episode must take \(self, task: .*, got \(self, task\)"),
        ("Async", "{}", "after_verdicts must not be async"),
        ("Lossy", "{}", r"state\(\) of lossy must return JSON values.*would come back as \{'1': \[2, 3\]\}"),
    ],
)
def test_an_extension_that_cannot_be_used_is_refused_before_a_start(own, name, kwargs, words):
    with pytest.raises(SettingsError, match=words):
        read_config("cpu", [f"extensions=[{own(name, kwargs)}]"])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("[{path: /none.py, name: Mine}]", r"extensions\[0\]: /none.py cannot be loaded: FileNotFoundError"),
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
    with pytest.raises(
        SettingsError, match=r"extensions\[1\]: Mine.name must differ from other extensions' names, got 'mine'"
    ):
        read_config("cpu", [f"extensions=[{own('Mine')}, {own('Mine')}]"])


TASK = EpisodeTask(question=Question(id="q7", prompt="", reference=""), step=1, seed=0, num_candidates=2, num_suites=2)
WORK = JudgedQuestion(task=TASK, candidates=(), all_cases=())
CALLS = {
    "before_episode": lambda one: one.before_episode(TASK, None),
    "after_step": lambda one: one.after_step([]),
    "metrics": lambda one: one.metrics(None),
    "extra_groups": lambda one: one.extra_groups(None),
    "imitated": lambda one: one.imitated(TASK),
    "needs_all_cases": lambda one: one.needs_all_cases(TASK),
    "load_state": lambda one: one.load_state({}),
    "after_verdicts": lambda one: one.after_verdicts(WORK),
}


@pytest.mark.parametrize("hook", CALLS)
def test_an_error_in_a_hook_names_the_block_the_hook_and_the_users_line(own, hook):
    (extension,) = extensions_of(read_config("cpu", [f"extensions=[{own('Failing')}]"]))
    line = 1 + OWN[: OWN.index("raise KeyError")].count("\n")
    with pytest.raises(
        CodeA1Error, match=rf"extensions\[0\]: .*own.py: Failing, {hook}.*KeyError: 'mine' .*line {line}"
    ):
        CALLS[hook](extension)


@pytest.mark.parametrize(
    ("hook", "result", "words"),
    [
        ("before_episode", 7, "question 'q7': TypeError: must return an EpisodeTask whose history"),
        ("before_episode", replace(TASK, history=(3,)), "must return an EpisodeTask whose history"),
        ("after_step", 7, "TypeError: 'int' object is not iterable"),
        ("after_step", {"step": math.nan}, "must return finite numbers by names, got 'step': nan"),
        ("after_step", {"step": "1"}, "must return finite numbers by names, got 'step': '1'"),
        ("after_step", {3: 1.0}, "must return finite numbers by names, got 3: 1.0"),
    ],
)
def test_what_a_hook_returns_is_checked(own, hook, result, words):
    (extension,) = extensions_of(read_config("cpu", [f"extensions=[{own('Failing')}]"]))
    extension.own.result = result
    with pytest.raises(CodeA1Error, match=words):
        CALLS[hook](extension)


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
    assert restore_states((first, second), saved | {"gone": 2}) == ["gone"]
    assert (first.noted, second.noted) == ([1], "empty")


def test_a_state_that_is_no_json_is_named():
    with pytest.raises(CodeA1Error, match=r"state\(\) of a must return JSON values"):
        saved_states((Noted("a", object()),))
