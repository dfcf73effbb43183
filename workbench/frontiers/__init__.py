"""Trade-offs between privacy and error."""

import workbench.families  # noqa: F401  (refuses foreign packages that are named models or solvers)
