"""What every long run has, whatever it computes: limits, a result, progress, a history, Ctrl-C."""
