"""Predicts the seconds of a training step from measured rates: layouts, barrier or streaming, numbers of GPUs."""
