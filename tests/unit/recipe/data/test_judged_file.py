"""Facts on disk: taken up again, never mixed."""

import pytest

from code_a1_recipe.data.judged_file import JudgedFile, JudgedFileError
from code_a1_recipe.data.reference_facts import ReferenceFacts

FACTS = ReferenceFacts(num_tests=1, load_error="", faults=(), cpu_seconds=0.25)
SETTINGS = {"slow_seconds": 1.0, "tier": 0}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new folder" / "out.parquet.judged.jsonl"


def test_facts_are_there_again_after_a_stop(path):
    with JudgedFile(path, settings=SETTINGS) as judged:
        assert judged.get("k") is None
        judged.append("k", FACTS)
    with JudgedFile(path, settings=SETTINGS) as judged:
        assert (len(judged), judged.get("k")) == (1, FACTS)
        judged.append("l", FACTS)
    with JudgedFile(path, settings=SETTINGS) as judged:
        assert len(judged) == 2
    assert path.read_text().count("slow_seconds") == 1


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_line_that_was_cut_off_is_judged_again(path, cut):
    with JudgedFile(path, settings=SETTINGS) as judged:
        judged.append("k", FACTS)
        judged.append("l", FACTS)
    path.write_bytes(path.read_bytes()[:-cut])
    with JudgedFile(path, settings=SETTINGS) as judged:
        assert (judged.get("k"), judged.get("l")) == (FACTS, None)
        judged.append("l", FACTS)
    with JudgedFile(path, settings=SETTINGS) as judged:
        assert len(judged) == 2


def test_settings_cut_off_in_the_first_line_are_written_again(path):
    path.parent.mkdir()
    path.write_text('{"format": 1, "slow')
    for _ in range(2):
        with JudgedFile(path, settings=SETTINGS) as judged:
            assert len(judged) == 0


def test_other_settings_are_refused_by_name(path):
    with JudgedFile(path, settings=SETTINGS) as judged:
        judged.append("k", FACTS)
    with pytest.raises(JudgedFileError, match=r"other settings: slow_seconds was 1\.0, now is 2\.0\. Repeat"):
        JudgedFile(path, settings=SETTINGS | {"slow_seconds": 2.0})
    assert len(JudgedFile(path, settings=SETTINGS)) == 1


def test_another_process_is_waited_for(path):
    with JudgedFile(path, settings=SETTINGS), pytest.raises(JudgedFileError, match="written by another process"):
        JudgedFile(path, settings=SETTINGS)


@pytest.mark.parametrize("text", ["hello\n", "[]\n", '{"format": 1, "slow_seconds": 1.0, "tier": 0}\n{"key": "k"}\n'])
def test_another_file_is_left_alone(path, text):
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(JudgedFileError, match=r"something else wrote there|other settings"):
        JudgedFile(path, settings=SETTINGS)
    assert path.read_text() == text


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JudgedFileError, match="choose another --output"):
        JudgedFile(tmp_path / "file" / "x.judged.jsonl", settings=SETTINGS)
