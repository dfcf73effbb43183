"""Compare solvers on requests and programs, and compare designs with known formulas."""
