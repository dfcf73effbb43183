"""State the programs of optimal private quantizers."""
