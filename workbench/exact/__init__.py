"""Exact arithmetic: rational numbers, comparisons with e^ε, exact distributions, exact draws."""
