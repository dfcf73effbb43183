"""Communication-Efficient Laplace Mechanism via Random Quantization: figures, bounds and errata."""
