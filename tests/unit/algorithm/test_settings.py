"""Blocks of configuration keys: what each bound refuses, and what a user reads about it."""

import pytest

from code_a1_recipe.algorithm.prompts import PromptSettings
from code_a1_recipe.algorithm.rewards import RewardChoice, RewardSettings
from code_a1_recipe.algorithm.settings import (
    CheckpointSettings,
    EpisodeSettings,
    MistakeBookSettings,
    RecipeSettings,
    SandboxSettings,
)
from code_a1_recipe.algorithm.settings_block import near_misses, unknown_key
from code_a1_recipe.errors import SettingsError
from sandbox import Limits

EPISODE = {"num_candidates": 8, "num_suites": 4, "cases_per_suite": 5, "num_workers": 1}
SANDBOX = {"num_workers": 1, "programs_per_worker": 2, "judge_timeout_seconds": 30.0, "max_outage_rate": 0.5}
REWARDS = {"alpha": 0.5, "adversarial": "figure", "nonprintable_penalty": False}


@pytest.mark.parametrize(
    ("block", "values", "words"),
    [
        (EpisodeSettings, EPISODE | {"num_suites": 1}, "here.num_suites must be at least 2, or 0 for no Test LLM"),
        (EpisodeSettings, EPISODE | {"num_suites": -1}, "here.num_suites must be at least 2, or 0 for no Test LLM"),
        (EpisodeSettings, EPISODE | {"num_suites": -2}, "here.num_suites must be at least 2, or 0 for no Test LLM"),
        (EpisodeSettings, EPISODE | {"num_candidates": 1}, "here.num_candidates must be at least 2, got 1 (C: "),
        (EpisodeSettings, EPISODE | {"cases_per_suite": 2.5}, "here.cases_per_suite must be an integer, got 2.5"),
        (RewardSettings, REWARDS | {"nonprintable_penalty": "nope"}, "here.nonprintable_penalty must be true or false"),
        (
            EpisodeSettings,
            EPISODE | {"generation_timeout_seconds": 0},
            "here.generation_timeout_seconds must be above 0, got 0 (Seconds that a response may take",
        ),
        (EpisodeSettings, EPISODE | {"testr": "x"}, "unknown key 'here.testr'; did you mean here.tester?"),
        (EpisodeSettings, EPISODE | {"x": 1}, "unknown key 'here.x'; `--print-config` lists the known keys"),
        (SandboxSettings, SANDBOX | {"tier": 2}, "here.tier must be at most 1, got 2"),
        (SandboxSettings, SANDBOX | {"url": 3}, "here.url must be a text or null, got 3"),
        (SandboxSettings, SANDBOX | {"limits": 3}, "here.limits must be a block of keys, got 3"),
        (SandboxSettings, SANDBOX | {"limits": {"case_seconds": -1}}, "sandbox.limits"),
        (
            SandboxSettings,
            SANDBOX | {"runner": "locl"},
            "here.runner must be one of fusion, local (did you mean local?), got 'locl' (The place where programs run)",
        ),
        (CheckpointSettings, {"keep_best": "code/pass@1"}, "here.keep_best must be a validation metric (val/...)"),
        (RewardSettings, REWARDS | {"code": {"name": 3}}, "here.code.name must be a text, got 3 (Name of a shipped"),
        (RewardSettings, REWARDS | {"code": 3}, "here.code must be a block of keys, got 3"),
        (RewardSettings, REWARDS | {"code": {"nme": "f"}}, "unknown key 'here.code.nme'; did you mean here.code.name?"),
    ],
)
def test_a_value_out_of_bounds_is_named_with_key_rule_and_hint(block, values, words):
    with pytest.raises(SettingsError) as caught:
        block.read(values, where="here")
    assert words in str(caught.value)


def test_everything_that_is_wrong_is_named_at_once():
    with pytest.raises(SettingsError) as caught:
        EpisodeSettings.read(EPISODE | {"num_suites": 1, "barier": True, "num_workers": 0}, where="episode")
    assert str(caught.value).startswith("3 problems:\n  - episode.num_suites must be at least 2")
    with pytest.raises(SettingsError, match=r"^episode.num_candidates is missing; give it a value$"):
        EpisodeSettings.read({key: EPISODE[key] for key in EPISODE if key != "num_candidates"}, where="episode")


@pytest.mark.parametrize("num_suites", [0, 2, 8])
def test_a_group_has_two_members_or_there_is_none(num_suites):
    assert EpisodeSettings.read(EPISODE | {"num_suites": num_suites}, where="").num_suites == num_suites


def test_limits_are_read_with_the_sandboxs_own_rules():
    assert SandboxSettings.read(SANDBOX, where="").limits == Limits()
    limits = Limits(open_files=45)
    assert SandboxSettings.read(SANDBOX | {"limits": limits}, where="").limits is limits
    read = SandboxSettings.read(SANDBOX | {"limits": {"open_files": 45}}, where="")
    assert read.limits == limits


def test_other_values_are_checked_as_the_first_ones():
    book = MistakeBookSettings(enabled=True, replay_limit=4)
    assert book.replaced(where="mistake_book", replay_limit=0).replay_limit == 0
    episode = EpisodeSettings.read(EPISODE, where="episode")
    with pytest.raises(SettingsError, match=r"episode\.max_log_probs_diff must be at least 0 or null, got -1 "):
        episode.replaced(where="episode", max_log_probs_diff=-1)
    with pytest.raises(SettingsError, match=r"mistake_book\.replay_limit must be at least 0, got -1"):
        book.replaced(where="mistake_book", replay_limit=-1)


def test_a_recipe_without_a_block_names_the_block():
    with pytest.raises(SettingsError, match="episode is missing; give it a value"):
        RecipeSettings.read({}, where="")


def test_the_users_files_are_those_of_prompts_and_rewards(tmp_path):
    prompts = PromptSettings(name="chat_v2", code=str(tmp_path / "mine.txt"))
    rewards = RewardSettings(**REWARDS, test=RewardChoice(name="f", path=str(tmp_path / "mine.py")))
    recipe = RecipeSettings.model_construct(prompts=prompts, rewards=rewards)
    assert recipe.user_files == {"prompts.code": tmp_path / "mine.txt", "rewards.test.path": tmp_path / "mine.py"}


@pytest.mark.parametrize(
    ("num_suites", "self_play", "names"),
    [(4, False, ("code", "test")), (0, False, ("code",)), (4, True, ("code",)), (0, True, ("code",))],
)
def test_a_run_has_two_policies_unless_one_plays_both_roles_or_writes_no_suites(num_suites, self_play, names):
    episode = EpisodeSettings(**EPISODE | {"num_suites": num_suites})
    assert RecipeSettings.model_construct(episode=episode, self_play=self_play).policy_names == names


def test_up_to_three_near_words_are_offered():
    assert (
        near_misses("sampler", ["sample", "samplers", "simpler", "sampled", "else"]) == "samplers or sample or simpler"
    )
    assert near_misses("zzz", ["sample"]) == ""
    assert unknown_key("a.b", ["a.c.d"]) == "unknown key 'a.b'; `--print-config` lists the known keys"
