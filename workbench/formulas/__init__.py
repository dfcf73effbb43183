"""Compute optimal losses as closed formulas in e^epsilon, with certificates and plots."""
