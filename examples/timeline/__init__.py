"""A study: where one training step's seconds went, from a run's records."""
