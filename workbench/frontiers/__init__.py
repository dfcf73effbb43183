"""Compute trade-offs between privacy and loss."""
