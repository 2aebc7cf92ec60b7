"""What a run takes from the hub: MBPP where no questions are named, and one question whether the hub answers."""

import json

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import constants

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.data import hub as data_hub
from code_a1_recipe.data.reader import read_questions
from code_a1_recipe.errors import SettingsError
from code_a1_recipe.training import hub, preflight

SPLITS = {"train": (601, 974), "test": (11, 510), "validation": (511, 600), "prompt": (1, 10)}
"""The first and the last task of each split of MBPP."""
ASKED = {2, 20, 550, 602, 700}
"""Tasks of the stand-in's subset `sanitized`."""


def row_of(number, *, statement):
    return {
        "task_id": number, statement: f"Add {number}.", "code": f"def f(x):\n    return x + {number}",
        "test_list": [f"assert f(1) == {1 + number}"],
    }  # fmt: skip


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A folder with the files of the hub's MBPP, in the place of its id."""
    folder = tmp_path / "mbpp"
    configs = []
    for subset, statement in (("full", "text"), ("sanitized", "prompt")):
        files = []
        for split, (first, last) in SPLITS.items():
            numbers = [number for number in range(first, last + 1) if subset == "full" or number in ASKED]
            path = folder / subset / f"{split}-00000-of-00001.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist([row_of(number, statement=statement) for number in numbers]), path)
            files.append({"split": split, "path": f"{subset}/{split}-*"})
        configs.append({"config_name": subset, "data_files": files})
    (folder / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
    monkeypatch.setattr(data_hub, "MBPP", str(folder))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "datasets"))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CODE_A1_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def silent_hub(monkeypatch):
    """The hub does not answer; the number of times that it was asked."""
    asked = []

    def head(address, timeout):
        asked.append(address)
        raise OSError("Name or service not known")

    def load(place, subset):
        assert constants.HF_HUB_OFFLINE
        raise ConnectionError(f"{place} is not cached")

    session = type("Session", (), {"head": staticmethod(head)})
    monkeypatch.setattr(huggingface_hub, "get_session", lambda: session)
    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    return asked


def config_of(*overrides):
    return read_config("qwen2.5-coder-0.5b", ["run_dir=/nowhere/x", *overrides])


@pytest.mark.usefixtures("stand_in")
def test_without_files_mbpp_trains_on_its_train_split_and_never_on_a_question_of_mbpp_plus(capfd, cache):
    values = hub.mbpp_questions(config_of())
    assert values == {f"data.{name}_files": str(cache / f"mbpp-{file}.jsonl") for name, file in
                      (("train", "train"), ("val", "validation"))}  # fmt: skip
    train, val = (read_questions(path).questions for path in values.values())
    assert [one.id for one in train] == [f"MBPP/{number}" for number in range(601, 975) if number not in ASKED]
    assert [one.id for one in val] == [f"MBPP/{number}" for number in range(511, 601)]
    assert train[0].tests == ("assert f(1) == 602",)
    said = capfd.readouterr().out
    assert (
        f"data.train_files=null: 372 questions of MBPP from the hub ({cache}/mbpp-train.jsonl); none of MBPP+" in said
    )
    assert "data.val_files=null: 90 questions of MBPP from the hub (" in said


@pytest.mark.usefixtures("stand_in")
def test_what_is_named_is_kept(tmp_path, cache):
    assert hub.mbpp_questions(config_of("data.train_files=mine.jsonl")) == {}
    assert hub.mbpp_questions(read_config("cpu")) == {}
    assert hub.mbpp_questions(config_of("data.val_files=mine.jsonl")) == {
        "data.train_files": f"{cache}/mbpp-train.jsonl"
    }
    mine = tmp_path / "mine.jsonl"
    mine.touch()
    (words,) = preflight._question_files(config_of(f"data.train_files={mine}"))
    assert words.startswith("data.val_files is not set")
    assert list(preflight._question_files(config_of())) == []


def test_a_silent_hub_is_asked_once_and_all_that_is_lacking_is_named(silent_hub):
    model, questions = preflight._hub(config_of())
    silence = f"{constants.ENDPOINT} does not answer (OSError: Name or service not known)"
    assert model.startswith(
        f"policies.code.model.path='Qwen/Qwen2.5-Coder-0.5B-Instruct' cannot be used: {silence}; give"
    )
    assert questions == (
        f"data.train_files=null takes the questions of MBPP from the hub: {silence}; name files of your own: "
        "data.train_files=FILE data.val_files=FILE"
    )
    assert silent_hub == [constants.ENDPOINT]


def test_a_silent_hub_is_no_problem_for_what_is_cached(silent_hub, cache, monkeypatch):
    cache.mkdir()
    for split in ("train", "validation"):
        (cache / f"mbpp-{split}.jsonl").touch()
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *names: "/cached/config.json")
    assert list(preflight._hub(config_of())) == []
    assert constants.HF_HUB_OFFLINE  # nothing else waits for it


def test_a_run_that_takes_nothing_from_the_hub_does_not_ask_it(silent_hub, tmp_path):
    files = [
        "data.train_files=x",
        "data.val_files=x",
        *(f"policies.{name}.model.path={tmp_path}" for name in ("code", "test")),
    ]
    assert list(preflight._hub(config_of(*files))) == list(preflight._hub(read_config("cpu"))) == silent_hub == []


@pytest.mark.usefixtures("silent_hub")
def test_without_mbpp_or_a_cache_folder_the_start_is_refused(cache):
    hub.hub_silence()
    with pytest.raises(
        SettingsError, match=r"google-research-datasets/mbpp: no such path.*ConnectionError.*is not cached"
    ):
        hub.mbpp_questions(config_of())
    cache.touch()
    with pytest.raises(SettingsError, match=r"^data\.train_files=null takes the questions of MBPP from the hub: "):
        hub.mbpp_questions(config_of())
