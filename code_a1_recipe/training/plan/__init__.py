"""The room that a run needs on a machine, counted before the run starts. No import here loads torch, verl or Ray."""
