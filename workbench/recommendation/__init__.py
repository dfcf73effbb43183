"""Recommendation: the best mechanism of every class for one query."""
