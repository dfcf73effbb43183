"""Design unbiased private quantizers of a real input."""
