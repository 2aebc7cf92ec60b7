"""Further uses of a recorded run: rewards of its rollouts, its tests, its validation."""
