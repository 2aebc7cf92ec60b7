"""Quick checks of a runner on this machine: what `python -m sandbox check` runs."""
