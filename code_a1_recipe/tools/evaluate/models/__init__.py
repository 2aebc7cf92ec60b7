"""Models that answer: engines, endpoints, checkpoints, and their stored responses."""
