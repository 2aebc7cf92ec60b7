"""A run's files: its folder, metrics and rollout records, and the reader of all of them."""
