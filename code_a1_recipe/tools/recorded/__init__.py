"""A recorded run put to use again: rewards of its rollouts, its tests, its validation."""
