"""What runs have learned: measures over recorded rollouts, intervals, experiments of many runs, reports."""
