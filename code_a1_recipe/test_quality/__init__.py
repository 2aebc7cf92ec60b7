"""What tests are worth: mutants, coverage, kill matrices, and metrics of generated tests."""
