"""Figures of runs, and the style that all figures share. Needs matplotlib (extra "plot")."""
