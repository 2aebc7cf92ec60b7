"""Which model writes the suites of ``select``."""

import pytest

from code_a1_recipe.errors import InputError
from code_a1_recipe.tools.best_of_n.command import _test_model
from code_a1_recipe.tools.evaluate.models.options import ModelOptions


def test_a_run_has_both_models_unless_another_is_named(tmp_path):
    run, named = str(tmp_path), ModelOptions(model="org/name", prefix="test-")
    chosen = _test_model(ModelOptions(model=run, step="2"), ModelOptions(top_p=0.5))
    assert (chosen.model, chosen.step, chosen.top_p) == (run, "2", 0.5)
    assert _test_model(ModelOptions(model=run), named) == named
    with pytest.raises(InputError, match="only a run as --model has both"):
        _test_model(ModelOptions(endpoint="http://x", endpoint_model="m"), ModelOptions())
