"""Training data: prepared problem sets, demonstrations, harvested tests."""
