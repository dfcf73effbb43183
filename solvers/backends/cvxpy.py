"""Backend "cvxpy": conic solvers through CVXPY's interfaces, such as Clarabel and SCS.

These solvers are used for comparison and are not fast: CVXPY canonicalizes the program again for
every solve. There is no hot start.

This file works around these properties:

* CVXPY merges statuses, so the status of the solver itself is used when its result has one.
* These solvers report "unbounded" (dual infeasible) without saying whether the program is feasible.
  `Session` decides this by a second solve.
* SCS is a first-order method: its points violate rows by about its tolerance (see the residuals).
* SCS would use all threads that MKL offers, so its own single-threaded factorization is used.
"""

from __future__ import annotations

import warnings
from operator import eq, ge, le
from typing import Any, NamedTuple

import numpy as np

from workbench.solvers.arrays import Flags, Vector
from workbench.solvers.contract import Backend, is_importable
from workbench.solvers.errors import UnsupportedOption
from workbench.solvers.program import Data, Program
from workbench.solvers.session import Options, Raw, Session
from workbench.solvers.solution import DualValues, PointStatus, Start, Termination


class _Relation(NamedTuple):
    """One side of low <= v <= high, for the entries of v that have this side.

    Attributes:
        compare: operator that states the relation of v and a number: ==, <= or >=.
        holds_at: (entries of v,) which entries have this side.
        numbers: (entries of v,) the side. It is infinite only where `holds_at` is False.
        multiplier_sign: factor from CVXPY's dual values to those of `workbench.solvers.solution`.
    """

    compare: Any
    holds_at: Flags
    numbers: Vector
    multiplier_sign: float

    def state(self, v: Any) -> Any:
        """Return the relation as a constraint of the CVXPY expression v."""
        return self.compare(v[self.holds_at], self.numbers[self.holds_at])


class _CvxpySession(Session):
    """A session that passes the program to CVXPY as a problem with constant data."""

    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        super().__init__(owner, program, options)
        import cvxpy

        assert owner.variant is not None
        self._cp = cvxpy
        self._solver = owner.variant.upper()
        settings = {"linear_solver": "qdldl"} if owner.variant == "scs" else {}
        self._settings = settings | owner.translate_options(options)
        if options.native:
            self._try_settings()

    def _try_settings(self) -> None:
        """Solve min x, x >= 0 in one iteration, so that unknown settings are refused now."""
        settings = dict(self._settings)
        for name in self.owner.table["options"].get("iteration_limit", ()):
            # A text is no number of iterations. It is kept, so that the solver refuses it.
            if not isinstance(settings.get(name), str):
                settings[name] = 1
        x = self._cp.Variable()
        problem = self._cp.Problem(self._cp.Minimize(x), [x >= 0])
        try:
            data, chain, _ = problem.get_problem_data(self._solver, solver_opts=dict(settings))
            chain.solve_via_data(
                problem, data, warm_start=False, verbose=False, solver_opts=dict(settings)
            )
        except Exception as error:
            names = ", ".join(f"{key} = {value!r}" for key, value in self.options.native.items())
            raise UnsupportedOption(
                f"{self.owner.label} cannot honour the option {names}: {error}."
            ) from None

    def _build(self, data: Data) -> None:
        """Build the CVXPY problem of the data, and its canonical form for the solver."""
        cp = self._cp
        x = cp.Variable(data.c.size)
        row_values = data.A.tocsr() @ x
        # The constraints of rows are kept, because their multipliers are read after the solve.
        self._row_constraints = [
            (relation.state(row_values), relation)
            for relation in _split_sides(data.row_lower, data.row_upper)
        ]
        constraints = [constraint for constraint, _ in self._row_constraints]
        # CVXPY's canonical form depends on this order: fixed columns, upper and lower bounds.
        constraints += [relation.state(x) for relation in _split_sides(data.lower, data.upper)]
        if self.program.cones is not None:
            first, *components = (x[column] for column in self.program.cones.T)
            constraints.append(cp.SOC(first, cp.vstack(components)))
        self._x = x
        self._data = data
        self._problem = cp.Problem(cp.Minimize(data.c @ x + data.offset), constraints)
        self._canonical_form = self._problem.get_problem_data(
            self._solver, solver_opts=dict(self._settings)
        )

    def _run(self, start: Start, basis: Any) -> Raw:
        """Solve the canonical form from scratch and return the result. `basis` is ignored."""
        problem = self._problem
        data, chain, inverse_data = self._canonical_form
        settings = self._settings_with_time_limit()
        native_status = ""
        with warnings.catch_warnings():
            # CVXPY warns that solutions may be inaccurate, and its solvers use deprecated calls.
            warnings.simplefilter("ignore")
            try:
                result = chain.solve_via_data(
                    problem, data, warm_start=False, verbose=False, solver_opts=settings
                )
                native_status = _read_native_status(result)
                problem.unpack_results(result, chain, inverse_data)
            except self._cp.error.SolverError as error:
                native_status = native_status or str(error)
        status = problem.status or "solver_error"
        raw_status = status
        if native_status:
            raw_status = f"{status} ({native_status})"
        raw = Raw(self._classify_status(native_status, status), raw_status)
        statistics = problem.solver_stats
        if statistics is not None and statistics.num_iters is not None:
            raw.iterations = int(statistics.num_iters)
        is_optimal = raw.termination is Termination.OPTIMAL
        # CVXPY states one status for the point and its dual values.
        point_status = PointStatus.FEASIBLE if is_optimal else PointStatus.INFEASIBLE
        if self._x.value is not None:
            raw.x = np.array(self._x.value, dtype=float)
            raw.point = point_status
        multipliers = self._read_multipliers()
        if multipliers is not None and raw.x is not None:
            reduced_cost = self._data.c - self._data.A.T @ multipliers
            raw.dual_values = DualValues(multipliers, reduced_cost)
            raw.dual = point_status
        elif (
            raw.termination is Termination.INFEASIBLE
            and self.owner.capabilities().infeasibility_certificate
        ):
            raw.ray = multipliers
        return raw

    def _settings_with_time_limit(self) -> dict[str, Any]:
        """Return the settings, with the remaining time unless the user gave a native limit."""
        settings = dict(self._settings)
        time_limit = self._deadline.solver_time_limit
        if time_limit is not None:
            for name in self.owner.table["options"].get("time_limit", ()):
                if name not in self.options.native:
                    settings[name] = time_limit
        return settings

    def _classify_status(self, native_status: str, status: str) -> Termination:
        """Return the termination that the statuses mean.

        Args:
            native_status: status of the solver itself, which is tried first. "" if it has none.
            status: status of CVXPY.
        """
        for text in (native_status.lower(), status):
            if text in self.owner.table["statuses"]:
                return Termination(self.owner.read_termination(text))
            if "time_limit" in text:  # SCS: "solved (inaccurate - reached time_limit_secs)".
                return Termination.TIME_LIMIT
            if "max_iters" in text:
                return Termination.ITERATION_LIMIT
            if any(part in text for part in ("inaccurate", "almost", "error", "progress")):
                return Termination.NUMERICAL
        return Termination.ERROR

    def _read_multipliers(self) -> Vector | None:
        """Return the multipliers (rows,) in the signs of `workbench.solvers.solution`.

        None if CVXPY returned no finite multipliers for some rows.
        """
        multipliers = np.zeros(self._data.row_lower.size)
        for constraint, relation in self._row_constraints:
            dual = constraint.dual_value
            if dual is None or not np.isfinite(dual).all():
                return None
            signed_dual = relation.multiplier_sign * np.asarray(dual, dtype=float)
            multipliers[relation.holds_at] += signed_dual
        return multipliers


def _split_sides(low: Vector, high: Vector) -> list[_Relation]:
    """Split low <= v <= high into v = low (where low = high), v <= high and v >= low.

    Relations that hold nowhere are left out.
    """
    is_equal = low == high
    has_upper = np.isfinite(high) & ~is_equal
    has_lower = np.isfinite(low) & ~is_equal
    relations = [
        _Relation(eq, is_equal, low, multiplier_sign=-1.0),
        _Relation(le, has_upper, high, multiplier_sign=-1.0),
        _Relation(ge, has_lower, low, multiplier_sign=1.0),
    ]
    return [relation for relation in relations if relation.holds_at.any()]


def _read_native_status(result: Any) -> str:
    """Return the status in the solver's own words, or "" if its result has none."""
    if isinstance(result, dict):  # SCS.
        return str(result.get("info", {}).get("status", ""))
    return str(getattr(result, "status", ""))


class Cvxpy(Backend):
    """A continuous solver through CVXPY. Without a variant it is Clarabel."""

    name = "cvxpy"
    session = _CvxpySession

    def is_installed(self) -> bool:
        """Return whether CVXPY and the solver are installed; neither is imported."""
        return is_importable("cvxpy") and is_importable(self.module)

    def _resolve(self, program: Program) -> Backend:
        """Return this backend, or Clarabel if the user named no solver."""
        if self.variant is not None:
            return self
        return Cvxpy("clarabel")
