"""The dyadic quantized Laplace mechanism: its law, its code, its stream."""
