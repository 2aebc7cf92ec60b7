"""The room (memory, disk, devices) that a run needs, counted before the start. No import loads torch, verl or Ray."""
