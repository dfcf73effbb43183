"""Questions: the inputs, the outputs, the neighbouring inputs, and the prior of a design."""
