"""The quality of tests: mutants, coverage, kill matrices, and metrics of generated tests."""
