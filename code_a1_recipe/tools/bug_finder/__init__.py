"""Writes valid tests for a user's own file, by a Test LLM."""
