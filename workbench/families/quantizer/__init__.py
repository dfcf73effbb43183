"""Unbiased quantizers of a real input."""
