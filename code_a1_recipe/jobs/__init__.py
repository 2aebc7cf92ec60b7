"""Parts that long commands share: a resumable store, a parallel judge loop, rules for outputs, a progress bar."""
