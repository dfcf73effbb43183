"""SciPy's linprog as a backend: linear programs, solved afresh every time."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.optimize import linprog

from workbench.solvers.contract import Backend, Capabilities
from workbench.solvers.errors import UnsupportedOption
from workbench.solvers.session import Raw, Session
from workbench.solvers.solution import DualValues, PointStatus, Termination


class Linprog(Backend):
    """SciPy's linprog."""

    name, distribution, module = "linprog", "scipy", "scipy"
    supported_options = frozenset({"threads"})

    def capabilities(self):
        return Capabilities(lp=True, duals=True)

    def _open(self, program, options):
        session = _Session(self, program, options)
        if options.threads not in (None, 1):
            raise UnsupportedOption(
                f"{self.label} runs on one thread. Got threads = {options.threads}."
            )
        for option, value in options.native.items():
            raise session.build_option_error(option, value)
        return session


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
        endings = {
            0: Termination.OPTIMAL,
            1: Termination.ITERATION_LIMIT,
            2: Termination.INFEASIBLE,
            3: Termination.UNBOUNDED,
            4: Termination.INFEASIBLE_OR_UNBOUNDED,
        }
        raw = Raw(endings[found.status], found.message)
        if found.x is not None:
            raw.x, raw.point = found.x, PointStatus.FEASIBLE
        if found.status == 0:
            slopes = np.split(found.ineqlin.marginals, [high.sum()])
            row_dual = np.zeros(d.row_upper.size)
            row_dual[high] += slopes[0]
            row_dual[low] -= slopes[1]
            raw.dual_values = DualValues(row_dual, d.c - d.A.T @ row_dual)
            raw.dual = PointStatus.FEASIBLE
        return raw
