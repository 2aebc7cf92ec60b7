"""Parts of long commands: resumable stores, judge loops, outputs, progress."""
