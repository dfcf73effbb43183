"""Find optimal private channels on finite inputs: linear programs and an interior-point method."""
