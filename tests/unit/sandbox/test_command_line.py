"""``python -m sandbox``: what it prints and which status it ends with."""

import json

import pytest

from sandbox.__main__ import main
from sandbox.confinement.tiers import TIER_MEANINGS, probe

ITEM = {
    "id": "a",
    "gt": "def f(x):\n    return x + 1\n",
    "code": "def f(x):\n    return 2\n",
    "tests": ["assert f(1) == 2", "assert f(2) == 2", "assert f(x) == 1"],
}


@pytest.fixture
def write(tmp_path):
    def to_file(content):
        path = tmp_path / "items.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return to_file


def test_judge_prints_one_line_an_item_in_order(write, capsys):
    assert main(["judge", write([ITEM, ITEM | {"id": "b", "code": None}]), "--workers", "2"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (rejection,) = lines[0].pop("rejections")
    assert (rejection["text"], rejection["reason"]) == ("assert f(x) == 1", "argument_not_literal")
    assert lines[1].pop("rejections")
    assert lines[1].pop("load_error")
    assert lines == [
        {"id": "a", "valid": 2, "expected_correct": 1, "passed": 1, "outcomes": ["passed", "wrong_value"]},
        {"id": "b", "valid": 2, "expected_correct": 1, "passed": 0, "outcomes": ["not_loaded", "not_loaded"]},
    ]


def test_items_may_stand_a_line_each_behind_a_byte_order_mark(write, capsys):
    lines = "\n".join(json.dumps(ITEM | {"id": name}) for name in ("a", "b\u2028c"))
    assert main(["judge", write(f"\ufeff{lines}\n\n")]) == 0
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["a", "b\u2028c"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "it must hold a JSON list, or one JSON object in each line"),
        ({"id": "a"}, "item 0: the fields ['candidate', 'reference', 'suites'] are missing"),
        (3, "item 0: a request must be a mapping, got int"),
        ([ITEM | {"tests": [1]}], "item 0: 'tests' must be a list of texts"),
        ([ITEM, {"id": "b"}], "item 1: the fields ['candidate', 'reference', 'suites'] are missing"),
        ([ITEM | {"code": 3}], "item 0: 'candidate' must be a text, got '3' (int)"),
    ],
)
def test_bad_input_is_named_and_ends_with_status_2(write, capsys, content, words):
    assert main(["judge", write(content)]) == 2
    assert words in capsys.readouterr().err


def test_a_missing_file_ends_with_status_2(capsys):
    assert main(["judge", "/no/such/file.json"]) == 2
    assert "/no/such/file.json" in capsys.readouterr().err


@pytest.mark.parametrize(("tier", "num_tests"), [(0, 14), (1, 16)])
def test_check_shows_tiers_features_and_limits_and_passes_on_a_machine_that_confines(capsys, tier, num_tests):
    if reason := probe()[tier].reason:
        pytest.skip(reason)
    assert main(["check", "--tier", str(tier)]) == 0
    printed = capsys.readouterr().out
    for line in (
        f"tier       {tier}: {TIER_MEANINGS[tier]}",
        "landlock   yes",
        "limit      memory_bytes = 1073741824",
        f"{num_tests} of {num_tests} self-tests passed",
    ):
        assert line in printed


def test_a_kernel_without_seccomp_ends_with_status_1_and_the_cure(monkeypatch, capsys):
    monkeypatch.setattr("sandbox.confinement.jail.has_seccomp", lambda: False)
    assert main(["check"]) == 1
    assert "allow_missing=('seccomp',)" in capsys.readouterr().err
