"""Other ways to write tests, beside a Test LLM and under the same judge; ``python -m examples.baselines``."""
