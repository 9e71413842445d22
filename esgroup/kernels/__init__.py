"""Compiled loops, one module per group that needs them; arrays in, arrays out."""
