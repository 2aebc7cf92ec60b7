"""What long commands share: resumable stores, judge loops, outputs, progress."""
