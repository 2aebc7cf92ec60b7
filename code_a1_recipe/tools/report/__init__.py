"""Shows what runs have learned: measures over recorded rollouts, intervals, reports, model cards."""
