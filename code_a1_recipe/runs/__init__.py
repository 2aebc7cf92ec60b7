"""A run on disk: its folder, metrics, rollout records, and their reader."""
