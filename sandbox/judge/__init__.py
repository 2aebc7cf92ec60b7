"""Verdicts: reference pass, candidate pass, comparison; alone and in processes of their own."""
