"""Bugs in a user's own function, found by generated tests."""
