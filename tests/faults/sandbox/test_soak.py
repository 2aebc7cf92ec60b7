"""Short seeded versions of ``python -m studies.judge_benchmark``."""

import pytest

from studies.judge_benchmark.kills import run_kills
from studies.judge_benchmark.soak import run_programs


def test_a_pool_is_after_hundreds_of_programs_as_it_was_before():
    found = run_programs(300, num_workers=2, report=lambda sample: None)
    assert found["wrong_answers"] == 0
    assert found["descriptor_growth"] == 0
    assert found["fork_servers_growth"] < 0.05


@pytest.mark.nightly
def test_kills_at_random_moments_invent_no_verdict_and_leave_nothing():
    found = run_kills(8, seed=3, num_questions=2)
    assert {key: found[key] for key in ("differing", "orphans")} == {"differing": 0, "orphans": 0}
    assert found["verdicts"] >= 16
