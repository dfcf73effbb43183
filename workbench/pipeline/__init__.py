"""The path of a request: options, request, problem, design.

Importing this package registers the solvers of installed plug-ins in `workbench.solvers`, which
imports nothing from the workbench.
"""

from functools import partial

from workbench.io.plugins import list_extensions
from workbench.solvers.backend import set_external_backends

set_external_backends(partial(list_extensions, "backends"))
