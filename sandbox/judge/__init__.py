"""Judges candidates: asks the reference, runs the candidate, compares their answers. Also in worker processes."""
