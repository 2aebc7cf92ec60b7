"""A run's training questions with the tests that its Test LLM wrote as golden tests."""
