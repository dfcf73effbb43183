"""A backend that solves linear programs by SciPy's linprog."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.optimize import linprog

from workbench.solvers.contract import Backend, Capabilities
from workbench.solvers.errors import UnsupportedOption
from workbench.solvers.session import Raw, Session
from workbench.solvers.solution import DualValues, PointStatus, Termination

# Status codes of SciPy.
_TERMINATIONS = {
    0: Termination.OPTIMAL,
    1: Termination.ITERATION_LIMIT,
    2: Termination.INFEASIBLE,
    3: Termination.UNBOUNDED,
    4: Termination.INFEASIBLE_OR_UNBOUNDED,
}


class Linprog(Backend):
    """SciPy's linprog. It starts cold in every solve."""

    name = "linprog"
    distribution = "scipy"
    module = "scipy"
    supported_options = frozenset({"threads"})

    def capabilities(self):
        """Claim linear programs with their dual values."""
        return Capabilities(lp=True, duals=True)

    def _open(self, program, options):
        """Open a session, or refuse options that linprog does not have."""
        session = _Session(self, program, options)
        if options.threads not in (None, 1):
            raise UnsupportedOption(
                f"{self.label} runs on one thread. Got threads = {options.threads}."
            )
        for option, value in options.native.items():
            raise session.build_option_error(option, value)
        return session


class _Session(Session):
    """A session that passes the numbers to linprog at each solve."""

    def _build(self, data):
        """Keep the numbers of the program, because linprog has no object that could keep them."""
        self._data = data

    def _run(self, start, basis):
        """Solve the program. Every row is passed as up to two rows of the form a x <= b.

        SciPy's marginals are the slopes of the optimum in b. The dual value of a row is its slope
        in both of its sides.
        """
        data = self._data
        rows = scipy.sparse.csr_matrix(data.A)
        has_upper = np.isfinite(data.row_upper)
        has_lower = np.isfinite(data.row_lower)
        result = linprog(
            data.c,
            A_ub=scipy.sparse.vstack([rows[has_upper], -rows[has_lower]]),
            b_ub=np.concatenate([data.row_upper[has_upper], -data.row_lower[has_lower]]),
            bounds=np.column_stack([data.lower, data.upper]),
            method="highs",
        )
        raw = Raw(_TERMINATIONS[result.status], result.message)
        if result.x is not None:
            raw.x = result.x
            raw.point = PointStatus.FEASIBLE
        if result.status == 0:
            upper_slopes, lower_slopes = np.split(result.ineqlin.marginals, [has_upper.sum()])
            row_dual = np.zeros(data.row_upper.size)
            row_dual[has_upper] += upper_slopes
            row_dual[has_lower] -= lower_slopes
            raw.dual_values = DualValues(row_dual, data.c - data.A.T @ row_dual)
            raw.dual = PointStatus.FEASIBLE
        return raw
