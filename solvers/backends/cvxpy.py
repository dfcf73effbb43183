"""Conic solvers behind CVXPY's own interfaces: Clarabel, SCS and whatever else it finds. A yardstick, not a fast path.

The program is handed to CVXPY as a constant problem and canonicalised afresh for every solve; there is no hot start.

Traps handled here: CVXPY blurs statuses, so the solver's own word decides where its result has one; what these solvers
call unbounded (dual infeasible) says nothing of feasibility, so it is decided by a second solve; SCS is a
first-order method, whose points violate rows by about its tolerance (residuals show it); SCS would take as many
threads as MKL pleases (its own single-threaded factorisation is used instead).
"""

from __future__ import annotations

import warnings
from operator import eq, ge, le
from typing import Any

import numpy as np

from workbench.solvers.arrays import Flags, Vector
from workbench.solvers.contract import Backend, is_importable
from workbench.solvers.errors import UnsupportedOption
from workbench.solvers.program import Data, Program
from workbench.solvers.session import Options, Raw, Session
from workbench.solvers.solution import DualValues, PointStatus, Start, Termination


class _CvxpySession(Session):
    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        super().__init__(owner, program, options)
        import cvxpy

        assert owner.variant is not None
        self._cp, self._solver = cvxpy, owner.variant.upper()
        self._settings = (
            {"linear_solver": "qdldl"} if owner.variant == "scs" else {}
        ) | owner.translate_options(options)
        if options.native:
            self._try_settings()

    def _try_settings(self) -> None:
        """Refuse settings the solver does not know now, not at the first solve: by one iteration on x >= 0."""
        settings = dict(self._settings)
        for word in self.owner.table["options"].get("iteration_limit", ()):
            if not isinstance(settings.get(word), str):
                settings[word] = 1
        x = self._cp.Variable()
        problem = self._cp.Problem(self._cp.Minimize(x), [x >= 0])
        try:
            data, chain, _ = problem.get_problem_data(self._solver, solver_opts=dict(settings))
            chain.solve_via_data(problem, data, False, False, dict(settings))
        except Exception as error:
            given = ", ".join(f"{key} = {value!r}" for key, value in self.options.native.items())
            raise UnsupportedOption(
                f"{self.owner.label} cannot honour the option {given}: {error}."
            ) from None

    def _build(self, data: Data) -> None:
        cp = self._cp
        x, A = cp.Variable(data.c.size), data.A.tocsr()

        def sides(low: Vector, high: Vector) -> list[tuple[Any, Flags, Vector, float]]:
            """(relation, where it holds, right sides, sign of its multipliers)."""
            equal = low == high
            below, above = np.isfinite(high) & ~equal, np.isfinite(low) & ~equal
            return [(eq, equal, low, -1.0), (le, below, high, -1.0), (ge, above, low, 1.0)]

        # constraint, its rows, sign of its multipliers
        self._parts: list[tuple[Any, Flags, float]] = [
            (relation(A[rows] @ x, right[rows]), rows, sign)
            for relation, rows, right, sign in sides(data.row_lower, data.row_upper)
            if rows.any()
        ]
        constraints = [part[0] for part in self._parts]
        fixed, high, low = sides(data.lower, data.upper)
        constraints += [
            relation(x[some], ends[some])
            for relation, some, ends, _ in (fixed, low, high)
            if some.any()
        ]
        if self.program.cones is not None:
            first, *others = (x[column] for column in self.program.cones.T)
            constraints.append(cp.SOC(first, cp.vstack(others)))
        self._x, self._data = x, data
        self._problem = cp.Problem(cp.Minimize(data.c @ x + data.offset), constraints)
        self._canonical = self._problem.get_problem_data(
            self._solver, solver_opts=dict(self._settings)
        )

    def _run(self, start: Start, basis: Any) -> Raw:
        problem, (data, chain, inverse) = self._problem, self._canonical
        left = self._deadline.solver_time_limit
        settings = dict(self._settings)
        for key in self.owner.table["options"].get("time_limit", ()) if left is not None else ():
            settings |= {} if key in self.options.native else {key: left}
        word = ""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # CVXPY's "may be inaccurate" and deprecations of its solvers
            try:
                native = chain.solve_via_data(problem, data, False, False, settings)
                word = _word(native)
                problem.unpack_results(native, chain, inverse)
            except self._cp.error.SolverError as error:
                word = word or str(error)
        status = problem.status or "solver_error"
        raw = Raw(self._ended(word, status), f"{status} ({word})" if word else status)
        stats = problem.solver_stats
        raw.iterations = (
            int(stats.num_iters) if stats is not None and stats.num_iters is not None else None
        )
        if self._x.value is not None:
            raw.x = np.array(self._x.value, dtype=float)
            raw.point = (
                PointStatus.FEASIBLE
                if raw.termination is Termination.OPTIMAL
                else PointStatus.INFEASIBLE
            )
        multipliers = self._multipliers()
        if multipliers is not None and raw.x is not None:
            raw.dual_values = DualValues(multipliers, self._data.c - self._data.A.T @ multipliers)
            raw.dual = (
                PointStatus.FEASIBLE
                if raw.termination is Termination.OPTIMAL
                else PointStatus.INFEASIBLE
            )
        elif (
            raw.termination is Termination.INFEASIBLE
            and self.owner.capabilities().infeasibility_certificate
        ):
            raw.ray = multipliers
        return raw

    def _ended(self, word: str, status: str) -> Termination:
        """By the solver's own word, or failing that by CVXPY's."""
        for spelling in (word.lower(), status):
            if spelling in self.owner.table["ends"]:
                return Termination(self.owner.ended(spelling))
            if "time_limit" in spelling:  # SCS: "solved (inaccurate - reached time_limit_secs)"
                return Termination.TIME_LIMIT
            if "max_iters" in spelling:
                return Termination.ITERATION_LIMIT
            if any(part in spelling for part in ("inaccurate", "almost", "error", "progress")):
                return Termination.NUMERICAL
        return Termination.ERROR

    def _multipliers(self) -> Vector | None:
        """Row multipliers in this room's signs; None when some are missing."""
        y = np.zeros(self._data.row_lower.size)
        for constraint, rows, sign in self._parts:
            value = constraint.dual_value
            if value is None or not np.isfinite(value).all():
                return None
            y[rows] += sign * np.asarray(value, dtype=float)
        return y


def _word(native: Any) -> str:
    """The status in the solver's own words, where its result carries them."""
    if isinstance(native, dict):
        return str(native.get("info", {}).get("status", ""))
    return str(getattr(native, "status", ""))


class Cvxpy(Backend):
    """A continuous solver through CVXPY; without a variant, Clarabel."""

    name = "cvxpy"
    session = _CvxpySession

    def is_installed(self) -> bool:
        """CVXPY and the solver itself; neither is imported."""
        return is_importable("cvxpy") and is_importable(self.module)

    def _resolve(self, program: Program) -> Backend:
        return self if self.variant is not None else Cvxpy("clarabel")
