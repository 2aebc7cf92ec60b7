"""Quick checks of a runner on this machine, for ``python -m sandbox check``."""
