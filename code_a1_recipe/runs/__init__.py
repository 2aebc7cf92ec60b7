"""A run on disk: its folder, metrics and rollout records, and their reader."""
