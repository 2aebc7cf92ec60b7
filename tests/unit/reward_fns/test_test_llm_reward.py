from dataclasses import replace

import pytest

from reward_fns import test_llm_reward as reward_of_suite
from sandbox import CaseOutcome


def test_a_full_right_suite_that_breaks_nothing_earns_only_its_validity(make_suite, make_verdict):
    reward = reward_of_suite(make_verdict(make_suite(8)), 0, num_cases=8)
    assert reward.parts == {"validity": 0.5, "adversarial": 0.0}


def test_each_failure_of_a_full_suite_earns_one_sixteenth(make_suite, make_verdict):
    totals = [reward_of_suite(make_verdict(make_suite(8, num_failed=n)), 0, num_cases=8).total for n in (1, 4, 8)]
    assert totals == [0.5625, 0.75, 1.0]


def test_one_mistake_met_in_several_spellings_is_one_failure(make_suite, make_verdict):
    suite = make_suite(8, num_failed=6)
    families = ["a", "a", "a", "b", "b", "", "a", ""]
    cases = tuple(replace(case, family=family) for case, family in zip(suite.cases, families, strict=True))
    reward = reward_of_suite(make_verdict(replace(suite, cases=cases)), 0, num_cases=8)
    assert (reward.terms["fail_new"], reward.terms["valid"]) == (3 / 8, 1.0)


def test_alpha_moves_weight_from_difficulty_to_validity(make_suite, make_verdict):
    verdict = make_verdict(make_suite(8, num_failed=2))
    totals = [reward_of_suite(verdict, 0, num_cases=8, alpha=a).total for a in (0.0, 0.25, 1.0)]
    assert totals == [0.25, 0.4375, 1.0]


VALIDITY = {
    "missing cases cost": ({"num_valid": 2}, 0.25),
    "rejected cases cost even beside a full set of valid ones": ({"num_valid": 8, "num_rejected": 2}, 0.75),
    "rejected cases and incorrect assertions add up": (
        {"num_valid": 8, "num_rejected": 1, "num_expected_incorrect": 1},
        0.75,
    ),
    "never below zero": ({"num_valid": 1, "num_rejected": 30}, 0.0),
    "never above one": ({"num_valid": 30}, 1.0),
}


@pytest.mark.parametrize(("numbers", "valid"), VALIDITY.values(), ids=VALIDITY)
def test_validity_is_the_share_of_valid_cases_less_what_is_wrong(make_suite, make_verdict, numbers, valid):
    assert reward_of_suite(make_verdict(make_suite(**numbers)), 0, num_cases=8).terms["valid"] == valid


def test_incorrect_assertions_cost_validity_and_still_count_as_cases(make_suite, make_verdict):
    reward = reward_of_suite(make_verdict(make_suite(8, num_failed=8, num_expected_incorrect=2)), 0, num_cases=8)
    assert reward.parts == {"validity": 0.375, "adversarial": 0.5}


def test_failures_after_the_first_k_valid_cases_earn_nothing(make_verdict, make_suite):
    suite = make_suite(6, num_failed=4)
    verdict = make_verdict(replace(suite, cases=suite.cases[::-1]))  # the last four fail
    assert reward_of_suite(verdict, 0, num_cases=4).terms["fail_new"] == 0.5


def test_history_the_candidate_fails_lowers_the_difficulty_of_new_cases(make_suite, make_verdict):
    suite = make_suite(4, num_failed=2)
    advs = [
        reward_of_suite(make_verdict(suite, num_history=4, num_history_failed=failed), 0, num_cases=4).terms["adv"]
        for failed in (0, 2, 4)
    ]
    assert advs == [0.75, 0.5, 0.25]


@pytest.mark.parametrize("history", [{}, {"num_history": 4}, {"num_history": 4, "num_history_failed": 4}])
def test_an_empty_suite_earns_nothing_whatever_the_history(make_suite, make_verdict, history):
    assert reward_of_suite(make_verdict(make_suite(0), **history), 0, num_cases=4).total == 0.0


def test_the_figures_reading_pays_nothing_without_a_new_failure(make_suite, make_verdict):
    verdict = make_verdict(make_suite(4), num_history=2)
    release = reward_of_suite(verdict, 0, num_cases=4, adversarial="release")
    figure = reward_of_suite(verdict, 0, num_cases=4, adversarial="figure")
    assert (release.terms["adv"], figure.terms["adv"]) == (0.5, 0.0)


def test_a_candidate_that_does_not_load_gives_its_suites_nothing(make_suite, make_verdict):
    suite = make_suite(8, num_failed=8, outcome=CaseOutcome.NOT_LOADED)
    for penalty in (False, True):
        reward = reward_of_suite(
            make_verdict(suite, loaded=False), 0, num_cases=8, response_text="\x00", nonprintable_penalty=penalty
        )
        assert set(map(abs, reward.parts.values())) == {0.0}
        assert reward.terms["valid"] == 1.0


def test_nonprintable_characters_cost_their_share_when_asked_for(make_suite, make_verdict):
    verdict = make_verdict(make_suite(8))
    text = "assert\n\x00\x00"  # 2 of 9 characters; the newline is layout
    without = reward_of_suite(verdict, 0, num_cases=8, response_text=text)
    with_penalty = reward_of_suite(verdict, 0, num_cases=8, response_text=text, nonprintable_penalty=True)
    assert without.total == 0.5
    assert round(with_penalty.total, 6) == 0.277778
    assert with_penalty.terms["nonprintable"] == pytest.approx(2 / 9)
    empty = reward_of_suite(verdict, 0, num_cases=8, response_text="", nonprintable_penalty=True)
    assert (empty.total, empty.terms["nonprintable"]) == (0.5, 0.0)


def test_terms_show_what_the_reward_was_made_of(make_suite, make_verdict):
    verdict = make_verdict(make_suite(3, num_failed=1, num_rejected=2, num_expected_incorrect=1), num_history=2)
    counts = {"num_valid": 3, "num_rejected": 2, "num_expected_incorrect": 1, "num_failed": 1, "num_history": 2}
    rates = {"loaded": 1.0, "valid": 0.25, "adv": 0.625, "fail_new": 0.25, "fail_hist": 0.0, "nonprintable": 0.0}
    assert reward_of_suite(verdict, 0, num_cases=4).terms == counts | rates
    nothing = reward_of_suite(make_verdict(make_suite(0)), 0, num_cases=4).terms
    assert set(nothing.values()) == {0.0, 1.0}
    assert [name for name, value in nothing.items() if value] == ["loaded"]


def test_the_suite_is_chosen_by_its_index(make_suite, make_verdict):
    verdict = make_verdict(make_suite(8), make_suite(8, num_failed=8))
    assert [reward_of_suite(verdict, s, num_cases=8).total for s in (0, 1)] == [0.5, 1.0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *(({"num_cases": number}, "num_cases") for number in ("8", 0, 2.5, None)),
        ({"alpha": 1.5}, "got 1.5"),
        ({"alpha": -0.5}, "got -0.5"),
        ({"suite_index": 1}, "suite_index"),
        ({"suite_index": 2}, "suite_index"),
        ({"suite_index": -1}, "suite_index"),
        ({"adversarial": "figur"}, "known: figure, release"),
    ],
)
def test_a_wrong_argument_is_named_with_its_rule(make_suite, make_verdict, changes, words):
    arguments = {"suite_index": 0, "num_cases": 8} | changes
    with pytest.raises(ValueError, match=words):
        reward_of_suite(make_verdict(make_suite(8)), **arguments)
