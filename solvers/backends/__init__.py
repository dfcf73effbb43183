"""Solver wrappers: one file for each solver."""
