"""Turns the source of an assert into a case, or into a rejection with a reason. Nothing is executed."""
