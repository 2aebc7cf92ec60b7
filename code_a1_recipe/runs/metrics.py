"""Metrics of a step. Episodes send sums instead of texts, so the trainer never holds the texts of a step.

A ``MetricAccumulator`` maps a metric to its sum and its count. The accumulators of all episodes are added, and then
means are taken. A name begins with ``code/``, ``test/``, ``judge/`` or ``book/``, or with the prefix of an extension.
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
"""Pairs of a metric's name and one value of the metric."""

GENERATED_TOKENS = "perf/generated_tokens"
_TOTALS = ("judge/outages", "book/replayed", GENERATED_TOKENS)
"""Metrics that are reported as totals. All others are means."""

_LOW_CORRELATION = 0.5
"""A correlation below this limit is logged. Random weights gave 0.03, and the right weights gave above 0.99."""


def accumulate_episode(episode: Episode, extensions: Sequence[Extension] = ()) -> MetricAccumulator:
    """Sum the metrics of an episode and its extensions.

    A program with an outage has no metrics of rewards and verdicts.
    """
    sums: MetricAccumulator = {}
    for name, value in _values(episode, extensions):
        _add(sums, name, float(value))
    return sums


def _add(sums: MetricAccumulator, name: str, value: float, count: int = 1) -> None:
    total, number = sums.get(name, (0.0, 0))
    sums[name] = (total + value, number + count)


def _values(episode: Episode, extensions: Sequence[Extension]) -> Values:
    for program in episode.judged_programs:
        responses = [program.response, *(suite.response for suite in program.suites)]
        yield GENERATED_TOKENS, sum(len(response.token_ids) for response in responses)
        # Metrics of rewards and verdicts leave out programs with an outage.
        yield from _outage_values(program)
    for candidate in episode.candidates:
        yield "code/extraction_failure_rate", candidate.source is None
        yield "code/truncated_rate", candidate.response.is_truncated
        if candidate.verdict is not None and candidate.reward is not None:
            yield from _candidate_values(candidate, candidate.verdict, candidate.reward)
            # The dataset's own tests have a verdict, but are no suite in ``candidate.suites``.
            for suite, verdict in zip(candidate.suites, candidate.verdict.suites, strict=False):
                if suite.reward is not None:
                    yield from _suite_values(suite, suite.reward, verdict)
    if episode.greedy is not None:
        yield from _outage_values(episode.greedy)
        if episode.greedy.hidden is not None:
            yield "code/greedy_pass@1", passes_all(episode.greedy.hidden)
    yield from _buggy_program_values(episode.buggy_programs)
    for extension in extensions:
        yield from extension.metrics(episode)


def busy_spans(episode: Episode) -> dict[str, tuple[Span, ...]]:
    """Return the times in which the episode waited for samples ("generate") and for verdicts ("judge").

    The spans of each kind are sorted and disjoint.
    """
    generated: list[Span | None] = []
    judged: list[Span | None] = []
    for program in episode.judged_programs:
        generated.append(program.span)
        generated += [suite.span for suite in program.suites]
        judged += [program.judge_span, program.hidden_span, program.pooled_span]
    return {
        "generate": union(filter(None, generated)),
        "judge": union(filter(None, judged)),
    }


def distinct_call_rate(calls: Sequence[str]) -> float | None:
    """Return the share of pairs whose two calls differ, in [0, 1], or None for fewer than two calls.

    Unlike the number of distinct calls, this share does not depend on the number of calls.
    """
    number = len(calls)
    if number < 2:
        return None
    num_pairs = number * (number - 1)
    num_equal_pairs = sum(count * (count - 1) for count in Counter(calls).values())
    return 1.0 - num_equal_pairs / num_pairs


def buggy_program_rates(suite: SuiteVerdict, *, valid: float) -> dict[str, float]:
    """Compute the rates of a suite on an incorrect program. A suite without cases has no ``kill_per_case``."""
    failed = [case for case in suite.cases if case.outcome.failed]
    rates = {
        "valid": valid,
        "kill": bool(failed),
        "detection_rate": any(case.expected_correct for case in failed),
    }
    if suite.cases:
        rates["kill_per_case"] = len(failed) / suite.num_valid
    return rates


def _buggy_program_values(buggy_programs: Sequence[CandidateResult]) -> Values:
    """Yield the Test LLM's means over the buggy programs of one question, so that each question counts once."""
    values = defaultdict(list)
    for program in buggy_programs:
        if program.verdict is None:
            continue
        for suite, verdict in zip(program.suites, program.verdict.suites, strict=True):
            assert suite.reward is not None
            rates_of_suite = buggy_program_rates(verdict, valid=suite.reward.terms["valid"])
            for name, rate in rates_of_suite.items():
                values[name].append(rate)
    for name, rates in values.items():
        yield f"test/buggy_programs_{name}", statistics.fmean(rates)


def _candidate_values(candidate: CandidateResult, verdict: CandidateVerdict, reward: Breakdown) -> Values:
    yield "code/reward", reward.total
    yield "code/loaded_rate", verdict.loaded
    if verdict.loaded:
        yield "code/example_failure_rate", bool(verdict.example_failure)
    cases = [case for suite in verdict.suites for case in suite.cases]
    distinct = distinct_call_rate([case.id for case in cases])
    if distinct is not None:
        # A rate that falls shows that the Test LLM repeats the same calls in all suites for a program.
        yield "test/distinct_call_rate", distinct
    yield "judge/cache_hit_rate", verdict.was_cached
    for suite in verdict.suites:
        num_slow = sum(item.reason == RejectionReason.REFERENCE_TIMED_OUT for item in suite.rejections)
        num_tests = suite.num_valid + len(suite.rejections)
        yield "judge/slow_reference_rate", num_slow / max(1, num_tests)
    yield "book/replayed", len(verdict.history)
    for case in cases:
        yield "code/case_pass_rate", case.outcome is CaseOutcome.PASSED
        yield "judge/timeout_rate", case.outcome is CaseOutcome.TIMED_OUT
    for case in verdict.history:
        yield "book/replay_pass_rate", case.outcome is CaseOutcome.PASSED
    if candidate.hidden is not None:
        yield from _hidden_values(candidate.hidden, has_full_reward=reward.total > FULL_REWARD)


def _hidden_values(verdict: CandidateVerdict, *, has_full_reward: bool) -> Values:
    [suite] = verdict.suites
    is_correct = passes_all(verdict)
    num_cases = max(1, suite.num_valid)
    yield "judge/cache_hit_rate", verdict.was_cached
    yield "code/pass@1", is_correct
    yield "code/hidden_case_pass_rate", 1.0 - suite.num_failed / num_cases
    num_not_asked = sum(case.detail == NOT_ASKED for case in suite.cases)
    yield "code/hidden_not_asked_frac", num_not_asked / num_cases
    if has_full_reward:
        yield "code/reward_false_positive_rate", not is_correct


def _outage_values(result: CandidateResult) -> Values:
    has_outage = bool(result.outage)
    yield "judge/outage_rate", has_outage
    yield "judge/outages", has_outage


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
    """Compute the means over several episodes, or the totals for the metrics in ``_TOTALS``."""
    sums: MetricAccumulator = {}
    for part in parts:
        for name, (value, count) in part.items():
            _add(sums, name, value, count)
    metrics = {}
    for name, (value, count) in sums.items():
        metrics[f"{prefix}{name}"] = value if name in _TOTALS else value / count
    return metrics


def validation_metrics(parts: Sequence[tuple[str, MetricAccumulator]]) -> dict[str, float]:
    """Compute the metrics of a validation under ``val/``, and with several data sources also under ``val/<source>/``.

    Args:
        parts: for each held-out question, the data source and the sums of the episode.
    """
    metrics = finalize_metrics((sums for _, sums in parts), prefix="val/")
    by_source = defaultdict(list)
    for source, sums in parts:
        by_source[source].append(sums)
    if len(by_source) > 1:
        for source, sums_of_source in by_source.items():
            metrics |= finalize_metrics(sums_of_source, prefix=f"val/{source}/")
    return metrics


def book_metrics(book: MistakeBook, change: BookChange) -> dict[str, float]:
    """Return the size of the Mistake Book after a step, and the step's changes of the book."""
    return {
        "book/cases": book.num_cases,
        "book/questions": book.num_questions,
        "book/added": change.num_added,
        "book/removed": change.num_removed,
    }


def check_served_weights(metrics: Mapping[str, float], *, limit: float | None, step: int) -> None:
    """Raise an error if servers hold other weights than the trainer.

    The check compares the worst response's mean difference of log-probabilities with ``limit``. Even with wrong
    weights, the difference is small for a model that gives all tokens nearly the same probability. So a low correlation
    of the probabilities is logged as well.

    Args:
        metrics: metrics of the step, with ``rollout_log_probs_diff_worst`` and verl's
            ``rollout_actor_probs_pearson_corr`` of each policy.
        limit: ``episode.max_log_probs_diff``; None: no limit.
        step: number of the step, for messages.

    Raises:
        OutageError: the difference of a policy is above ``limit`` or NaN.
    """
    if limit is None:
        return
    for name, value in metrics.items():
        if name.endswith("/rollout_log_probs_diff_worst") and not value <= limit:  # also true for NaN
            raise OutageError(
                f"step {step}: {name} is {value:.3g}, above episode.max_log_probs_diff={limit:g}: the servers sample "
                "from other weights than the trainer's, because a weight sync failed or kernels differ. Resume from an "
                "earlier step, or raise the limit if such a difference is expected"
            )
        if name.endswith("/rollout_actor_probs_pearson_corr") and value < _LOW_CORRELATION:
            logger.warning(
                "step %d: %s is %.3g (1 with equal weights): either the policy hardly varies, or its servers hold "
                "other weights than the trainer",
                step,
                name,
                value,
            )


def check_outages(share: float, *, limit: float, step: int, reason: str) -> None:
    """Raise an error if the sandbox failed for too many candidates of a step.

    Args:
        share: share, in [0, 1], of the step's candidates that the sandbox could not run.
        limit: ``sandbox.max_outage_rate``.
        step: number of the step, for the message.
        reason: message of the first outage.

    Raises:
        OutageError: ``share`` is above ``limit``.
    """
    if share > limit:
        raise OutageError(
            f"the sandbox could not run {share:.0%} of the candidates of step {step}; sandbox.max_outage_rate allows "
            f"{limit:.0%}. Nothing was updated in this step. The first outage: {reason[-300:]}. Try "
            "`python -m sandbox check` on the machine, and then resume."
        )
