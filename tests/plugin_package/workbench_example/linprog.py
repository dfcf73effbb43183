"""SciPy's linprog as a backend: linear programs, solved afresh every time."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.optimize import linprog

from solvers.contract import Backend, Capabilities
from solvers.session import Raw, Session
from solvers.solution import PointStatus, Termination


class Linprog(Backend):
    name, distribution, module = "linprog", "scipy", "scipy"
    supported_options = frozenset({"threads"})

    def capabilities(self):
        return Capabilities(lp=True)

    def _open(self, program, options):
        return _Session(self, program, options)


class _Session(Session):
    def _build(self, data):
        self._data = data

    def _run(self, start, basis):
        d = self._data
        rows = scipy.sparse.csr_matrix(d.A)
        high, low = np.isfinite(d.row_upper), np.isfinite(d.row_lower)
        found = linprog(
            d.c,
            A_ub=scipy.sparse.vstack([rows[high], -rows[low]]),
            b_ub=np.concatenate([d.row_upper[high], -d.row_lower[low]]),
            bounds=np.column_stack([d.lower, d.upper]),
            method="highs",
        )
        ended = {0: Termination.OPTIMAL, 1: Termination.ITERATION_LIMIT, 2: Termination.INFEASIBLE}
        raw = Raw(ended.get(found.status, Termination.ERROR), found.message)
        if found.x is not None:
            raw.x, raw.point = found.x, PointStatus.FEASIBLE
        return raw
