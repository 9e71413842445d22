"""Figures of runs, and the style that all figures share. They need matplotlib, from the extra "plot"."""
