"""Models of unbiased label randomizers."""
