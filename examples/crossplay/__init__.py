"""A study: every saved Code LLM of a run against every saved Test LLM."""
