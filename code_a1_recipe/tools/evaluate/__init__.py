"""Evaluates a Code LLM and a Test LLM: sampling, benchmarks, mutation testing, statistics."""
