"""Demonstrations for a supervised cold start of the Test LLM."""
