"""Judges candidates: the reference answers the calls, the candidate runs, and their answers are compared."""
