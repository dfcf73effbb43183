"""Design Laplace noise in few bits (dyadic quantized Laplace)."""
