"""Find unbiased label randomizers with the smallest squared loss."""
