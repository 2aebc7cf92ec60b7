"""Old log-probabilities that an update takes from its own pass.

Where a batch is one optimizer step, the policy that is updated is still the one that the ratio of PPO compares with: a
pass for its log-probabilities alone would compute the same numbers. What verl reports of that pass, the entropy and
the difference between a token's probability in training and at its server, comes as sums from the update instead.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from verl.utils.metric import AggregationType, Metric
from verl.workers.utils.padding import no_padding_2_padding, response_to_nested

FLAG = "takes_own_log_probs"
"""Of a batch: ``old_log_probs`` are filled in by its update."""
PREFIX = "own_log_probs/"
"""Of what ``finalize`` reads among the metrics of an update."""
_MAX = PREFIX + "max"
_NUM_COLUMNS = 5
"""Of a token: 1, its entropy, by how much its probabilities differ, its probability here, and at its server."""


def loss_with_own_log_probs(
    loss_function: Callable[..., tuple[torch.Tensor, dict[str, Any]]],
    *,
    model_output: dict[str, Any],
    data: Any,
    keeps_entropy: bool,
    dp_group: Any = None,
) -> tuple[torch.Tensor, dict[str, Any]]:
    """verl's loss, with the log-probabilities of this very pass as old ones.

    Args:
        loss_function: verl's, which reads ``old_log_probs``.
        model_output: ``log_probs`` and ``entropy`` of all tokens, nested.
        data: rows of the micro-batch, a TensorDict; get ``old_log_probs``.
        keeps_entropy: the loss has a term of it.
        dp_group: verl's process group.

    Returns:
        The loss; verl's metrics, and those that ``finalize`` reads.
    """
    entropy = model_output["entropy"] if keeps_entropy else model_output.pop("entropy")
    mask = data["response_mask"]
    own, entropies = (
        response_to_nested(no_padding_2_padding(values.detach(), data), mask)
        for values in (model_output["log_probs"], entropy)
    )
    data["old_log_probs"] = own
    loss, metrics = loss_function(model_output=model_output, data=data, dp_group=dp_group)
    counts = torch.cat(mask.unbind()).bool()
    columns = (torch.cat(values.unbind())[counts].double() for values in (entropies, own, data["rollout_log_probs"]))
    uncertainty, here, there = next(columns), next(columns).exp(), next(columns).exp()
    apart = (here - there).abs()
    table = torch.stack([torch.ones_like(here), uncertainty, apart, here, there])
    products = (table @ table.T).flatten().tolist()  # the first row has the sums
    sums = {f"{PREFIX}{number}": Metric(AggregationType.SUM, value) for number, value in enumerate(products)}
    return loss, {**metrics, **sums, _MAX: Metric(AggregationType.MAX, max(apart.tolist(), default=0.0))}


def finalize(metrics: dict[str, Any], *, ranks: int, prefix: str) -> dict[str, float]:
    """Take them out of an update's metrics; returns the metrics that verl gives of a pass of its own, or {}.

    Args:
        metrics: verl divides sums by the number of ranks.
        ranks: data-parallel ranks.
        prefix: stands before ``PREFIX`` in the names.
    """
    if prefix + _MAX not in metrics:
        return {}
    largest = metrics.pop(prefix + _MAX)
    sums = [metrics.pop(f"{prefix}{PREFIX}{number}") for number in range(_NUM_COLUMNS**2)]
    products = ranks * np.reshape(sums, (_NUM_COLUMNS, _NUM_COLUMNS))
    number = max(products[0, 0], 1.0)
    means = products[0] / number
    variances = products / number - np.outer(means, means)
    scale = np.sqrt(max(0.0, variances[3, 3] * variances[4, 4]))
    return {
        "actor/entropy": float(means[1]),
        "training/rollout_probs_diff_valid": int(products[0, 0] > 0),
        "training/rollout_probs_diff_max": float(largest),
        "training/rollout_probs_diff_mean": float(means[2]),
        "training/rollout_probs_diff_std": float(np.sqrt(max(0.0, variances[2, 2]) * number / max(number - 1, 1.0))),
        "training/rollout_actor_probs_pearson_corr": float(variances[3, 4] / scale) if scale else float("nan"),
    }
