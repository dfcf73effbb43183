"""Exact arithmetic: rationals, balls around e^ε, exact distributions, and draws that follow them."""
