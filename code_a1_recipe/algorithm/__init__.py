"""The paper's algorithm (Code-A1, arXiv 2603.15611). The package needs neither torch nor verl nor Ray."""
