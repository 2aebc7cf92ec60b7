"""Metrics of a step from compact sums, so that the trainer never holds a step's text.

A ``MetricAccumulator`` maps a metric to (sum, count); those of episodes are merged and turn into means at the end.
Names carry the prefixes ``code/``, ``test/``, ``judge/`` and ``book/``, or an extension's own.
"""

import logging
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reward_fns import Breakdown
from sandbox import CandidateVerdict, CaseOutcome, RejectionReason, SuiteVerdict
from sandbox.text import NOT_ASKED, passes_all

from ..algorithm.episode_types import CandidateResult, Episode, SuiteResult
from ..algorithm.hooks import Extension
from ..algorithm.mistake_book import BookChange, MistakeBook
from ..algorithm.rewards import FULL_REWARD
from ..algorithm.spans import Span, union
from ..errors import OutageError

logger = logging.getLogger(__name__)

MetricAccumulator = dict[str, tuple[float, int]]
Values = Iterator[tuple[str, float]]
"""Names of metrics, each with a value that counts once."""

GENERATED_TOKENS = "perf/generated_tokens"
# Reported as totals; everything else is a mean.
_TOTALS = ("judge/outages", "book/replayed", GENERATED_TOKENS)

_LOW_CORRELATION = 0.5
"""Servers with random weights gave 0.03, the right ones above 0.99."""


def accumulate_episode(episode: Episode, extensions: Sequence[Extension] = ()) -> MetricAccumulator:
    """Sum the metrics of one episode, those of extensions too; an outage counts in ``judge/outage_rate`` alone."""
    sums: MetricAccumulator = {}
    for name, value in _values(episode, extensions):
        _add(sums, name, float(value))
    return sums


def _add(sums: MetricAccumulator, name: str, value: float, count: int = 1) -> None:
    total, number = sums.get(name, (0.0, 0))
    sums[name] = (total + value, number + count)


def _values(episode: Episode, extensions: Sequence[Extension]) -> Values:
    for candidate in episode.candidates:
        yield "code/extraction_failure_rate", candidate.source is None
        yield "code/truncated_rate", candidate.response.is_truncated
        yield from _outage_values(candidate)
        if candidate.verdict is not None and candidate.reward is not None:
            yield from _candidate_values(candidate, candidate.verdict, candidate.reward)
            for suite, verdict in zip(candidate.suites, candidate.verdict.suites, strict=False):
                if suite.reward is not None:
                    yield from _suite_values(suite, suite.reward, verdict)
    written = episode.judged_programs
    responses = [one.response for one in written] + [suite.response for one in written for suite in one.suites]
    yield GENERATED_TOKENS, sum(len(response.token_ids) for response in responses)
    for extra in episode.extra_programs:
        yield from _outage_values(extra.result)
    for measured in (*episode.buggy_programs, episode.greedy):
        if measured is not None:
            yield from _outage_values(measured)
    for extension in extensions:
        yield from extension.metrics(episode)
    if episode.greedy is not None and episode.greedy.hidden is not None:
        yield "code/greedy_pass@1", passes_all(episode.greedy.hidden)
    yield from _buggy_program_values(episode.buggy_programs)


def busy_spans(episode: Episode) -> dict[str, tuple[Span, ...]]:
    """When the episode had something generated ("generate") and judged ("judge"): sorted, disjoint spans."""
    written = episode.judged_programs
    programs = [one.span for one in written]
    suites = [suite.span for one in written for suite in one.suites]
    judged = [span for one in written for span in (one.judge_span, one.hidden_span, one.pooled_span)]
    spans = {"generate": programs + suites, "judge": judged}
    return {name: union(span for span in own if span is not None) for name, own in spans.items()}


def distinct_call_rate(calls: Sequence[str]) -> float | None:
    """Pairs of calls that differ among all pairs, in [0, 1]; None of fewer than two calls.

    Unlike the number of different calls it does not depend on how many were drawn.
    """
    number = len(calls)
    if number < 2:
        return None
    same = sum(count * (count - 1) for count in Counter(calls).values())
    return 1.0 - same / (number * (number - 1))


def buggy_program_rates(suite: SuiteVerdict, *, valid: float) -> dict[str, float]:
    """``valid``, ``kill``, ``detection_rate`` and, of a suite with cases, ``kill_per_case`` on an incorrect program."""
    failed = [case for case in suite.cases if case.outcome.failed]
    rates = {"valid": valid, "kill": bool(failed), "detection_rate": any(case.expected_correct for case in failed)}
    return rates | ({"kill_per_case": len(failed) / suite.num_valid} if suite.cases else {})


def _buggy_program_values(buggy_programs: Sequence[CandidateResult]) -> Values:
    """How the Test LLM does on programs of one question that are known to be wrong; each question counts once."""
    found = defaultdict(list)
    for buggy in buggy_programs:
        if buggy.verdict is None:
            continue
        for suite, verdict in zip(buggy.suites, buggy.verdict.suites, strict=True):
            assert suite.reward is not None
            for name, value in buggy_program_rates(verdict, valid=suite.reward.terms["valid"]).items():
                found[name].append(value)
    for name, values in found.items():
        yield f"test/buggy_programs_{name}", statistics.fmean(values)


def _candidate_values(candidate: CandidateResult, verdict: CandidateVerdict, reward: Breakdown) -> Values:
    yield "code/reward", reward.total
    yield "code/loaded_rate", verdict.loaded
    if verdict.loaded:
        yield "code/example_failure_rate", bool(verdict.example_failure)
    cases = [case for suite in verdict.suites for case in suite.cases]
    if (share := distinct_call_rate([case.id for case in cases])) is not None:
        # Of all suites for one program; when it falls, the Test LLM is settling on a habit.
        yield "test/distinct_call_rate", share
    yield "judge/cache_hit_rate", verdict.was_cached
    for suite in verdict.suites:
        num_slow = sum(one.reason == RejectionReason.REFERENCE_TIMED_OUT for one in suite.rejections)
        yield "judge/slow_reference_rate", num_slow / max(1, suite.num_valid + len(suite.rejections))
    yield "book/replayed", len(verdict.history)
    for case in cases:
        yield "code/case_pass_rate", case.outcome is CaseOutcome.PASSED
        yield "judge/timeout_rate", case.outcome is CaseOutcome.TIMED_OUT
    for case in verdict.history:
        yield "book/replay_pass_rate", case.outcome is CaseOutcome.PASSED
    if candidate.hidden is not None:
        hidden, is_right = candidate.hidden.suites[0], passes_all(candidate.hidden)
        yield "judge/cache_hit_rate", candidate.hidden.was_cached
        yield "code/pass@1", is_right
        yield "code/hidden_case_pass_rate", 1.0 - hidden.num_failed / max(1, hidden.num_valid)
        num_left_out = sum(case.detail == NOT_ASKED for case in hidden.cases)
        yield "code/hidden_not_asked_frac", num_left_out / max(1, hidden.num_valid)
        if reward.total > FULL_REWARD:
            yield "code/reward_false_positive_rate", not is_right


def _outage_values(result: CandidateResult) -> Values:
    # Of every program, since a measure is taken over the programs that met no outage.
    for name in ("judge/outage_rate", "judge/outages"):
        yield name, bool(result.outage)


def _suite_values(suite: SuiteResult, reward: Breakdown, verdict: SuiteVerdict) -> Values:
    response = suite.response
    yield "test/reward", reward.total
    yield "test/extraction_failure_rate", bool(suite.extraction_failure)
    yield "test/truncated_rate", response.is_truncated
    yield "test/prompt_cached_frac", response.cached_tokens / max(1, len(response.prompt_ids))
    yield "test/broke_candidate_rate", verdict.num_failed > 0
    for term, value in reward.terms.items():
        yield f"test/{term}", value
    if verdict.num_valid:
        yield "test/expected_correct_rate", verdict.num_expected_correct / verdict.num_valid


def finalize_metrics(parts: Iterable[MetricAccumulator], *, prefix: str = "") -> dict[str, float]:
    """Means over several episodes (totals for the few names that count things), ready for the loggers."""
    sums: MetricAccumulator = {}
    for part in parts:
        for name, (value, count) in part.items():
            _add(sums, name, value, count)
    return {f"{prefix}{name}": value if name in _TOTALS else value / count for name, (value, count) in sums.items()}


def validation_metrics(parts: Sequence[tuple[str, MetricAccumulator]]) -> dict[str, float]:
    """Metrics of a validation, prefixed ``val/``, and with several data sources also ``val/<source>/``.

    Args:
        parts: for each held-out question its data source and the sums of its episode.
    """
    metrics = finalize_metrics((sums for _, sums in parts), prefix="val/")
    sources = dict.fromkeys(source for source, _ in parts)
    for source in sources if len(sources) > 1 else ():
        of_source = [sums for name, sums in parts if name == source]
        metrics |= finalize_metrics(of_source, prefix=f"val/{source}/")
    return metrics


def book_metrics(book: MistakeBook, change: BookChange) -> dict[str, float]:
    """The Mistake Book after a step, and what the step changed in it."""
    return {
        "book/cases": book.num_cases,
        "book/questions": book.num_questions,
        "book/added": change.num_added,
        "book/removed": change.num_removed,
    }


def check_served_weights(metrics: Mapping[str, float], *, limit: float | None, step: int) -> None:
    """Refuse to go on with servers that hold other weights than the trainer.

    A model that is nearly certain of every token, or of none, hides other weights from the mean difference: there a low
    correlation of both probabilities is reported.

    Args:
        metrics: of the step, with verl's ``rollout_probs_diff_mean`` and ``rollout_actor_probs_pearson_corr`` of each
            policy that was updated.
        limit: ``episode.max_probs_diff``; None: none.

    Raises:
        OutageError: a policy's mean is above ``limit``, or no number.
    """
    if limit is None:
        return
    for name, value in metrics.items():
        if name.endswith("/rollout_probs_diff_mean") and not value <= limit:
            raise OutageError(
                f"step {step}: {name} is {value:.3g}, above episode.max_probs_diff={limit:g}: the servers sample from "
                "other weights than those that are trained (a weight sync that failed, or kernels that differ). Resume "
                "from an earlier step, or raise the limit if so much is expected"
            )
        if name.endswith("/rollout_actor_probs_pearson_corr") and value < _LOW_CORRELATION:
            logger.warning(
                "step %d: %s is %.3g (1: the same): either the policy hardly varies, or its servers hold other weights "
                "than those that are trained",
                step,
                name,
                value,
            )


def check_outages(share: float, *, limit: float, step: int, reason: str) -> None:
    """Refuse a step in which the sandbox failed too often.

    Args:
        share: of the step's candidates that it could not run, in [0, 1].
        limit: ``sandbox.max_outage_rate``.
        reason: the first of the outages.

    Raises:
        OutageError: ``share`` is above ``limit``.
    """
    if share > limit:
        raise OutageError(
            f"the sandbox could not run {share:.0%} of the candidates of step {step}; sandbox.max_outage_rate allows "
            f"{limit:.0%}. Nothing was updated in this step. The first of them: {reason[-300:]}. Try "
            "`python -m sandbox check` on the machine, then resume."
        )
