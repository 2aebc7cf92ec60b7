"""Rows of verl's queue: groups, keys, tags and tensors."""

import pytest
import torch

from code_a1_recipe.algorithm.episode_types import CandidateResult, Episode, EpisodeTask, Response, SuiteResult
from code_a1_recipe.algorithm.hooks import ExtraGroup
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.verl_plugin.trajectories import (
    GroupId,
    Trajectory,
    _fields,
    _tag,
    code_trajectories,
    extra_trajectories,
    is_lesson,
    lesson_trajectories,
    test_trajectories as suite_trajectories,
)
from reward_fns import Breakdown

GROUP = GroupId(4, 0)


def response(*tokens: int) -> Response:
    return Response(prompt_ids=(5, 6, 7), token_ids=tokens, log_probs=(-0.5,) * len(tokens), text="", policy_version=3)


def breakdown(reward: float | None) -> Breakdown | None:
    return None if reward is None else Breakdown(parts={"all": reward}, terms={})


def suite(reward: float | None) -> SuiteResult:
    return SuiteResult(response=response(8, 9), asserts=(), reward=breakdown(reward))


def candidate(reward: float | None, *suite_rewards: float | None) -> CandidateResult:
    suites = tuple(map(suite, suite_rewards))
    return CandidateResult(response=response(1, 2), source="", reward=breakdown(reward), suites=suites)


def episode(*candidates: CandidateResult) -> Episode:
    task = EpisodeTask(
        question=Question(id="q", prompt="", reference="def f(): pass"),
        history=(),
        step=4,
        seed=0,
        num_candidates=len(candidates),
        num_suites=2,
    )
    return Episode(task=task, candidates=candidates)


def programs(*rewards: float | None) -> list[Trajectory]:
    return code_trajectories(episode(*map(candidate, rewards)), group=GROUP)


def key_and_reward(rows: list[Trajectory]) -> list[tuple[str, float]]:
    return [(row.key, row.reward) for row in rows]


def test_a_group_of_the_code_llm_is_a_question():
    rows = programs(0.5, None, 1.0)
    assert key_and_reward(rows) == [("s4q0_0_0", 0.5), ("s4q0_2_0", 1.0)]


def test_a_lesson_is_a_group_of_its_own_whose_advantage_is_its_weight():
    rows = lesson_trajectories([(response(1), 0.5), (response(2), 2.0)], group=GROUP)
    assert key_and_reward(rows) == [("s4q0-0!_0_0", 0.5), ("s4q0-1!_0_0", 2.0)]
    assert all(is_lesson(row.key) and _tag(row)["is_padding"] for row in rows)
    sampled = programs(0.5, 1.0)
    assert not any(is_lesson(row.key) or "is_padding" in _tag(row) for row in sampled)


def test_a_group_of_the_test_llm_is_a_question_and_a_candidate():
    both = episode(candidate(0.5, 0.25, 0.75), candidate(0.5, 0.0, 1.0))
    rows = suite_trajectories(both, selected=[1, 0], group=GROUP)
    assert key_and_reward(rows) == [
        ("s4q0c1_0_0", 0.0),
        ("s4q0c1_1_0", 1.0),
        ("s4q0c0_0_0", 0.25),
        ("s4q0c0_1_0", 0.75),
    ]


def test_extra_groups_train_their_policy_and_are_told_from_the_papers_by_their_name():
    members = [(0, candidate(0.5)), (3, candidate(1.0))]
    suites = list(enumerate([suite(0.25), suite(0.75), suite(None)]))
    extra = [
        ExtraGroup(policy="code", name="r1", members=members),
        ExtraGroup(policy="code", name="r2", members=members[:1]),  # alone
        ExtraGroup(policy="test", name="x", members=suites),
    ]
    for policy, keys in (("code", ["s4q0-r1_0_0", "s4q0-r1_3_0"]), ("test", ["s4q0-x_0_0", "s4q0-x_1_0"])):
        assert [row.key for row in extra_trajectories(extra, policy, group=GROUP)] == keys


def test_a_group_that_an_outage_left_alone_is_dropped():
    assert programs(0.5, None) == []
    assert suite_trajectories(episode(candidate(0.5, 1.0, None)), selected=[0], group=GROUP) == []


def test_groups_of_a_step_have_ids_of_their_own_without_the_underscore_at_which_verl_splits_keys():
    kinds = [(None, ""), (5, ""), (None, "c5"), (None, "5"), (None, "5!")]
    ids = [str(GroupId(3, 17, *kind)) for kind in kinds]
    assert len(set(ids)) == len(ids)
    assert "_" not in "".join(ids)


@pytest.mark.parametrize(
    ("policy", "name"), [("code", ""), ("code", "a_b"), ("code", "a-b"), ("code", "a!"), ("coder", "a")]
)
def test_an_extra_group_has_a_policy_and_a_name_of_letters_and_digits(policy, name):
    with pytest.raises(ValueError, match="policy must be code or test, and name must have only letters and digits"):
        ExtraGroup(policy=policy, name=name, members=())


def test_the_reward_sits_on_the_last_response_token_in_float32():
    row = programs(0.5093, 0.5078)[0]
    fields = _fields(row)
    assert fields["rm_scores"].dtype == torch.float32
    assert fields["rm_scores"].tolist() == [0.0, pytest.approx(0.5093)]
    expected = {
        "input_ids": [5, 6, 7, 1, 2],
        "position_ids": [0, 1, 2, 3, 4],
        "response_mask": [1, 1],
        "rollout_log_probs": [-0.5, -0.5],
    }
    assert {name: fields[name].tolist() for name in expected} == expected
    assert fields["uid"] == "s4q0"


def test_the_tag_carries_the_length_and_the_step_of_the_weights():
    row = programs(0.0, 1.0)[0]
    assert _tag(row) == {"seq_len": 5, "min_global_steps": 3, "max_global_steps": 3}
