"""What is pushed to the hub, and what is refused before any work: the real library against a hub on this machine."""

import pytest
from huggingface_hub import constants

from code_a1_recipe.errors import InputError, OutageError
from code_a1_recipe.jobs.hub import Repository

CARD = "---\ncode_a1: {holds}\n---\n\n# a model\n"


@pytest.fixture
def hub(local_hub):
    return local_hub


def opened(push="ada/coder", *, public=False, holds="a coder", kind="model"):
    return Repository.open(push, kind=kind, public=public, holds=holds)


def exported(folder, *names, holds="a coder"):
    folder.mkdir()
    (folder / "README.md").write_text(CARD.format(holds=holds))
    for name in names:
        (folder / name).write_text(name)
    return folder


def test_a_folder_becomes_a_private_repository_with_all_its_files(hub, tmp_path):
    address = opened().push(exported(tmp_path / "out", "config.json", "model.safetensors"))
    assert address == f"{hub.endpoint}/ada/coder"
    assert hub.private == {("model", "ada/coder"): True}
    assert hub.files("ada/coder")["config.json"] == b"config.json"
    assert hub.files("ada/coder")["model.safetensors"] == b"model.safetensors"
    assert [path for _, path in hub.calls if "/object/" in path]  # the weights went beside the commit
    assert hub.metadata("ada/coder") == {"code_a1": "a coder"}


def test_the_same_model_again_takes_the_place_of_its_weights_and_leaves_other_files(hub, tmp_path):
    opened().push(exported(tmp_path / "one", "model-00001-of-00002.safetensors", "model.safetensors.index.json"))
    hub.files("ada/coder")["LICENSE"] = b"theirs"
    opened().push(exported(tmp_path / "two", "model.safetensors"))
    assert sorted(hub.files("ada/coder")) == [".gitattributes", "LICENSE", "README.md", "model.safetensors"]


def test_a_set_is_pushed_with_its_card_as_the_readme(hub, tmp_path):
    (tmp_path / "set.parquet").write_bytes(b"rows")
    (tmp_path / "set.parquet.card.md").write_text(CARD.format(holds="a set"))
    repository = opened("ada/set", kind="dataset", holds="a set", public=True)
    address = repository.push_files([tmp_path / "set.parquet"], card=tmp_path / "set.parquet.card.md")
    assert address == f"{hub.endpoint}/datasets/ada/set"
    assert sorted(hub.files("ada/set", "dataset")) == [".gitattributes", "README.md", "set.parquet"]
    assert hub.private == {("dataset", "ada/set"): False}


def test_nothing_is_asked_without_the_option(hub):
    assert opened(None) is None
    with pytest.raises(InputError, match="--public says how --push OWNER/NAME makes its repository"):
        opened(None, public=True)
    assert hub.calls == []


@pytest.mark.parametrize(
    "name", ["coder", "ada/co--der", "ada/coder/1", "ada/", "/coder", "a da/coder", "ada/coder.git"]
)
def test_a_bad_name_is_refused_before_the_hub_is_asked(hub, name):
    with pytest.raises(InputError, match="must be OWNER/NAME"):
        opened(name)
    assert hub.calls == []


def test_without_a_token_the_ways_to_give_one_are_named(hub, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(InputError, match="needs a token of the hub and finds none; `hf auth login`, or HF_TOKEN"):
        opened()


def test_a_token_that_the_hub_does_not_know_and_one_that_only_reads_are_refused(hub, monkeypatch):
    hub.role = "read"
    with pytest.raises(InputError, match="the token may only read"):
        opened()
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    with pytest.raises(InputError, match="the hub refuses: Invalid user token"):
        opened()
    assert hub.repositories == {}


def test_an_owner_that_the_token_may_not_write_for_is_refused(hub):
    with pytest.raises(InputError, match=r"--push=bob/coder: the hub refuses: .*rights to create under bob"):
        opened("bob/coder")


@pytest.mark.parametrize(
    ("holds", "words"),
    [("a tester", "holds 'a tester', and this is 'a coder'; name another repository"), (None, "somebody else's")],
)
def test_a_repository_that_holds_something_else_is_refused(hub, tmp_path, holds, words):
    opened(holds=holds or "a coder").push(exported(tmp_path / "out", "config.json", holds=holds or "a coder"))
    if holds is None:
        del hub.files("ada/coder")["README.md"]
    with pytest.raises(InputError, match=words):
        opened()


@pytest.mark.parametrize(("was", "words"), [(True, "is public; --public says"), (False, "is private; leave --public")])
def test_who_may_see_a_repository_is_never_changed_in_passing(hub, was, words):
    opened(public=was)
    with pytest.raises(InputError, match=words):
        opened(public=not was)


def test_a_hub_that_does_not_answer_is_an_outage(hub, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(OutageError, match=r"no answer of the hub: .*see network and HF_ENDPOINT"):
        opened()


def test_an_upload_that_is_refused_is_one_line(hub, tmp_path):
    repository, folder = opened(), exported(tmp_path / "out")
    hub.broken = "/commit/"
    with pytest.raises(InputError, match=r"--push=ada/coder: the hub refuses: .*out of order") as caught:
        repository.push(folder)
    assert "\n" not in str(caught.value)
    assert caught.value.__notes__ == [f"what was made is in {folder}; `hf upload` uploads it without making it again"]


def test_front_matter_that_the_hub_does_not_take_is_refused(hub, tmp_path):
    folder = exported(tmp_path / "out")
    (folder / "README.md").write_text("---\njust text\n---\n")
    with pytest.raises(InputError, match=r"the hub refuses: .*no mapping"):
        opened().push(folder)
