"""Sweeps: every point of a specification answered once, and kept in a ledger."""
