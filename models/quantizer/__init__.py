"""Models of private quantizers."""
