"""Rollouts on disk through extraction, judge and rewards again."""
