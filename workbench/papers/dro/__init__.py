"""Reproduce the tables of Differential Privacy via Distributionally Robust Optimization."""
