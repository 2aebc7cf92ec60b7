"""The training run: trainer, policies, episode and judge actors, checks before the start."""
