"""Run verl's SFT trainer on a machine without a GPU: ``python -m code_a1_recipe.verl_plugin.cpu.sft key=value ...``.

This command is for tiny models and for trials of a command line. verl's SFT trainer opens its process group for
``cpu:gloo,<device>:<backend>``. With the device "cpu", this text names the device "cpu" twice, and torch refuses it.
The function that opens the group is therefore replaced by the function of verl's Ray workers, which takes a backend.
The trainer, its data set and its keys are verl's.
"""

import functools
import os
import sys

from .environment import cpu_environment

OVERRIDES = (
    "trainer.device=cpu",
    "data.num_workers=0",
    "engine.strategy=fsdp2",
    "engine.use_torch_compile=false",
    "engine.dtype=float32",
    "+engine.mixed_precision.param_dtype=fp32",
    "+engine.mixed_precision.reduce_dtype=fp32",
    "+engine.mixed_precision.buffer_dtype=fp32",
    "model.external_lib=code_a1_recipe.verl_plugin.engine",
    "model.use_remove_padding=false",
    "model.enable_gradient_checkpointing=false",
    "+model.override_config.attn_implementation=sdpa",
)
"""Default keys, which the keys of the command line override."""


PROCESS_VARIABLES = {
    "RANK": "0",
    "LOCAL_RANK": "0",
    "WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "0",  # any free port
}
"""Variables that torchrun would set for a single process."""


def main() -> None:
    """Train with the command line's keys. Errors are verl's."""
    variables = cpu_environment(threads=os.cpu_count() or 1) | PROCESS_VARIABLES
    for name, value in variables.items():
        os.environ.setdefault(name, value)

    import verl.utils.distributed as verl_distributed  # the import of verl reads the environment

    verl_distributed.initialize_global_process_group = functools.partial(
        verl_distributed.initialize_global_process_group_ray, backend="cpu:gloo"
    )
    from verl.trainer import sft_trainer

    sys.argv = [sft_trainer.__file__, *OVERRIDES, *sys.argv[1:]]
    sft_trainer.main()


if __name__ == "__main__":
    main()
