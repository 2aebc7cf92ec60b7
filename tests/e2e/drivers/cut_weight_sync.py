"""A run whose servers keep old weights after one step: the negative control of the weight sync tests.

python tests/e2e/drivers/cut_weight_sync.py STEP PRESET [KEY=VALUE ...]
"""

import sys

from code_a1_recipe.cli.app import main
from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.lifecycle.launch import configure_logging, prepare_environment


def run() -> int:
    configure_logging()
    cut_after, preset, *overrides = sys.argv[1:]
    prepare_environment(read_config(preset, overrides))  # before verl is imported

    from code_a1_recipe.training.policy import Policy

    synchronise = Policy.sync_weights

    def cut(self: Policy, step: int) -> None:
        if step != int(cut_after):
            synchronise(self, step)

    Policy.sync_weights = cut
    return main([preset, *overrides])


if __name__ == "__main__":
    sys.exit(run())
