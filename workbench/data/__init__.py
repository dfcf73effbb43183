"""Reading what users bring: arrays of any library, labels, and numbers that a program computed in floats."""
