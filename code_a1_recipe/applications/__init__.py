"""What a trained pair is good for: best of N, attacks on one's own code, cross-play."""
