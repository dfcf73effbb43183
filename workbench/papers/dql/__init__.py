"""The paper on the dyadic quantized Laplace mechanism (DQL): its figures, bounds and errata."""
