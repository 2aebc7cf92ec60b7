"""Rules of judging that belong to single benchmarks."""
