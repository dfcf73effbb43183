"""Solvers compared on one request or on a suite of programs; models verified against closed forms."""
