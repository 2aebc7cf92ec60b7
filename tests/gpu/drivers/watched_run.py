"""A run that writes down the card's memory before and after each sleep and each wake of its servers.

Arguments: preset, overrides. One JSON line a call goes to `sleeps.jsonl` in the run's folder.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from card import read_card

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.lifecycle.launch import configure_logging, prepare_environment, train


def used_memory() -> int | None:
    card = read_card()
    return card and card.used


def written_down(call: Callable[..., None], what: str, log: Path) -> Callable[..., None]:
    def measured(policy: Any, *arguments: int) -> None:
        before = used_memory()
        call(policy, *arguments)
        row = {"policy": policy.name, "what": what, "before": before, "after": used_memory()}
        with log.open("a") as handle:
            handle.write(json.dumps(row) + "\n")

    return measured


def main() -> None:
    configure_logging()
    preset, *overrides = sys.argv[1:]
    config = read_config(preset, overrides)
    prepare_environment(config)

    from code_a1_recipe.training.policy import Policy

    log = Path(config.run_dir) / "sleeps.jsonl"
    log.unlink(missing_ok=True)  # of the run that this one resumes
    Policy.sleep = written_down(Policy.sleep, "sleep", log)
    Policy.sync_weights = written_down(Policy.sync_weights, "wake", log)
    train(config)


if __name__ == "__main__":
    main()
