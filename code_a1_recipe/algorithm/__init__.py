"""The paper's algorithm (Code-A1, arXiv 2603.15611). Needs neither torch nor verl nor Ray."""
