"""Optima as closed forms in e^epsilon, with certificates and plots."""
