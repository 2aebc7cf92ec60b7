"""A mini-batch has room for all repair turns, so that repairs add no optimizer step."""

from code_a1_recipe.config.compose import read_config
from code_a1_recipe.training.policy import Policy


def test_a_mini_batch_has_room_for_all_repair_turns():
    for turns in (0, 1, 3):
        config = read_config("cpu", [f"episode.repair_turns={turns}"])
        sizes = {
            name: Policy(name, config, pool=None, total_updates=1).config.actor_rollout_ref.actor.ppo_mini_batch_size
            for name in ("code", "test")
        }
        assert sizes == {"code": 8 * (1 + turns), "test": 8}
