"""Additive noise on all integers, or on all reals."""
