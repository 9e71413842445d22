"""A search as one call: evaluation in processes, restarts, files, SciPy's interface."""
