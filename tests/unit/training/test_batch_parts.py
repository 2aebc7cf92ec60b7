"""Parts of a step cover it, keep every rank's rows and cut no group."""

from hypothesis import given, strategies as st

from code_a1_recipe.training.batch_parts import balanced_parts, group_parts


@given(st.integers(1, 5), st.integers(0, 40), st.integers(1, 20))
def test_balanced_parts_cover_every_row_once_and_keep_it_with_its_rank(ranks, block, at_once):
    parts = balanced_parts(ranks * block, ranks=ranks, at_once=at_once)
    assert sorted(place for part in parts for place in part) == list(range(ranks * block))
    for part in parts:
        assert len(part) <= max(at_once, ranks)
        share = len(part) // ranks
        for rank in range(ranks):
            assert all(place // block == rank for place in part[rank * share : (rank + 1) * share])


@given(st.lists(st.sampled_from("abcdef")), st.integers(1, 10))
def test_group_parts_cover_every_row_once_and_cut_no_group(groups, at_once):
    parts = group_parts(groups, at_once=at_once)
    assert sorted(place for part in parts for place in part) == list(range(len(groups)))
    homes = [{groups[place] for place in part} for part in parts]
    assert sum(map(len, homes)) == len(set(groups))
    for part, home in zip(parts, homes, strict=True):
        assert len(part) <= at_once or len(home) == 1


def test_a_small_step_is_one_part_in_its_order():
    assert balanced_parts(6, ranks=2, at_once=100) == [[0, 1, 2, 3, 4, 5]]
    assert group_parts(["a", "a", "b"], at_once=100) == [[0, 1, 2]]
