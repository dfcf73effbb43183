"""Closed forms and combinatorial algorithms, each with its domain of validity."""
