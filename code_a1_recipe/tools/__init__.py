"""Tools beyond training: evaluation, data preparation, reports, uses of a recorded run or of a trained pair."""
