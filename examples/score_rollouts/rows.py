"""Items -> output rows: judge, reward, write down; an outage is a row without a reward."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from code_a1_recipe.algorithm.episode_types import CandidateResult
from code_a1_recipe.algorithm.question import request_for
from code_a1_recipe.algorithm.rewards import QuestionRewards, RewardSettings
from code_a1_recipe.jobs.confinement import JudgeAll
from code_a1_recipe.jobs.jsonl_store import Row
from code_a1_recipe.runs.rollout_record import hidden_tests_record, reward_record, verdict_record
from sandbox import CandidateVerdict, JudgeRequest, SandboxUnavailableError

from .input import Item

ITEMS_TOGETHER = 32
"""Most items of one question that go to the judge in one piece and get their rows at once; a larger episode alone."""


class Scorer:
    """From items to requests, and from verdicts to rows."""

    def __init__(self, *, rewards: RewardSettings, num_cases: int) -> None:
        """``num_cases`` is K, the cases a suite was asked for.

        Raises:
            SettingsError: a reward function is not there, or does not take its arguments.
        """
        self._rewards = QuestionRewards(rewards, num_cases=num_cases)
        self._buggy_program_rewards = QuestionRewards(rewards.by_the_paper(), num_cases=num_cases)

    def requests(self, item: Item) -> list[JudgeRequest]:
        """What the judge is asked: suites and replays, then the question's own tests where they were recorded.

        A program of temperature 0 meets the question's own tests only, and is not rewarded.
        """
        program, suites = item.result.source, [suite.asserts for suite in item.result.suites]
        hidden = request_for(item.question, program, item.question.tests)
        if item.kind == "greedy":
            return [hidden]
        request = request_for(item.question, program, *suites, history=item.history)
        has_hidden = item.record is not None and item.record.hidden_tests is not None and item.question.tests
        return [request, *([hidden] if has_hidden else [])]

    def score(self, items: Sequence[Item], judge_all: JudgeAll) -> list[Row]:
        """Rows of some items of one question, among them all of an episode. An outage leaves ``reward`` null."""
        requests = [self.requests(item) for item in items]
        found = iter(list(judge_all([request for group in requests for request in group])))
        judged = [
            _judged(item, list(itertools.islice(found, len(group))))
            for item, group in zip(items, requests, strict=True)
        ]
        rows: dict[int, Row] = {}
        for places in _by_episode(items).values():
            rewarded = self._rewarded([items[place] for place in places], [judged[place] for place in places])
            rows |= {place: _row(items[place], result) for place, result in zip(places, rewarded, strict=True)}
        return [rows[place] for place in range(len(items))]

    def _rewarded(self, items: Sequence[Item], results: Sequence[CandidateResult]) -> Sequence[CandidateResult]:
        if items[0].kind == "greedy":
            return results
        # A buggy program of a validation question is rewarded by the paper's rule.
        rewards = self._buggy_program_rewards if items[0].kind == "buggy_program" else self._rewards
        if items[0].role != "code":
            return rewards.apply(items[0].question, results)
        # The tests of a flat row are the question's, not suites that somebody wrote.
        bare = rewards.apply(items[0].question, [replace(result, suites=()) for result in results])
        return [replace(one, suites=result.suites) for one, result in zip(bare, results, strict=True)]


def _judged(item: Item, found: Sequence[CandidateVerdict | SandboxUnavailableError]) -> CandidateResult:
    verdicts: list[CandidateVerdict] = []
    for one in found:
        if isinstance(one, SandboxUnavailableError):
            return replace(item.result, outage=f"{type(one).__name__}: {one}")
        verdicts.append(one)
    if item.kind == "greedy":
        return replace(item.result, hidden=verdicts[0])
    return replace(item.result, verdict=verdicts[0], hidden=verdicts[1] if len(verdicts) > 1 else None)


def _by_episode(items: Sequence[Item]) -> dict[tuple[object, ...], list[int]]:
    """Places of the items of each episode."""
    places: dict[tuple[object, ...], list[int]] = {}
    for place, item in enumerate(items):
        places.setdefault(item.episode, []).append(place)
    return places


def _row(item: Item, result: CandidateResult) -> Row:
    verdict = result.verdict
    reward = result.suites[0].reward if item.role == "test" else result.reward
    suites = verdict.suites if verdict else (None,) * len(result.suites)
    judged = {"outage": result.outage, "reward": reward_record(reward), "verdict": verdict_record(verdict)}
    head = {"item": item.index, **item.labels}
    if item.record is None:
        failure = (result.suites[0] if item.role == "test" else result).extraction_failure
        row = {**head, "extraction_failure": failure, **judged, "suite": suites[0]}
    else:
        changed = msgspec.structs.replace(
            item.record,
            **judged,
            source=result.source,
            extraction_failure=result.extraction_failure,
            hidden_tests=hidden_tests_record(result.hidden),
            suites=tuple(
                msgspec.structs.replace(
                    old,
                    extraction_failure=suite.extraction_failure,
                    reward=reward_record(suite.reward),
                    verdict=judged_suite,
                )
                for old, suite, judged_suite in zip(item.record.suites, result.suites, suites, strict=True)
            ),
        )
        row = {**msgspec.structs.asdict(changed), **head}
    return dict(msgspec.to_builtins(row))


def in_pieces(items: Sequence[Item]) -> list[Sequence[Item]]:
    """Items by question, in the order of each question's first one, whole episodes, ``ITEMS_TOGETHER`` in a piece."""
    of_question: dict[tuple[str, str], list[list[Item]]] = {}
    for places in _by_episode(items).values():
        question = items[places[0]].question
        pieces = of_question.setdefault((question.id, question.reference), [[]])
        if pieces[-1] and len(pieces[-1]) + len(places) > ITEMS_TOGETHER:
            pieces.append([])
        pieces[-1] += [items[place] for place in places]
    return [piece for pieces in of_question.values() for piece in pieces]
