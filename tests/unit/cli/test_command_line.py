"""Which words of a command line are a command, and which mean `train`."""

import pytest

from code_a1_recipe.cli import status, train
from code_a1_recipe.cli.app import _with_command, main
from code_a1_recipe.errors import InputError
from code_a1_recipe.runs.folder import RunFolder


@pytest.mark.parametrize("words", ["train cpu", "eval code", "report outputs/x --serve-me", "--help"])
def test_a_command_is_left_alone(words):
    assert _with_command(words.split()) == words.split()


@pytest.mark.parametrize("words", ["cpu", "my.yaml a=1", "rewards.alpha=0.3"])
def test_train_may_be_left_out(words):
    assert _with_command(words.split()) == ["train", *words.split()]


def test_without_words_the_help_is_shown(capsys):
    assert main([]) == 0
    assert "Usage: code-a1 " in capsys.readouterr().out


def test_a_misspelt_command_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'report'"):
        _with_command(["reprot", "outputs/x"])


@pytest.mark.parametrize("words", ["cpu --data.seed 7", "train cpu --data.seed=7", "plan cpu --gpus 2 --data.seed 7"])
def test_a_setting_that_is_written_as_an_option_is_refused_with_the_right_form(words):
    with pytest.raises(InputError, match=r"--data.seed is no option of .*; a setting has no dashes: data.seed=VALUE"):
        _with_command(words.split())


@pytest.mark.parametrize("words", ["train cpu --print-config", "plan cpu --gpu 2", "eval code --max_tokens 5"])
def test_what_is_an_option_or_looks_like_one_is_left_to_the_command(words):
    assert _with_command(words.split()) == words.split()


class WorkersError(ModuleNotFoundError):
    """As Ray makes them: an instance of what it tells of."""


def test_a_package_of_an_extra_is_named_and_a_workers_error_keeps_its_traceback(capsys):
    def work(kind):
        raise kind("No module named 'vllm'", name="vllm")

    assert status.run(lambda: work(ModuleNotFoundError)) == 2
    assert "No module named 'vllm'\n" in (said := capsys.readouterr().err)
    assert "code-a1-recipe[cpu,eval]" in said
    with pytest.raises(WorkersError):
        status.run(lambda: work(WorkersError))


@pytest.mark.parametrize(
    ("preset", "overrides", "command"),
    [
        ("cpu", (), "bash run_codea1.sh smollm2-135m    # "),
        ("tiny-1gpu", (), "bash run_codea1.sh qwen2.5-coder-0.5b    # "),
        ("cpu", ("policies.code.model.path=mine/model",), None),
    ],
)
def test_a_run_of_the_tiny_models_ends_with_the_table_and_the_command_for_a_real_model(
    monkeypatch, capsys, run_folder, preset, overrides, command
):
    monkeypatch.setenv("CODE_A1_COMMAND", "bash run_codea1.sh")
    monkeypatch.setattr("code_a1_recipe.training.preflight.START_RULES", ())
    monkeypatch.setattr(train, "_train", lambda config, *, command: RunFolder(run_folder))
    assert main([preset, *overrides]) == 0
    said = capsys.readouterr().out
    table, _, last = said.rpartition("\n\nthese models are tiny; train a real one:\n  ")
    assert (last.startswith(command) and last.count("\n") == 1) if command else "models are tiny" not in said
    assert "\n  Code LLM, pass@1 at temperature 1     0.333 -> 0.833 " in (table or said)


@pytest.mark.parametrize("command", ["score", "harvest", "validate", "watch", "report", "export"])
def test_a_command_on_runs_has_its_help(command, capsys):
    assert main([command, "--help"]) == 0
    assert "Usage: code-a1 " in capsys.readouterr().out
