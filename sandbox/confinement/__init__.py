"""Confines processes by rlimits, Landlock, seccomp and namespaces, so that they can only compute."""
