"""Compiled loops, one module for each group that needs them: arrays in, arrays out."""
