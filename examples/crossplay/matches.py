"""Every saved Code LLM of a run against every saved Test LLM, on the run's held-out questions.

A match is one question, one program that a Code LLM step wrote for it, and one suite that a Test LLM step wrote for
that very program, with the run's own prompts, sampling and judge. The Test LLM wins where a valid case of the suite
breaks the program, otherwise the Code LLM does, also against a suite without a valid case; nobody draws. A program that
does not load or is none is broken by any suite: its matches are left out and counted, as are those whose program does
not fit the Test LLM's prompt, and outages. Identical programs are matches of their own: they are what the model writes.

Axes: I Code LLM steps, J Test LLM steps, Q questions, C candidates of a question, S suites of a candidate.
"""

import asyncio
import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from code_a1_recipe.algorithm.episode import EpisodeRunner
from code_a1_recipe.algorithm.episode_types import AsyncJudge, CandidateResult, EpisodeTask
from code_a1_recipe.algorithm.prompts import render
from code_a1_recipe.algorithm.question import Question
from code_a1_recipe.algorithm.sampling import sampling_seed
from code_a1_recipe.errors import SettingsError
from code_a1_recipe.evaluation.models.response_store import RESPONSES, ResponseStore, StoredSampler, finish_all
from code_a1_recipe.evaluation.models.source import ModelChoice, sample_all
from code_a1_recipe.files import file_fingerprint, fingerprint
from code_a1_recipe.jobs.jsonl_store import JsonlStore, Row
from code_a1_recipe.jobs.progress import Progress
from code_a1_recipe.stats.estimates import Array
from examples.recorded_pair import LocalAsyncJudge, RecordedPair

if TYPE_CHECKING:
    from .options import CrossPlayOptions

MATCHES = "matches.jsonl"
EPISODES_AT_ONCE = 64
"""Enough to fill an engine's batch; few enough that none waits for the judge as long as an outage takes."""


class Result(enum.StrEnum):
    """What came of a match."""

    DETECTED = "detected"
    """A valid case that is right as written breaks the program."""
    BROKE = "broke"
    """Valid cases break the program, but what they expect is wrong: only the reference's return value tells."""
    HELD = "held"
    """The program passes every valid case."""
    NO_VALID_CASE = "no_valid_case"
    NOT_LOADED = "not_loaded"
    NO_PROGRAM = "no_program"
    """No program can be extracted from the Code LLM's response."""
    TEST_PROMPT_TOO_LONG = "test_prompt_too_long"
    OUTAGE = "outage"


WINS: dict[str, frozenset[Result]] = {
    "broke": frozenset({Result.DETECTED, Result.BROKE}),
    "detected": frozenset({Result.DETECTED}),
}
"""What counts as a win of the Test LLM, by the name of ``--win``."""
PLAYED = frozenset({Result.DETECTED, Result.BROKE, Result.HELD, Result.NO_VALID_CASE})
"""Results of matches that count."""
NO_USABLE_PROGRAM = frozenset({Result.NOT_LOADED, Result.NO_PROGRAM})


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """One checkpoint in one role."""

    role: str
    """Code LLM or Test LLM ("code", "test"); in a run with one model that model plays both."""
    step: str
    model: ModelChoice

    @property
    def tag(self) -> str:
        """Part of the key of its matches: step and weights."""
        return f"{self.role}-{self.step}-{fingerprint(self.model.fingerprint)[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossPlay:
    """What is played; all matches of equal settings are taken up from the folder."""

    pair: RecordedPair
    questions: Sequence[Question]
    steps: Sequence[str]
    """Saved steps of both policies, ascending; "0": the models that training began with."""
    options: "CrossPlayOptions"

    def __post_init__(self) -> None:
        settings = self.pair.settings
        if not (settings.self_play or "test" in settings.policy_names):
            raise SettingsError(
                f"{self.pair.records.folder} has no Test LLM: it trained on tests of the dataset (rewards.code_tests="
                f"{settings.rewards.code_tests}). Cross-play needs a run in which a model writes the suites, such as "
                "one of arm=code_a1, frozen, pooled or self_play"
            )
        if not self.questions:
            raise SettingsError(f"{self.pair.records.folder} has no held-out questions (data.val_files is empty)")

    def settings(self) -> dict[str, Any]:
        """What decides the outcome of a match beside its key, for the file of matches."""
        settings = self.pair.settings
        everything = repr([asdict(question) for question in self.pair.held_out()])
        return {
            "run": str(self.pair.records.folder.resolve()),
            "questions": fingerprint(everything),
            "seed": settings.seed,
            "code_sampling": asdict(self.pair.sampling("code")),
            "test_sampling": asdict(self.pair.sampling(self.pair.tester)),
            "prompts": settings.prompts.name,
            "templates": {key: file_fingerprint(file) for key, file in settings.prompts.user_files.items()},
            "black_box": settings.prompts.black_box,
            "cases_per_suite": settings.episode.cases_per_suite,
            "limits": asdict(settings.sandbox.limits),
            "tier": settings.sandbox.tier,
        }

    def player(self, role: str, step: str) -> Player:
        """A checkpoint, exported where that was not done before.

        Raises:
            InputError: it cannot be exported.
        """
        policy = "code" if role == "code" else self.pair.tester
        model = self.pair.model(policy, step, work_folder=self.options.output, stored_only=self.options.judge_only)
        return Player(role=role, step=step, model=model)

    def keys(self, code: Player, test: Player, question: Question) -> list[list[str]]:
        """``[candidate][suite]``: keys of the matches on a question."""
        stem = f"{code.tag} {test.tag} {question.id}"
        return [[f"{stem} {c}.{s}" for s in range(self.options.suites)] for c in range(self.options.candidates)]


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of matches."""

    wins: Array
    """[I, J, Q] matches that the Code LLM won."""
    played: Array
    """[I, J, Q] matches that count."""
    results: list[list[Counter[Result]]]
    """``[i][j]``: matches by what came of them."""
    outages: list[str] = field(default_factory=list)
    """What the sandbox said, once each."""


def play(cross: CrossPlay, *, win: str) -> Tally:
    """Sample and judge what is not there yet, one engine at a time, and count.

    First every Code LLM step writes its programs; then each Test LLM step writes suites for all of them. Programs and
    the suites for steps of equal number have the seeds of the run's own validation.

    Args:
        win: a name of ``WINS``.

    Raises:
        OutputError: the folder holds matches of other settings.
        SandboxConfigError, SandboxUnavailableError: programs cannot be confined here.
        InputError: a model cannot be exported or loaded; or, with ``--judge-only``, a response is not stored.
        OutageError: a model is down, or a response takes longer than ``episode.generation_timeout_seconds``.
    """
    sandbox, seed = cross.pair.settings.sandbox, cross.pair.settings.seed
    with (
        JsonlStore(cross.options.output / MATCHES, settings=cross.settings(), key="key") as output,
        ResponseStore(cross.options.output / RESPONSES) as store,
        LocalAsyncJudge.start(sandbox, seed=seed) as judge,
    ):
        codes = [_write_programs(cross, step, store) for step in cross.steps]
        tests = [cross.player("test", step) for step in cross.steps]
        for test in tests:
            asyncio.run(_play_against(cross, codes, test, store=store, judge=judge, output=output))
        return tally(cross, codes, tests, output, win=win)


def _write_programs(cross: CrossPlay, step: str, store: ResponseStore) -> Player:
    """All programs of a Code LLM step into the store."""
    code = cross.player("code", step)
    settings = cross.pair.settings
    template = settings.prompts.code_template
    numbers = range(cross.options.candidates)
    texts = sample_all(
        code.model,
        [(question.id, render(template, **question.prompt_fields)) for question in cross.questions],
        # As the episode asks for them in the second phase, and the run's validation did.
        seeds=[
            [sampling_seed(settings.seed, "code", int(step), one.id, c) for c in numbers] for one in cross.questions
        ],
        parameters=cross.pair.sampling("code"),
        store=store,
        stored_only=cross.options.judge_only,
        description=f"programs of step {step}",
    )
    if too_long := [one.id for one, row in zip(cross.questions, texts, strict=True) if None in row]:
        raise SettingsError(
            f"question {too_long[0]!r} does not fit data.max_prompt_length of the run; its data has changed since"
        )
    return code


async def _play_against(
    cross: CrossPlay,
    codes: Sequence[Player],
    test: Player,
    *,
    store: ResponseStore,
    judge: AsyncJudge,
    output: JsonlStore,
) -> None:
    """All matches of one Test LLM step; its engine is started where a suite is not stored."""
    opener = None if cross.options.judge_only else test.model.open
    parameters = cross.pair.sampling(cross.pair.tester)
    tester = StoredSampler(store, model=test.model.fingerprint, parameters=parameters, open_model=opener)
    done = output.done
    pairs = [(code, question) for code in codes for question in cross.questions]
    left = [(code, one) for code, one in pairs if not done.issuperset(_flat(cross.keys(code, test, one)))]
    runners = {code.step: _runner(cross, code, tester, store=store, judge=judge) for code in codes}
    room = asyncio.Semaphore(EPISODES_AT_ONCE)
    num_outages = 0
    description = f"suites of step {test.step}"
    with Progress(description, total=len(pairs), done=len(pairs) - len(left), unit="question") as progress:

        async def one(code: Player, question: Question) -> None:
            nonlocal num_outages
            async with room:
                task = EpisodeTask(
                    question=question,
                    history=(),
                    step=int(code.step),  # so that all Test LLM steps draw their suites for it with the same seeds
                    seed=cross.pair.settings.seed,
                    num_candidates=cross.options.candidates,
                    num_suites=cross.options.suites,
                )
                episode = await runners[code.step].run(task)
            for row in match_rows(cross, code, test, question, episode.candidates):
                if row["key"] not in done:
                    output.append(row)
                    num_outages += bool(row["outage"])
            progress.advance(outages=num_outages)

        await finish_all([one(code, question) for code, question in left], samplers=[tester])


def _runner(
    cross: CrossPlay, code: Player, tester: StoredSampler, *, store: ResponseStore, judge: AsyncJudge
) -> EpisodeRunner:
    settings = cross.pair.settings
    programs = StoredSampler(
        store, model=code.model.fingerprint, parameters=cross.pair.sampling("code"), open_model=None
    )
    return EpisodeRunner(
        code=programs,
        test=tester,
        judge=judge,
        # Every match has its own suite, whatever training shared; rewards are not looked at.
        episode=settings.episode.replaced(where="episode", share_suites=False),
        rewards=settings.rewards.by_the_paper(),
        prompts=settings.prompts,
        judge_timeout_seconds=settings.sandbox.judge_timeout_seconds,
    )


def match_rows(
    cross: CrossPlay, code: Player, test: Player, question: Question, candidates: Sequence[CandidateResult]
) -> Iterator[Row]:
    """A row for each match on a question; ``outage`` is not empty where the sandbox gave no verdict."""
    keys = cross.keys(code, test, question)
    for c, candidate in enumerate(candidates):
        for s in range(cross.options.suites):
            result, counts = match_result(candidate, s)
            steps = {"code_step": int(code.step), "test_step": int(test.step)}
            where = {**steps, "question": question.id, "candidate": c, "suite": s}
            yield {"key": keys[c][s], **where, "result": result.value, "outage": candidate.outage, **counts}


def match_result(candidate: CandidateResult, s: int) -> tuple[Result, dict[str, int]]:
    """What came of suite ``s`` against the program, and how many of its cases are what."""
    verdict = candidate.verdict
    if candidate.outage or verdict is None:
        return Result.OUTAGE, {}
    if candidate.source is None:
        return Result.NO_PROGRAM, {}
    if candidate.is_too_long_to_test:
        return Result.TEST_PROMPT_TOO_LONG, {}
    suite = verdict.suites[s]
    num_detected = sum(case.outcome.failed and case.expected_correct for case in suite.cases)
    counts = {"valid": suite.num_valid, "failed": suite.num_failed, "detected": num_detected}
    counts["rejected"] = suite.num_rejected
    if not verdict.loaded:
        return Result.NOT_LOADED, counts
    if not suite.cases:
        return Result.NO_VALID_CASE, counts
    if num_detected:
        return Result.DETECTED, counts
    return (Result.BROKE if suite.num_failed else Result.HELD), counts


def tally(cross: CrossPlay, codes: Sequence[Player], tests: Sequence[Player], output: JsonlStore, *, win: str) -> Tally:
    """Counts of the matches of these players; other rows of the file are left alone."""
    shape = (len(codes), len(tests), len(cross.questions))
    results: list[list[Counter[Result]]] = [[Counter() for _ in tests] for _ in codes]
    rows = {row["key"]: row for row in output.rows()}
    found = Tally(wins=np.zeros(shape), played=np.zeros(shape), results=results)
    for i, code in enumerate(codes):
        for j, test in enumerate(tests):
            for q, question in enumerate(cross.questions):
                for key in _flat(cross.keys(code, test, question)):
                    row = rows[key]
                    result = Result(row["result"])
                    results[i][j][result] += 1
                    found.played[i, j, q] += result in PLAYED
                    found.wins[i, j, q] += result in PLAYED - WINS[win]
                    if row["outage"] and row["outage"] not in found.outages:
                        found.outages.append(row["outage"])
    return found


def _flat(keys: Iterable[Iterable[str]]) -> list[str]:
    return [key for row in keys for key in row]
