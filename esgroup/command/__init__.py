"""The command `esgroup`: run, compare, plot, list."""
