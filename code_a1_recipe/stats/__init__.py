"""Estimates, confidence intervals, ratings and tables."""
