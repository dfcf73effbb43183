"""Imported once by the process that workers are forked from: what every design needs, so that a new worker is there at
once and shares its memory."""

import contextlib
import gc
import importlib

with contextlib.suppress(Exception):  # a worker that needs it says what is wrong
    for _name in ("workbench.explorer.tasks", "models.noise", "solvers.highs", "scipy.optimize"):
        importlib.import_module(_name)
    gc.collect()
    gc.freeze()
