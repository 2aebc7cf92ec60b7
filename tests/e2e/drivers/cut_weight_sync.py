"""A run whose servers keep their first weights: the negative control of the weight sync test."""

import sys

from code_a1_recipe.compose import compose_config
from code_a1_recipe.launch import configure_logging, name_run, prepare_environment, train


def main() -> None:
    configure_logging()
    config = compose_config("cpu", sys.argv[1:])
    name_run(config, "cpu")
    prepare_environment(config)

    from code_a1_recipe.policy import Policy

    synchronise = Policy.sync_weights

    def only_once(self: Policy, step: int) -> None:
        if step == 0:
            synchronise(self, step)

    Policy.sync_weights = only_once
    train(config)


if __name__ == "__main__":
    main()
