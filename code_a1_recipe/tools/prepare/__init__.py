"""Training data: prepared problem sets, demonstrations."""
