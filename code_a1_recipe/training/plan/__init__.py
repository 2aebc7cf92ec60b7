"""What a run needs of a machine, counted before anything starts; nothing here imports torch, verl or Ray at its top."""
