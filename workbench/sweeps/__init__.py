"""Run sweeps: solve every point of a specification once and store the answers in a ledger."""
