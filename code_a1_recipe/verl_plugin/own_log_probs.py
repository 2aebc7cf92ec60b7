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
    # An entropy in the output would become a term of the loss, with a gradient to compute, even at a weight of 0.
    entropy = model_output["entropy"] if keeps_entropy else model_output.pop("entropy")
    mask = data["response_mask"]

    def of_responses(values: torch.Tensor) -> torch.Tensor:
        return response_to_nested(no_padding_2_padding(values.detach(), data), mask)

    data["old_log_probs"] = of_responses(model_output["log_probs"])
    loss, metrics = loss_function(
        model_output=model_output,
        data=data,
        dp_group=dp_group,
    )
    counts = torch.cat(mask.unbind()).bool()

    def of_tokens(nested: torch.Tensor) -> torch.Tensor:
        return torch.cat(nested.unbind())[counts].double()

    here = of_tokens(data["old_log_probs"]).exp()
    there = of_tokens(data["rollout_log_probs"]).exp()
    apart = (here - there).abs()
    table = torch.stack(
        [
            torch.ones_like(here),
            of_tokens(of_responses(entropy)),
            apart,
            here,
            there,
        ]
    )
    # All products of two columns, summed over the tokens: the first row has the plain sums.
    products = (table @ table.T).flatten().tolist()
    for number, value in enumerate(products):
        metrics[f"{PREFIX}{number}"] = Metric(AggregationType.SUM, value)
    metrics[_MAX] = Metric(AggregationType.MAX, max(apart.tolist(), default=0.0))
    return loss, metrics


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
    # A step without a token has sums of 0, and figures of 0.
    count = max(products[0, 0], 1.0)
    means = products[0] / count
    variances = products / count - np.outer(means, means)
    spread = np.sqrt(max(0.0, variances[2, 2]) * count / max(count - 1, 1.0))
    # Pearson's correlation has no value where all tokens are equally likely.
    scale = np.sqrt(max(0.0, variances[3, 3] * variances[4, 4]))
    correlation = variances[3, 4] / scale if scale else np.nan
    return {
        "actor/entropy": float(means[1]),
        "training/rollout_probs_diff_valid": int(products[0, 0] > 0),
        "training/rollout_probs_diff_max": float(largest),
        "training/rollout_probs_diff_mean": float(means[2]),
        "training/rollout_probs_diff_std": float(spread),
        "training/rollout_actor_probs_pearson_corr": float(correlation),
    }
