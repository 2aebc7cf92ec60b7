"""The best of N programs, chosen by generated tests."""
