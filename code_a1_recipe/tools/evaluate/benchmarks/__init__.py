"""Benchmarks as tasks for a Code LLM."""
