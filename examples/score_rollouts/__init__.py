"""A study: rollouts on disk through extraction, judge and rewards once more."""
