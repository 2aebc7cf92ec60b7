"""Verdicts from reference pass, candidate pass and comparison, also in processes of their own."""
