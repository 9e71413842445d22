"""What all long runs share, whatever they compute: limits, results, progress, a history, and Ctrl-C."""
