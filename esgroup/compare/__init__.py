"""Comparing methods on problems: runs that are counted from outside, their statistics, tables, figures and a page."""
