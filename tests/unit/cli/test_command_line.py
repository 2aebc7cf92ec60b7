"""Which words of a command line are a command, and which mean `train`."""

import pytest

from code_a1_recipe.cli.app import _with_command
from code_a1_recipe.errors import InputError


@pytest.mark.parametrize("words", [["train", "cpu"], ["eval", "code"], ["report", "outputs/x"], ["--help"]])
def test_a_command_is_left_alone(words):
    assert _with_command(words) == words


@pytest.mark.parametrize("words", [[], ["cpu"], ["my.yaml", "a=1"], ["rewards.alpha=0.3"]])
def test_train_may_be_left_out(words):
    assert _with_command(words) == ["train", *words]


def test_a_misspelt_command_is_refused_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'report'"):
        _with_command(["reprot", "outputs/x"])
