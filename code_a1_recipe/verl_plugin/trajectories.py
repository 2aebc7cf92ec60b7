"""Responses as rows of verl's TransferQueue: the field names, keys and tags that verl's V1 trainer reads.

A partition per policy, so that neither update sees the other's rows. A row's uid is its GRPO group: the question for
the Code LLM, the question and candidate for the Test LLM.
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
    """A GRPO group of a step. As text it is verl's uid, without ``_``, at which verl takes keys apart."""

    step: int
    question: int
    """Place in the step."""
    candidate: int | None = None
    """The suites of this candidate; None: the candidates."""
    extra: str = ""
    """Name of an extension's group, or number of a lesson."""
    is_lesson: bool = False

    def __str__(self) -> str:
        candidate = "" if self.candidate is None else f"c{self.candidate}"
        extra = f"-{self.extra}" if self.extra else ""
        return f"s{self.step}q{self.question}{candidate}{extra}{_LESSON if self.is_lesson else ''}"


def is_lesson(key: str) -> bool:
    """Whether a row's key is that of a suite to imitate."""
    return key.partition("_")[0].endswith(_LESSON)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One response with its reward, placed in its group."""

    group: GroupId
    """A lesson (a suite to imitate) was sampled by nobody and is in no metric of verl's."""
    member: int
    response: Response
    reward: float

    @property
    def key(self) -> str:
        """``{uid}_{session}_{index}``, verl's key format; a response is the only output of its session."""
        return f"{self.group}_{self.member}_0"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRows:
    """What the trainer needs to fetch rows again: keys and tags, no text and no tensors."""

    keys: tuple[str, ...] = ()
    tags: tuple[dict[str, Any], ...] = ()


def join_rows(parts: Sequence[StoredRows]) -> StoredRows:
    """The rows of several episodes, in their order."""
    return StoredRows(
        keys=tuple(key for part in parts for key in part.keys), tags=tuple(tag for part in parts for tag in part.tags)
    )


def code_trajectories(episode: Episode, *, group: GroupId) -> list[Trajectory]:
    """The rewarded candidates of a question, one group of up to C."""
    return _group(group, enumerate(episode.candidates))


def test_trajectories(episode: Episode, *, selected: Sequence[int], group: GroupId) -> list[Trajectory]:
    """The suites of the selected ones of ``episode.candidates``: a group of up to S for each."""
    return [
        row for c in selected for row in _group(replace(group, candidate=c), enumerate(episode.candidates[c].suites))
    ]


def extra_trajectories(extra: Sequence[ExtraGroup], policy: str, *, group: GroupId) -> list[Trajectory]:
    """The groups of extensions that train ``policy``."""
    return [row for one in extra if one.policy == policy for row in _group(replace(group, extra=one.name), one.members)]


def _group(group: GroupId, members: Iterable[tuple[int, CandidateResult | SuiteResult]]) -> list[Trajectory]:
    """The rewarded members of a group; none of them where outages left fewer than two."""
    rows = [
        Trajectory(
            group=group,
            member=number,
            response=one.response,
            reward=one.reward.total,
        )
        for number, one in members
        if one.reward is not None and one.response.token_ids
    ]
    # A group of one has no mean to compare with: its advantage would be its raw reward.
    return rows if len(rows) >= 2 else []


def lesson_trajectories(lessons: Sequence[tuple[Response, float]], *, group: GroupId) -> list[Trajectory]:
    """Suites to imitate, each the only member of its group: GRPO then takes the reward itself as the advantage.

    On-policy the gradient of verl's policy loss is ``-advantage * grad log p``, so a fixed advantage is the gradient of
    supervised learning, a lesson's weight times the negative log-likelihood.
    """
    return [
        Trajectory(
            group=replace(group, extra=str(number), is_lesson=True),
            member=0,
            response=response,
            reward=weight,
        )
        for number, (response, weight) in enumerate(lessons)
    ]


def _fields(row: Trajectory) -> dict[str, Any]:
    response = row.response
    prompts = torch.tensor(response.prompt_ids, dtype=torch.int64)
    responses = torch.tensor(response.token_ids, dtype=torch.int64)
    input_ids = torch.cat([prompts, responses])
    mask = torch.ones_like(responses)
    # float32: an advantage subtracts rewards that are close to one another.
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


def _tag(row: Trajectory, *, step: int) -> dict[str, Any]:
    prompt_len, response_len = len(row.response.prompt_ids), len(row.response.token_ids)
    return {
        "status": "success",
        "prompt_len": prompt_len,
        "response_len": response_len,
        "seq_len": prompt_len + response_len,
        "global_steps": step,
        "min_global_steps": row.response.policy_version,
        "max_global_steps": row.response.policy_version,
        **(
            {"is_padding": True} if row.group.is_lesson else {}
        ),  # verl leaves such rows out of its metrics, and only there
    }


async def store(partition: str, rows: Sequence[Trajectory], *, step: int) -> StoredRows:
    """Put rows into a partition of the TransferQueue and return their keys and tags."""
    if not rows:
        return StoredRows()
    keys = [row.key for row in rows]
    tags = [_tag(row, step=step) for row in rows]
    await put_rows_async(
        keys=keys, fields=list_of_dict_to_tensordict([_fields(row) for row in rows]), tags=tags, partition_id=partition
    )
    return StoredRows(keys=tuple(keys), tags=tuple(tags))
