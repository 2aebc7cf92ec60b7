"""A step's flow through client, servers and judge, in cases that can be counted by hand, and what always holds."""

import pytest
from hypothesis import given, settings, strategies as st

from examples.simulator.layouts import best_split, compare
from examples.simulator.rates import rates_from, read_rates
from examples.simulator.simulator import BARRIER, MODES, STREAMING, Layout, simulate_episodes, simulate_step
from examples.simulator.workload import Lengths, sample_step

from .builders import program, rates, shaped, step

APART, TOGETHER = Layout.separate(1, 1), Layout.colocated(1)


def seconds(source, work, *, layout=APART, mode=STREAMING):
    return simulate_episodes(source, work, layout=layout, mode=mode).seconds


def test_streaming_overlaps_the_suites_of_one_program_with_another():
    work = step([program(2, [3])], [program(10, [3])])
    assert seconds(rates(), work) == 13.0  # the longer program, then its suite
    assert seconds(rates(), work, mode=BARRIER) == 13.0
    work = step([program(2, [9])], [program(10, [3])])
    assert seconds(rates(), work) == 13.0  # the shorter one's long suite is over by then
    assert seconds(rates(), work, mode=BARRIER) == 19.0  # it begins at 10


def test_both_servers_on_one_gpu_take_turns_while_both_have_requests():
    work = step([program(2, [9])], [program(10, [3])])
    # 2 s until the short program is there. Then both servers at half speed: 8 more tokens of a program take 16 s, in
    # which a suite gets 8 of its 9. At 18 the other suite joins, and the server has the GPU for itself.
    times = simulate_episodes(rates(), work, layout=TOGETHER, mode=STREAMING)
    assert times.written == [[2.0], [18.0]]
    assert times.tested == [[19.0], [21.0]]
    assert times.seconds == 21.0


def test_on_gpus_with_room_for_both_nothing_is_slowed():
    work = step([program(2, [9])], [program(10, [3])])
    both = rates(code={"demand": 0.5}, test={"demand": 0.5})
    assert seconds(both, work, layout=TOGETHER) == seconds(both, work) == 13.0


def test_the_barrier_holds_back_verdicts_until_the_last_suite():
    work = step([program(1, [1], judged=5)], [program(1, [7], judged=5)])
    judged = rates(judge={"case_seconds": 0.4})
    assert seconds(judged, work) == 10.0  # 1 + 7 + 2: the first one's verdict came while suites were written
    assert seconds(judged, work, mode=BARRIER) == 12.0  # 1 + 7 + 2 + 2


def test_each_question_has_its_judge():
    work = step([program(1, [1], judged=1)], [program(1, [1], judged=1)])
    assert seconds(rates(judge={"program_seconds": 5.0}), work) == 12.0
    assert seconds(rates(judge={"program_seconds": 5.0, "workers": 2}), work) == 7.0
    assert seconds(rates(judge={"program_seconds": 5.0, "programs_per_worker": 2}), work) == 7.0


def test_the_client_prepares_requests_one_after_another():
    work = step([program(1, judged=None), program(1, judged=None)])
    client = {"send_seconds": 0.25, "receive_seconds": 0.5, "question_seconds": 1.0}
    # Sent at 0.25 and 0.5; the first runs until 1.25, the second from there to 2.25, received by 2.75.
    assert seconds(rates(client=client), work) == 3.75


@pytest.mark.parametrize("mode", MODES)
def test_requests_about_a_program_go_through_client_and_judge_one_after_another(mode):
    source = rates(client={"send_seconds": 0.25, "receive_seconds": 0.5}, judge={"program_seconds": 2.0})
    # Sent 0.25, written 1.25, received 1.75; then sent, judged and received in 2.75.
    assert seconds(source, step([program(1)]), mode=mode) == 4.5
    # Nothing to write meanwhile: the hidden tests before the verdict, or behind a barrier after it.
    assert seconds(source, step([program(1, hidden=0)]), mode=mode) == 7.25
    assert seconds(source, step([program(1, pooled=0)]), mode=mode) == 7.25


def test_a_program_meets_hidden_tests_while_its_suites_are_written_and_the_verdict_waits_for_both():
    judged = rates(judge={"case_seconds": 1.0})

    def verdicts(mode, *, hidden):
        work = step([program(1, [6], judged=2, hidden=hidden)])
        return simulate_episodes(judged, work, layout=APART, mode=mode).judged

    assert verdicts(STREAMING, hidden=4) == [[9.0]]  # 1 + 6 + 2; the hidden tests were over at 5
    assert verdicts(STREAMING, hidden=9) == [[12.0]]  # 1 + 9 + 2; the suite was there at 7
    assert verdicts(BARRIER, hidden=4) == [[13.0]]  # 1 + 6 + 2 + 4
    assert verdicts(STREAMING, hidden=None) == verdicts(BARRIER, hidden=None) == [[9.0]]


@pytest.mark.parametrize("mode", MODES)
def test_pooled_cases_are_judged_after_all_verdicts_of_their_question(mode):
    judged = rates(judge={"case_seconds": 1.0}, client={"question_seconds": 0.5})
    work = step([program(1, judged=2, pooled=3), program(4, judged=2, pooled=3), program(1, judged=None)])
    times = simulate_episodes(judged, work, layout=APART, mode=mode)
    assert max(times.judged[0]) == (6.0 if mode == STREAMING else 8.0)
    assert times.seconds == max(times.judged[0]) + 3 + 3 + 0.5


def test_a_questions_references_are_started_once():
    work = step([program(1), program(1)], [program(1)])
    assert seconds(rates(judge={"question_seconds": 5.0}), work) == 11.0


def test_a_program_without_suites_goes_straight_to_the_judge():
    work = step([program(3, judged=2), program(1, [5], judged=2)])
    times = simulate_episodes(rates(judge={"case_seconds": 0.5}), work, layout=APART, mode=STREAMING)
    assert times.judged == [[4.0, 7.0]]


def test_a_program_that_shares_anothers_verdict_costs_no_judge():
    work = step([program(1, judged=None), program(1, judged=2)])
    assert seconds(rates(judge={"case_seconds": 0.5}), work) == 2.0


def test_idle_gpus_are_counted():
    work = step([program(4, [4])])
    assert simulate_episodes(rates(), work, layout=APART, mode=STREAMING).idle_frac == 0.5
    assert simulate_episodes(rates(), work, layout=TOGETHER, mode=STREAMING).idle_frac == 0.0


def with_updates():
    """Updates of 1 s and 0.1 s a token, 0.5 s an optimizer step; sleep 2 s, sync 3 s."""
    raw = rates().plain()
    for name in ("code", "test"):
        raw[name] |= {"sync_seconds": 3.0, "sleep_seconds": 2.0}
        raw[name]["update"] = {
            "fixed_seconds": 1.0,
            "mini_batch_seconds": 0.5,
            "row_seconds": 0.0,
            "token_seconds": 0.1,
        }
    return rates_from(raw)


def test_updates_follow_one_another_on_shared_gpus_and_run_at_once_on_their_own():
    # Code LLM: 2 rows of 10 tokens; Test LLM: 2 suites of 5 tokens of the selected program.
    work = step([program(9, [4, 4], trains_test=True), program(9, [4, 4])])
    together = simulate_step(with_updates(), work, layout=Layout.colocated(2), mode=STREAMING)
    # (2 + 1 + 0.5 + 20 * 0.1 / 2) + (2 + 1 + 0.5 + 10 * 0.1 / 2)
    assert (together.updates, together.sync) == (pytest.approx(8.5), 6.0)
    apart = simulate_step(with_updates(), work, layout=APART, mode=STREAMING)
    # Both sleep and wake one after another; of the updates the longer one: 2 + 2 + (1 + 0.5 + 20 * 0.1)
    assert (apart.updates, apart.sync) == (pytest.approx(7.5), 6.0)
    assert apart.seconds == pytest.approx(apart.episodes + 13.5)
    assert apart.steps_per_gpu_hour == pytest.approx(3600 / apart.seconds / 2)


def test_a_policy_that_does_not_update_sleeps_and_wakes():
    work = step([program(9, [4, 4], trains_test=True), program(9, [4, 4])])
    only_code = simulate_step(with_updates(), work, layout=Layout.colocated(2), mode=STREAMING, updated=("code",))
    assert (only_code.updates, only_code.sync) == (pytest.approx(2 + 2 + 1 + 0.5 + 20 * 0.1 / 2), 6.0)


def test_suites_that_do_not_train_cost_no_update():
    work = step([program(9, [4, 4])])
    assert len(work.trained("test")) == 0
    assert work.mini_batches("test") == 0


def test_the_best_split_gives_the_slower_policy_more_gpus():
    # One request at a time, so that a policy's work is its tokens: 16 programs of 5, 32 suites of 50.
    source = shaped(
        rates(code={"max_num_seqs": 1}, test={"max_num_seqs": 1}),
        questions=8,
        num_candidates=2,
        num_suites=2,
        program_tokens=Lengths(mean=5, sigma=0, cap=100),
        suite_tokens=Lengths(mean=50, sigma=0, cap=100),
    )
    found = compare(source, gpus=8, layouts=("separate",))
    assert all(one.layout.code_gpus <= 2 for one in found.predictions)
    assert {one.mode: found.ratio(one) for one in found.predictions}[BARRIER] == 1.0


@pytest.mark.parametrize("gpus", [2, 3, 8, 16, 50, 64])
def test_the_search_for_a_split_finds_the_bottom_of_a_valley(gpus):
    def predict(code):
        layout = Layout.separate(code, gpus - code)
        return simulate_step(rates(), step([program(abs(code - bottom) + 1)]), layout=layout, mode=STREAMING)

    for bottom in {1, gpus // 3, gpus - 1} - {0}:
        assert best_split(gpus, predict).layout.code_gpus == bottom


shapes = st.fixed_dictionaries(
    {
        "questions": st.integers(1, 6),
        "num_candidates": st.integers(1, 4),
        "num_suites": st.integers(1, 4),
        "program_tokens": st.builds(Lengths, mean=st.just(60), sigma=st.floats(0, 1.5), cap=st.just(300)),
        "suite_tokens": st.builds(Lengths, mean=st.just(40), sigma=st.floats(0, 1.5), cap=st.just(300)),
        "seed": st.integers(0, 1000),
        "update_n": st.just(1),
    }
)
server_rates = st.fixed_dictionaries(
    {
        "request_seconds": st.sampled_from([0.0, 0.01, 0.3]),
        "context_token_seconds": st.sampled_from([0.0, 1e-4]),
        "max_num_seqs": st.sampled_from([2, 16, 256]),
        "demand": st.sampled_from([0.5, 1.0]),
    }
)
layouts = st.sampled_from([Layout.colocated(1), Layout.colocated(3), Layout.separate(1, 1), Layout.separate(1, 3)])


@settings(max_examples=60, deadline=None)
@given(shape=shapes, code=server_rates, test=server_rates, layout=layouts, mode=st.sampled_from(MODES))
def test_every_token_is_generated_and_every_program_goes_through_all_stages(shape, code, test, layout, mode):
    source = shaped(rates(code=code, test=test), **shape)
    work = sample_step(source.workload)
    times = simulate_episodes(source, work, layout=layout, mode=mode)
    programs = work.programs
    assert times.generated_tokens == {
        "code": sum(one.written.response_tokens for one in programs),
        "test": sum(suite.response_tokens for one in programs for suite in one.suites),
    }
    for q, question in enumerate(work.questions):
        for c, one in enumerate(question):
            written, tested = times.written[q][c], times.tested[q][c]
            assert written >= one.written.response_tokens - 1e-6
            assert tested >= written + max(suite.response_tokens for suite in one.suites) - 1e-6
            assert times.judged[q][c] >= tested
    assert 0.0 <= times.idle_frac <= 1.0


@settings(max_examples=60, deadline=None)
@given(shape=shapes, layout=st.sampled_from([Layout.separate(1, 1), Layout.separate(2, 3), Layout.colocated(2)]))
def test_streaming_is_never_slower_where_requests_do_not_slow_one_another(shape, layout):
    """With room for both servers on a GPU and iterations that cost the same for any number of requests.

    Elsewhere it can be slower: two servers that take turns on a GPU each pay an iteration's fixed cost for part of the
    requests (up to 1.6 times slower with a handful of requests), and a server with few slots may meet long suites late.
    """
    source = shaped(rates(code={"demand": 0.5}, test={"demand": 0.5}), **shape)
    work = sample_step(source.workload)
    one_iteration = 1.0  # a suite joins at the end of the one that runs
    assert seconds(source, work, layout=layout) <= seconds(source, work, layout=layout, mode=BARRIER) + one_iteration


@settings(max_examples=40, deadline=None)
@given(shape=shapes, mode=st.sampled_from(MODES), is_shared=st.booleans())
def test_more_gpus_are_never_slower_where_requests_do_not_slow_one_another(shape, mode, is_shared):
    """Elsewhere the balancer, which does not know how long a response will be, may put two long ones together."""
    source = shaped(rates(code={"demand": 0.5}, test={"demand": 0.5}), **shape)
    work = sample_step(source.workload)
    found = [
        seconds(source, work, layout=Layout.colocated(g) if is_shared else Layout.separate(g, g), mode=mode)
        for g in (1, 2, 4)
    ]
    one_iteration = 1.0
    assert found[1] <= found[0] + one_iteration
    assert found[2] <= found[1] + one_iteration


@pytest.mark.parametrize("name", ["paper_1.5b", "paper_7b"])
def test_with_the_shipped_rates_streaming_and_more_gpus_are_faster(name):
    source = shaped(rates_from(read_rates(name)), questions=64)
    work = sample_step(source.workload)

    def step_seconds(gpus, mode):
        layouts = (Layout.colocated(gpus), Layout.separate(gpus // 2, gpus // 2))
        return [simulate_step(source, work, layout=layout, mode=mode).seconds for layout in layouts]

    few, many = step_seconds(8, STREAMING), step_seconds(16, STREAMING)
    for place, barrier in enumerate(step_seconds(8, BARRIER)):
        assert many[place] < few[place] < barrier
