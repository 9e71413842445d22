"""Compiled kernels, one module for each group that needs them: arrays in and out."""
