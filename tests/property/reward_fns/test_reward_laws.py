"""Laws of the two rewards, for any verdict."""

from hypothesis import given, strategies as st

from reward_fns import ADVERSARIAL_READINGS, code_llm_reward, test_llm_reward as reward_of_suite

counts = st.integers(min_value=0, max_value=12)
readings = st.sampled_from(sorted(ADVERSARIAL_READINGS))
alphas = st.floats(min_value=0.0, max_value=1.0)
num_cases = st.integers(min_value=1, max_value=10)


@st.composite
def suite_numbers(draw):
    num_valid = draw(counts)
    within = st.integers(min_value=0, max_value=num_valid)
    return {
        "num_valid": num_valid,
        "num_failed": draw(within),
        "num_expected_incorrect": draw(within),
        "num_rejected": draw(counts),
    }


@st.composite
def history_numbers(draw):
    num_history = draw(counts)
    return {"num_history": num_history, "num_history_failed": draw(st.integers(min_value=0, max_value=num_history))}


@given(suites=st.lists(suite_numbers(), max_size=5), history=history_numbers())
def test_the_code_reward_is_a_share_and_the_sum_of_its_parts(make_suite, make_verdict, suites, history):
    reward = code_llm_reward(make_verdict(*(make_suite(**numbers) for numbers in suites), **history))
    assert 0.0 <= reward.total <= 1.0
    assert abs(reward.total - sum(reward.parts.values())) < 1e-6


@given(suite=suite_numbers(), history=history_numbers(), alpha=alphas, reading=readings, k=num_cases)
def test_the_test_reward_is_a_share_and_the_sum_of_its_parts(
    make_suite, make_verdict, suite, history, alpha, reading, k
):
    verdict = make_verdict(make_suite(**suite), **history)
    reward = reward_of_suite(verdict, 0, num_cases=k, alpha=alpha, adversarial=reading)
    assert 0.0 <= reward.total <= 1.0
    assert abs(reward.total - sum(reward.parts.values())) < 1e-6
    assert all(0.0 <= reward.terms[name] <= 1.0 for name in ("valid", "adv", "fail_new", "fail_hist"))


@given(suite=suite_numbers(), text=st.text(), k=num_cases)
def test_the_penalty_only_takes_away_and_at_most_one(make_suite, make_verdict, suite, text, k):
    verdict = make_verdict(make_suite(**suite))
    plain = reward_of_suite(verdict, 0, num_cases=k, response_text=text)
    less = reward_of_suite(verdict, 0, num_cases=k, response_text=text, nonprintable_penalty=True)
    assert plain.total - 1.0 - 1e-6 <= less.total <= plain.total


@given(num_valid=st.integers(min_value=1, max_value=8), history=history_numbers(), reading=readings)
def test_more_failures_never_pay_the_code_more_or_the_tests_less(make_suite, make_verdict, num_valid, history, reading):
    verdicts = [make_verdict(make_suite(num_valid, num_failed=failed), **history) for failed in range(num_valid + 1)]
    codes = [code_llm_reward(verdict).total for verdict in verdicts]
    tests = [reward_of_suite(v, 0, num_cases=8, adversarial=reading).total for v in verdicts]
    assert codes == sorted(codes, reverse=True)
    assert tests == sorted(tests)
    assert len(set(codes)) == len(set(tests)) == num_valid + 1


@given(suite=suite_numbers(), k=num_cases)
def test_another_rejected_case_never_pays(make_suite, make_verdict, suite, k):
    worse = suite | {"num_rejected": suite["num_rejected"] + 1}
    totals = [reward_of_suite(make_verdict(make_suite(**numbers)), 0, num_cases=k).total for numbers in (suite, worse)]
    assert totals[1] <= totals[0]


@given(suites=st.lists(suite_numbers(), min_size=1, max_size=5), history=history_numbers())
def test_the_order_of_suites_does_not_matter_to_the_code(make_suite, make_verdict, suites, history):
    built = [make_suite(**numbers) for numbers in suites]
    forward = code_llm_reward(make_verdict(*built, **history)).total
    backward = code_llm_reward(make_verdict(*built[::-1], **history)).total
    assert abs(forward - backward) < 1e-6


@given(suite=suite_numbers(), history=history_numbers(), alpha=alphas, reading=readings)
def test_the_two_readings_differ_only_without_a_new_failure(make_suite, make_verdict, suite, history, alpha, reading):
    verdict = make_verdict(make_suite(**suite), **history)
    release = reward_of_suite(verdict, 0, num_cases=12, alpha=alpha, adversarial="release")
    figure = reward_of_suite(verdict, 0, num_cases=12, alpha=alpha, adversarial="figure")
    assert figure.total <= release.total
    if suite["num_failed"]:
        assert figure == release
