"""Exact arithmetic for linear programs, polynomials and parametric programs."""
