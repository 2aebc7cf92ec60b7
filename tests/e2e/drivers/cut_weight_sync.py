"""A run whose servers keep their first weights: the negative control of the weight sync tests.

A first argument without "=" is its preset; `cpu` otherwise.
"""

import sys

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.lifecycle.launch import configure_logging, prepare_environment, train


def main() -> None:
    configure_logging()
    preset, *overrides = sys.argv[1:] if "=" not in sys.argv[1] else ["cpu", *sys.argv[1:]]
    config = read_config(preset, overrides)
    prepare_environment(config)

    from code_a1_recipe.training.policy import Policy

    synchronise = Policy.sync_weights

    def only_once(self: Policy, step: int) -> None:
        if step == 0:
            synchronise(self, step)

    Policy.sync_weights = only_once
    train(config)


if __name__ == "__main__":
    main()
