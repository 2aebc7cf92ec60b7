"""Finds bugs in a user's own function by generated tests."""
