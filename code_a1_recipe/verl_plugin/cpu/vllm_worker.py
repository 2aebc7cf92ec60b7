"""What a vLLM server on a CPU needs: weights that stay loadable, and sampling that is not the most of its work."""

from typing import Any

import torch
from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension

from .environment import give_back_freed_memory
from .sampling import use_sampling_by_inversion


def _keep_weight(layer: torch.nn.Module, remove_weight: bool) -> None:
    if getattr(layer, "weight", None) is not None and layer.weight.ndim == 2:
        setattr(layer, "cpu_linear", torch.nn.functional.linear)  # noqa: B010  # a Module types its attributes


class CpuWorkerExtension(vLLMColocateWorkerExtension):
    """verl's worker extension on top of plain ``F.linear``.

    vLLM-CPU packs each weight into a kernel-specific copy at load time and drops the original, after which a
    second load (verl's weight sync) has nothing to write to. Plain linear layers keep the live parameter.
    """

    def __new__(cls, **kwargs: Any) -> "CpuWorkerExtension":
        import vllm.model_executor.layers.utils as layer_utils

        layer_utils.dispatch_cpu_unquantized_gemm = _keep_weight
        use_sampling_by_inversion()
        return super().__new__(cls, **kwargs)

    def update_weights_from_ipc(self, *args: Any, **kwargs: Any) -> None:
        super().update_weights_from_ipc(*args, **kwargs)
        give_back_freed_memory()
