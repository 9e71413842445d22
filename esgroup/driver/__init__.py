"""A search as one call: processes, restarts, files, SciPy's interface."""
