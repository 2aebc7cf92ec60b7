import json

import pytest

from code_a1_recipe.check_references import EXIT_ALL_GOOD, EXIT_SOME_BAD, EXIT_UNUSABLE, main

GOOD = {"id": "good", "prompt": "p", "reference": "def f(x): return x + 1", "tests": ["assert f(1) == 2"]}


@pytest.fixture
def check(tmp_path, capsys):
    """Run the command on rows; returns its exit code and what it wrote."""

    def run(*rows, arguments=()):
        path = tmp_path / "data.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
        code = main([str(path), "--workers", "1", *arguments])
        return code, capsys.readouterr()

    return run


def test_good_references_are_counted_and_the_exit_code_is_zero(check):
    repeated = GOOD | {"id": "again", "tests": ["assert f(1) == 2", "assert f(1) == 2"]}
    code, output = check(GOOD, repeated)
    assert code == EXIT_ALL_GOOD
    assert "data.jsonl: 2 of 2 references pass all of their own tests (2 of 2 tests)" in output.out


def test_each_fault_is_named_with_its_reason_and_an_example(check):
    code, output = check(
        GOOD,
        GOOD | {"id": "wrong", "tests": ["assert f(1) == 2", "assert f(1.5) == 9"]},
        GOOD | {"id": "raises", "tests": ["assert f('a') == 2"]},
        GOOD | {"id": "gate", "tests": ["assert f(1) != 2"]},
        GOOD | {"id": "untested", "tests": []},
    )
    assert code == EXIT_SOME_BAD
    assert "1 of 4 references pass all of their own tests (2 of 5 tests); 1 questions have no tests" in output.out
    assert "wrong: 1/2 passed; wrong_claim 1" in output.out
    assert "f(1.5) is 2.5, claimed 9" in output.out
    assert "raises: 0/1 passed; reference_raised 1" in output.out
    assert "gate: 0/1 passed; not_an_equality 1" in output.out


def test_the_number_of_questions_and_tests_can_be_limited(check):
    bad = GOOD | {"id": "bad", "tests": ["assert f(1) == 2", "assert f(2) == 9"]}
    code, output = check(bad, GOOD, arguments=["--limit", "1", "--max-tests", "1"])
    assert code == EXIT_ALL_GOOD
    assert "1 of 1 references" in output.out


def test_an_unusable_file_is_reported_and_has_its_own_exit_code(check):
    code, output = check({"a": 1})
    assert code == EXIT_UNUSABLE
    assert "no adapter knows these columns" in output.err
