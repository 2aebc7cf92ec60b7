"""The quality of tests: mutants, coverage, and metrics of generated tests."""
