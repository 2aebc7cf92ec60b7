"""Checkpoints: one folder a step with everything that a resume needs."""
