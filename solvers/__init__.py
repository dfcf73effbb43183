"""Linear programs in sparse standard form, and interchangeable solvers for them.

This package knows nothing about privacy. It imports neither the models nor another part of the
workbench.
"""
