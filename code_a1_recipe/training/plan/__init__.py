"""The room that a run needs on a machine, counted before anything starts. No import here loads torch, verl or Ray."""
