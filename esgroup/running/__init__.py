"""What all long runs share: limits, results, progress, a history, and Ctrl-C."""
