"""Models of additive noise on the integers."""
