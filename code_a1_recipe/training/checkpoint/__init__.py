"""Checkpoints: a folder for each saved step with everything that a resumed run needs."""
