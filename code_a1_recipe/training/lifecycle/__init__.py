"""The life of a run's process: launch, signals, failures, clean-up."""
