"""Confinement: rlimits, Landlock, seccomp and namespaces leave a process nothing but to compute."""
