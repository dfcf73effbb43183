"""Who solves: programs in sparse standard form, and interchangeable backends that answer them.

Nothing here knows about privacy, and nothing here imports the other rooms.
"""

# Lets the workbench tell this package from a stranger's `solvers` folder on the same path.
__workbench_package__ = True
