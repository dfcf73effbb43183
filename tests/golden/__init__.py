"""Recorded results of commands, with which the current results are compared (see `values`)."""
