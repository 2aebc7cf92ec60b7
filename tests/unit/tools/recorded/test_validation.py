"""``code-a1 validate``: its table. The validation itself is in ``tests/e2e/test_evaluation.py``."""

import pytest

pytest.importorskip("torch")

from code_a1_recipe.tools.recorded.validation import comparison_table


def test_figures_stand_beside_those_of_training_and_differences_are_counted():
    here = {"val/code/pass@1": 0.5, "val/test/valid": 0.25, "val/test/adv": 0.1, "val/judge/outages": 0.0}
    here["val/test/prompt_cached_frac"] = 0.9  # of servers
    table, num_different = comparison_table(here, {"val/code/pass@1": 0.5, "val/test/valid": 0.3}, step=4)
    assert num_different == 1
    assert table.rows == (
        ("val/code/pass@1", "0.5", "0.5", "yes"),
        ("val/test/valid", "0.25", "0.3", "NO"),
        ("val/test/adv", "0.1", "", ""),
    )
    assert table.note == "1 of 2 figures of training are the same here."
