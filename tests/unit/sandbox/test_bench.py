"""What the benchmark judges, and the judges in processes of their own that it measures."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox import Judge, JudgeRequest, LocalRunner, SandboxUnavailableError
from sandbox.judge.process_pool import JudgeProcesses, WorkerSettings
from studies.judge_benchmark.programs import workload


def requests_of(questions):
    return [request for question in questions for request in question.requests()]


def outcomes(results):
    return [[case.outcome.value for suite in one.suites for case in suite.cases] for one in results]


@pytest.fixture(scope="module")
def judges():
    with JudgeProcesses(1, settings=WorkerSettings(questions_at_once=2)) as pool:
        yield pool


def test_a_candidate_is_asked_64_different_calls_in_8_suites():
    for question in workload(24):
        for candidate in question.candidates:
            assert [len(suite) for suite in candidate.suites] == [8] * 8
            assert len({text.rpartition(" == ")[0] for suite in candidate.suites for text in suite}) == 64


def test_no_two_programs_of_a_workload_have_the_same_text():
    sources = [candidate.source for question in workload(50) for candidate in question.candidates]
    assert len(set(sources)) == 400


def test_two_in_a_hundred_candidates_hang_when_asked_to():
    hanging = [one.hangs for question in workload(100, hanging_frac=0.02) for one in question.candidates]
    assert sum(hanging) == 16


def test_judge_processes_agree_with_a_judge_in_this_process(judges):
    requests = requests_of(workload(2, seed=5))
    with LocalRunner() as runner:
        judge = Judge(runner)
        expected = outcomes([judge.judge(request) for request in requests])
    assert outcomes(judges.judge_all(requests[::-1])) == expected[::-1]


def test_a_worker_that_was_killed_costs_no_verdict(judges):
    requests = requests_of(workload(2, seed=6))
    expected = outcomes(judges.judge_all(requests))
    results = judges.judge_all(requests)
    os.kill(judges.worker_pids()[0], signal.SIGKILL)
    assert outcomes(results) == expected


@pytest.mark.parametrize("num_left_free", [0, 1])
def test_callers_take_turns(judges, num_left_free):
    def question(number, body="return x"):
        source = f"def f(x): {body}"
        reference, suites = "def f(x): return x", (("assert f(1) == 1",),)
        return JudgeRequest(question_id=str(number), reference=reference, candidate=source, suites=suites)

    requests = [question(number, "\n  while x == x: pass") for number in range(6)]
    hanging = judges.judge_all(requests, num_left_free=num_left_free)
    with ThreadPoolExecutor(1) as thread:
        outcomes_of_hanging = thread.submit(outcomes, hanging)
        while judges._free.qsize() > num_left_free:
            time.sleep(0.01)
        assert outcomes(judges.judge_all([question("small")])) == [["passed"]]
        assert not outcomes_of_hanging.done()
        assert outcomes_of_hanging.result() == [["timed_out"]] * 6


def test_questions_that_no_thread_has_begun_end_with_their_caller(judges):
    requests = requests_of(workload(30, seed=7))
    results = judges.judge_all(requests)
    next(results)
    results.close()
    assert len(outcomes(judges.judge_all(requests[:2]))) == 2
    assert not any(batch.questions for batch in judges._batches)


def test_closed_judge_processes_are_an_outage():
    pool = JudgeProcesses(1)
    pool.close()
    pool.close()
    request = JudgeRequest(question_id="q", reference="", candidate="", suites=())
    with pytest.raises(SandboxUnavailableError, match="closed"):
        next(iter(pool.judge_all([request])))
