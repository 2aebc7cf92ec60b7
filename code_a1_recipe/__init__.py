"""Code-A1 on verl: a Code LLM and a Test LLM trained against each other (arXiv 2603.15611)."""
