"""Metrics of a validation."""

from code_a1_recipe.runs.metrics import validation_metrics


def test_a_validation_on_several_sources_has_metrics_of_each():
    parts = [("mbpp", {"code/pass@1": (1.0, 1)}), ("kodcode", {"code/pass@1": (0.0, 1)})]
    assert validation_metrics(parts[:1]) == {"val/code/pass@1": 1.0}
    assert validation_metrics(parts) == {
        "val/code/pass@1": 0.5,
        "val/mbpp/code/pass@1": 1.0,
        "val/kodcode/code/pass@1": 0.0,
    }
