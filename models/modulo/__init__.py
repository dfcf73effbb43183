"""Models of additive noise modulo n: the program, fast searches and frontiers."""
