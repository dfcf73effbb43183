"""Exact arithmetic: rationals, balls around e^ε, exact distributions and draws from them."""
