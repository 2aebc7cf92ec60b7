"""Responses as rows of the TransferQueue, with the fields, keys and tags that verl's V1 trainer reads.

Each policy has its own partition, so that neither update sees the other's rows. A row's uid names its GRPO group. For
the Code LLM it names the question, for the Test LLM the question and the candidate.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from ..algorithm.episode_types import CandidateResult, Episode, Response, SuiteResult
from ..algorithm.hooks import ExtraGroup
from .row_queue import put_rows_async

_LESSON = "!"


@dataclass(frozen=True, slots=True)
class GroupId:
    """A GRPO group of a step. ``str`` gives verl's uid, which must not contain ``_``, since verl splits keys there."""

    step: int
    question: int
    """Position in the step."""
    candidate: int | None = None
    """Number of the candidate whose suites are the group; None if the group consists of candidates."""
    extra: str = ""
    """Name of an extension's group, or number of a lesson and ``_LESSON``."""

    def __str__(self) -> str:
        candidate = "" if self.candidate is None else f"c{self.candidate}"
        extra = f"-{self.extra}" if self.extra else ""
        return f"s{self.step}q{self.question}{candidate}{extra}"


def is_lesson(key: str) -> bool:
    """Whether the row with this key is a lesson (a suite to imitate)."""
    return key.partition("_")[0].endswith(_LESSON)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """A response with its reward, as a member of a group."""

    group: GroupId
    member: int
    response: Response
    reward: float

    @property
    def key(self) -> str:
        """Key in verl's format, ``{uid}_{session}_{index}``. A response is the only output of its session."""
        return f"{self.group}_{self.member}_0"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRows:
    """Keys and tags of stored rows, without text and tensors. With the keys the trainer can fetch the rows."""

    keys: Sequence[str] = ()
    tags: Sequence[dict[str, Any]] = ()


def join_rows(parts: Sequence[StoredRows]) -> StoredRows:
    """Join the rows of several episodes, in their order."""
    keys = [key for part in parts for key in part.keys]
    tags = [tag for part in parts for tag in part.tags]
    return StoredRows(keys=keys, tags=tags)


def code_trajectories(episode: Episode, *, group: GroupId) -> list[Trajectory]:
    """Make a question's group: one row for each rewarded candidate, at most C."""
    return _group(group, enumerate(episode.candidates))


def test_trajectories(episode: Episode, *, selected: Sequence[int], group: GroupId) -> list[Trajectory]:
    """Make a group for each selected candidate, with one row for each rewarded suite, at most S."""
    rows = []
    for number in selected:
        rows += _group(replace(group, candidate=number), enumerate(episode.candidates[number].suites))
    return rows


def extra_trajectories(extra: Sequence[ExtraGroup], policy: str, *, group: GroupId) -> list[Trajectory]:
    """Make the groups of extensions that train ``policy``."""
    rows = []
    for added in extra:
        if added.policy == policy:
            rows += _group(replace(group, extra=added.name), added.members)
    return rows


def _group(group: GroupId, members: Iterable[tuple[int, CandidateResult | SuiteResult]]) -> list[Trajectory]:
    """Make a row for each rewarded member. If fewer than two members have a reward, make no row."""
    rows = [
        Trajectory(group=group, member=number, response=result.response, reward=result.reward.total)
        for number, result in members
        if result.reward is not None and result.response.token_ids
    ]
    # A single member has no mean to compare with: GRPO would take its raw reward as the advantage.
    return rows if len(rows) >= 2 else []


def lesson_trajectories(lessons: Sequence[tuple[Response, float]], *, group: GroupId) -> list[Trajectory]:
    """Make a separate group for each lesson, so that GRPO takes the reward itself as the advantage.

    On-policy the gradient of verl's policy loss is ``-advantage * grad log p``. If the advantage is a lesson's fixed
    weight, this is the weight times the gradient of the negative log-likelihood, as in supervised learning.

    Args:
        lessons: suites to imitate with their weights.
        group: the question's group.
    """
    return [
        Trajectory(group=replace(group, extra=f"{number}{_LESSON}"), member=0, response=response, reward=weight)
        for number, (response, weight) in enumerate(lessons)
    ]


def _fields(row: Trajectory) -> dict[str, Any]:
    response = row.response
    prompts = torch.tensor(response.prompt_ids, dtype=torch.int64)
    responses = torch.tensor(response.token_ids, dtype=torch.int64)
    input_ids = torch.cat([prompts, responses])
    mask = torch.ones_like(responses)
    # Rewards need float32, since an advantage is the difference of rewards that may be nearly equal.
    rm_scores = torch.zeros(responses.shape, dtype=torch.float32)
    rm_scores[-1] = row.reward
    return {
        "uid": str(row.group),
        "prompts": prompts,
        "responses": responses,
        "input_ids": input_ids,
        "position_ids": torch.arange(input_ids.shape[0], dtype=torch.int64),
        "response_mask": mask,
        "loss_mask": mask.clone(),
        "rollout_log_probs": torch.tensor(response.log_probs, dtype=torch.float32),
        "rm_scores": rm_scores,
        "num_turns": 2,
        "multi_modal_inputs": {},
    }


def _tag(row: Trajectory) -> dict[str, Any]:
    response = row.response
    tag = {
        "seq_len": len(response.prompt_ids) + len(response.token_ids),
        "min_global_steps": response.policy_version,
        "max_global_steps": response.policy_version,
    }
    # verl trains on rows with this tag but leaves them out of its metrics. Lessons belong in no metric, since they were
    # not sampled.
    if is_lesson(row.key):
        tag["is_padding"] = True
    return tag


async def store(partition: str, rows: Sequence[Trajectory]) -> StoredRows:
    """Put rows into a partition of the TransferQueue and return their keys and tags."""
    if not rows:
        return StoredRows()
    keys = [row.key for row in rows]
    tags = [_tag(row) for row in rows]
    fields = list_of_dict_to_tensordict([_fields(row) for row in rows])
    await put_rows_async(keys=keys, fields=fields, tags=tags, partition_id=partition)
    return StoredRows(keys=keys, tags=tags)
