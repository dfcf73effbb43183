"""Find optimal additive noise modulo n + 1: programs, fast searches and frontiers."""
