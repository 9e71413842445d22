"""Kernels, a module for each group that needs them: arrays in and out."""
