"""Find optimal additive noise on the integers, for one run or several."""
