"""verl's FSDP2 engine on the device "cpu" (verl's own extension point, ``EngineRegistry``)."""

from __future__ import annotations

import copy
from typing import Any

from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead


@EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device=["cpu"])
class CpuFSDPEngineWithLMHead(FSDPEngineWithLMHead):
    """verl's language-model engine without the pinned CPU offload of forward-only (reference) models."""

    def _build_fsdp_module(self, module: Any) -> Any:
        # For a forward-only engine verl asks for CPUOffloadPolicy(pin_memory=True). Pinning needs an
        # accelerator, and parameters that already live on the CPU have nowhere to be offloaded to.
        engine_config = self.engine_config
        self.engine_config = copy.copy(engine_config)
        object.__setattr__(self.engine_config, "forward_only", False)  # verl freezes its configs
        try:
            return super()._build_fsdp_module(module)
        finally:
            self.engine_config = engine_config
