"""Estimates, confidence intervals and tables."""
