"""Every saved Code LLM against every saved Test LLM."""
