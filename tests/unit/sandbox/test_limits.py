"""Limits and options are checked when they are made, and all interface types can be pickled."""

import pickle

import pytest

from sandbox import (
    CandidateVerdict,
    CaseOutcome,
    JudgeRequest,
    Limits,
    LocalRunner,
    Rejection,
    RejectionReason,
    SandboxConfigError,
    SandboxUnavailableError,
    SuiteVerdict,
)


def test_an_unknown_key_is_refused_and_the_known_ones_are_named():
    with pytest.raises(SandboxConfigError, match=r"unknown keys under sandbox.limits: \['memory'\].*memory_bytes"):
        Limits.from_mapping({"memory": 1}, where="sandbox.limits")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"memory_bytes": 10**24}, "memory_bytes must be at most 2**50"),
        ({"cpu_seconds_per_case": 0}, "cpu_seconds_per_case must be a positive finite number, got 0"),
        ({"memory_bytes": 1.5}, "memory_bytes must be a positive finite integer"),
        ({"cpu_seconds_per_case": float("nan")}, "got nan"),
        ({"cpu_seconds_per_case": "1"}, "got '1'"),
        ({"open_files": 3}, "at least 16"),
        ({"value_bytes": 1 << 30}, "must not exceed limits.total_output_bytes"),
        ({"open_files": True}, "got True"),
    ],
)
def test_a_value_out_of_range_names_its_place_and_rule(raw, words):
    with pytest.raises(SandboxConfigError, match=r"sandbox\.limits") as caught:
        Limits.from_mapping(raw, where="sandbox.limits")
    assert words in str(caught.value)


def test_idle_time_scales_with_the_processor_limit():
    assert Limits(cpu_seconds_per_case=1.0, wall_seconds_per_case=5.0).wall_seconds(0.1) == 0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"allow_missing": ["landlok"]}, r"known: \['landlock', 'seccomp'\]"),
        ({"num_workers": 0}, "num_workers"),
        ({"readable": ["/no/such/folder"]}, "/no/such/folder"),
    ],
)
def test_an_option_of_a_runner_that_cannot_be_is_refused(options, words):
    with pytest.raises(SandboxConfigError, match=words):
        LocalRunner(**options)


def test_a_kernel_without_landlock_is_refused_until_the_loss_is_accepted(monkeypatch):
    monkeypatch.setattr("sandbox.confinement.jail.landlock_abi", lambda: 0)
    with pytest.raises(SandboxConfigError, match=r"offers no landlock.*allow_missing=\('landlock',\)"):
        LocalRunner()


def test_errors_requests_and_verdicts_pickle():
    request = JudgeRequest(question_id="q", reference="", candidate=None, suites=(("assert f(1) == 1",),))
    rejection = Rejection(text="x", reason=RejectionReason.DUPLICATE)
    suite = SuiteVerdict(cases=(), rejections=(rejection,))
    verdict = CandidateVerdict(
        loaded=True, load_error="", suites=(suite,), history=(), dropped_history=(), cpu_seconds=0.0, wall_seconds=0.0
    )
    for item in (request, verdict, Limits(), CaseOutcome.PASSED):
        assert pickle.loads(pickle.dumps(item)) == item
    for error in (SandboxUnavailableError("down"), SandboxConfigError("bad")):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy)) == (type(error), str(error))
