"""Solvers compared on one request or on a suite of programs; models verified against closed forms."""

import workbench.families  # noqa: F401  (refuses foreign packages that are named models or solvers)
