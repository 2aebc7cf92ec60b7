"""Old log-probabilities that an update takes from its own pass.

If a batch is one optimizer step, the policy before the update is the old policy of PPO's ratio. A pass for old
log-probabilities alone would compute the same numbers again. verl reports metrics of that pass: the entropy, and the
difference between a token's probability in training and at its server. Here they are made from sums of the update.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from verl.utils.metric import AggregationType, Metric
from verl.workers.utils.padding import no_padding_2_padding, response_to_nested

FLAG = "takes_own_log_probs"
"""Key of a batch whose ``old_log_probs`` are filled in by its update."""
PREFIX = "own_log_probs/"
"""Prefix of the sums among the metrics of an update, which ``finalize`` reads."""
_MAX = PREFIX + "max"
_NUM_COLUMNS = 5
"""Numbers of a token: 1, its entropy, the difference of its probabilities, its probability here, and at its server."""


def loss_with_own_log_probs(
    loss_function: Callable[..., tuple[Tensor, dict[str, Any]]],
    *,
    model_output: dict[str, Any],
    data: Any,
    keeps_entropy: bool,
    dp_group: Any = None,
) -> tuple[Tensor, dict[str, Any]]:
    """Compute verl's loss with the log-probabilities of this pass as the old ones.

    Args:
        loss_function: verl's, which reads ``old_log_probs``.
        model_output: ``log_probs`` and ``entropy`` of all tokens, nested.
        data: rows of the micro-batch, a TensorDict. ``old_log_probs`` are added to it.
        keeps_entropy: the loss has a term for the entropy.
        dp_group: verl's process group.

    Returns:
        The loss; verl's metrics together with the sums that ``finalize`` reads.
    """
    # verl makes an entropy in the output a term of the loss. Even with weight 0 its gradient would be computed.
    entropy = model_output["entropy"] if keeps_entropy else model_output.pop("entropy")
    mask = data["response_mask"]

    def of_responses(values: Tensor) -> Tensor:
        return response_to_nested(no_padding_2_padding(values.detach(), data), mask)

    data["old_log_probs"] = of_responses(model_output["log_probs"])
    loss, metrics = loss_function(
        model_output=model_output,
        data=data,
        dp_group=dp_group,
    )
    counts = torch.cat(mask.unbind()).bool()

    def of_tokens(nested: Tensor) -> Tensor:
        return torch.cat(nested.unbind())[counts].double()

    here = of_tokens(data["old_log_probs"]).exp()
    there = of_tokens(data["rollout_log_probs"]).exp()
    apart = (here - there).abs()
    entropies = of_tokens(of_responses(entropy))
    table = torch.stack([torch.ones_like(here), entropies, apart, here, there])
    # These are the products of each two columns, summed over the tokens. The first row has the plain sums, since the
    # first column is 1.
    products = (table @ table.T).flatten().tolist()
    for number, value in enumerate(products):
        metrics[f"{PREFIX}{number}"] = Metric(AggregationType.SUM, value)
    largest = max(apart.tolist(), default=0.0)
    metrics[_MAX] = Metric(AggregationType.MAX, largest)
    return loss, metrics


def finalize(metrics: dict[str, Any], *, ranks: int, prefix: str) -> dict[str, float]:
    """Take the sums out of an update's metrics, and make verl's metrics of a pass for old log-probabilities from them.

    Args:
        metrics: the update's. verl has divided the sums by the number of ranks.
        ranks: data-parallel ranks.
        prefix: verl's prefix of the names, before ``PREFIX``.

    Returns:
        The metrics under verl's names, or {} if there are no sums.
    """
    if prefix + _MAX not in metrics:
        return {}
    largest = metrics.pop(prefix + _MAX)
    sums = [metrics.pop(f"{prefix}{PREFIX}{number}") for number in range(_NUM_COLUMNS**2)]
    products = ranks * np.reshape(sums, (_NUM_COLUMNS, _NUM_COLUMNS))
    # Without a token all sums are 0, and all metrics become 0.
    count = max(products[0, 0], 1.0)
    means = products[0] / count
    variances = products / count - np.outer(means, means)
    variance = variances[2, 2] * count / max(count - 1, 1.0)
    spread = np.sqrt(max(0.0, variance))
    # Pearson's correlation is undefined if all tokens are equally likely.
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
