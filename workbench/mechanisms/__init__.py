"""Mechanisms with exact laws: those that designs return, and those that they are compared with."""
