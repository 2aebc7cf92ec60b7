"""What a trained pair is good for: best of N, and attacks on one's own code."""
