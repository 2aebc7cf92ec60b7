from code_a1_recipe.algorithm.selection import GROUP_SELECTORS, top_variance


def test_the_candidate_with_the_widest_spread_is_chosen():
    assert top_variance([[0.5, 0.6], [0.2, 0.9], [0.5, 0.5]], update_n=1) == (1,)


def test_several_candidates_come_by_spread():
    assert top_variance([[0.5, 0.6], [0.2, 0.9], [0.1, 0.5]], update_n=2) == (1, 2)


def test_ties_go_to_the_lowest_index_even_when_the_order_of_the_rewards_differs():
    # A plain floating-point sum of squares gives the second a larger variance, by 1.7e-18.
    rewards = [[0.113, 0.35, 0.2], [0.113, 0.2, 0.35], [0.2, 0.35, 0.113]]
    assert top_variance(rewards, update_n=3) == (0, 1, 2)


def test_a_candidate_that_lost_a_suite_to_an_outage_is_not_eligible():
    assert top_variance([[0.0, 1.0, None], [0.5, 0.6, 0.5]], update_n=1) == (1,)


def test_nobody_is_chosen_when_nobody_is_eligible():
    assert top_variance([[None, 0.1], []], update_n=1) == ()
    assert top_variance([], update_n=1) == ()


def test_fewer_are_chosen_when_fewer_are_eligible():
    assert top_variance([[None], [0.1], [0.2]], update_n=3) == (1, 2)


def test_a_group_without_spread_can_be_chosen():
    assert top_variance([[0.5, 0.5], [0.25, 0.25]], update_n=1) == (0,)


def test_all_takes_every_eligible_candidate():
    assert GROUP_SELECTORS["all"]([[0.1], [None], [0.3]], update_n=1) == (0, 2)
