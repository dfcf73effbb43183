"""Solver backends, one file for each solver."""
