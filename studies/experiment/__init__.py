"""Experiments: runs a grid of arms and seeds, and compares the arms in tables and figures."""
