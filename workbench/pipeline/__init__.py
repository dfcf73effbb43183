"""The path of a request: options, request, problem, design.

Importing this package makes the solvers of installed plug-ins known to `workbench.solvers`, which itself
imports nothing of the workbench.
"""

from functools import partial

from workbench.io.plugins import added
from workbench.solvers.backend import extend

extend(partial(added, "backends"))
