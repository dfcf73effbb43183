"""Programs in sparse standard form, and interchangeable solvers that answer them.

Nothing here knows about privacy, and nothing here imports the models or another part of the workbench.
"""
