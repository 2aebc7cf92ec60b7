"""The command line ``code-a1``."""
