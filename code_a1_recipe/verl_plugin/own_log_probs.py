"""Old log-probabilities that an update takes from its own forward pass.

If a batch is one optimizer step, the forward pass of the update still computes the old policy of PPO's ratio. A
separate pass for old log-probabilities would compute the same numbers, so it is left out. verl would take metrics from
the separate pass: the entropy, and the difference between a token's probability in training and at its server. The
recipe computes these metrics from sums that the update collects.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from verl.utils.metric import AggregationType, Metric
from verl.workers.utils.padding import no_padding_2_padding, response_to_nested

FLAG = "takes_own_log_probs"
"""Key that marks a batch whose update fills in ``old_log_probs``."""
PREFIX = "own_log_probs/"
"""Prefix of the names of sums among an update's metrics. ``finalize`` reads these sums."""
_MAX = PREFIX + "max"
_NUM_VALUES = 5
"""Number of values of each token. The values are 1, the entropy, the difference of both probabilities, the probability
in training, and the probability at the server."""


def loss_with_own_log_probs(
    loss_function: Callable[..., tuple[Tensor, dict[str, Any]]],
    *,
    model_output: dict[str, Any],
    data: Any,
    keeps_entropy: bool,
    dp_group: Any = None,
) -> tuple[Tensor, dict[str, Any]]:
    """Compute verl's loss with the log-probabilities of this pass as the old log-probabilities.

    Args:
        loss_function: verl's loss function, which reads ``old_log_probs``.
        model_output: ``log_probs`` and ``entropy`` of all tokens, nested.
        data: rows of the micro-batch, a TensorDict. ``old_log_probs`` are added to the rows.
        keeps_entropy: the loss has a term for the entropy.
        dp_group: verl's process group.

    Returns:
        The loss; verl's metrics together with the sums that ``finalize`` reads.
    """
    # If the output has an entropy, verl makes it a term of the loss and computes its gradient even with weight 0.
    entropy = model_output["entropy"] if keeps_entropy else model_output.pop("entropy")
    mask = data["response_mask"]

    def of_responses(values: Tensor) -> Tensor:
        padded = no_padding_2_padding(values.detach(), data)  # (rows, longest response)
        return response_to_nested(padded, mask)

    data["old_log_probs"] = of_responses(model_output["log_probs"])
    loss, metrics = loss_function(
        model_output=model_output,
        data=data,
        dp_group=dp_group,
    )
    is_counted = torch.cat(mask.unbind()).bool()  # (responses' tokens,)

    def of_tokens(nested: Tensor) -> Tensor:
        """Return the values of all counted tokens, (counted tokens,)."""
        values = torch.cat(nested.unbind())
        return values[is_counted].double()

    in_training = of_tokens(data["old_log_probs"]).exp()
    at_server = of_tokens(data["rollout_log_probs"]).exp()
    difference = (in_training - at_server).abs()
    entropies = of_tokens(of_responses(entropy))
    ones = torch.ones_like(in_training)
    table = torch.stack([ones, entropies, difference, in_training, at_server])  # (values, counted tokens)
    # Each element is the product of two values, summed over the tokens. A product with the value 1 gives a plain sum.
    products = table @ table.T  # (values, values)
    for number, value in enumerate(products.flatten().tolist()):
        metrics[f"{PREFIX}{number}"] = Metric(AggregationType.SUM, value)
    largest = max(difference.tolist(), default=0.0)
    metrics[_MAX] = Metric(AggregationType.MAX, largest)
    return loss, metrics


def finalize(metrics: dict[str, Any], *, ranks: int) -> dict[str, float]:
    """Remove the sums from an update's metrics. Compute from the sums the metrics that verl's separate pass would give.

    Args:
        metrics: metrics of the update, to whose names verl has added ``actor/``. It has divided the sums by the number
            of ranks.
        ranks: data-parallel ranks.

    Returns:
        The metrics under verl's names, or {} if the update collected no sums.
    """
    largest = metrics.pop(f"actor/{_MAX}", None)
    if largest is None:
        return {}
    sums = [metrics.pop(f"actor/{PREFIX}{number}") for number in range(_NUM_VALUES**2)]
    shape = (_NUM_VALUES, _NUM_VALUES)
    products = ranks * np.reshape(sums, shape)
    # If no token is counted, all sums are 0, and the divisor 1 makes all metrics 0.
    count = max(products[0, 0], 1.0)
    means = products[0] / count
    covariances = products / count - np.outer(means, means)
    variance = covariances[2, 2] * count / max(count - 1, 1.0)
    spread = np.sqrt(max(0.0, variance))
    # Pearson's correlation is undefined if all tokens have the same probability.
    scale = np.sqrt(max(0.0, covariances[3, 3] * covariances[4, 4]))
    correlation = np.nan
    if scale:
        correlation = covariances[3, 4] / scale
    return {
        "actor/entropy": float(means[1]),
        "training/rollout_probs_diff_valid": int(products[0, 0] > 0),
        "training/rollout_probs_diff_max": float(largest),
        "training/rollout_probs_diff_mean": float(means[2]),
        "training/rollout_probs_diff_std": float(spread),
        "training/rollout_actor_probs_pearson_corr": float(correlation),
    }
