"""Conic solvers behind CVXPY's own interfaces: Clarabel, SCS and whatever else it finds. A yardstick, not a fast path.

The program is handed to CVXPY as a constant problem and canonicalised afresh for every solve; there is no hot start.

Traps handled here: CVXPY blurs statuses, so the solver's own word decides where its result has one; what these solvers
call unbounded (dual infeasible) says nothing of feasibility, so it is decided by a second solve; SCS is a
first-order method, whose points violate rows by about its tolerance (residuals show it); SCS would take as many
threads as MKL pleases (its own single-threaded factorisation is used instead).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .arrays import Flags, Vector
from .backend import Backend, Capabilities, Options, importable, one_thread
from .cones import Cone
from .errors import UnsupportedOption
from .program import Data, Program
from .search import Deadline
from .session import Raw, Session
from .solution import PointStatus, Rest, Start, Termination

__all__ = ["Cvxpy"]


# variant -> (its module, its distribution, our options in its words)
_VARIANTS: dict[str, tuple[str, str, dict[str, tuple[str, ...]]]] = {
    "clarabel": ("clarabel", "clarabel", {
        "time_limit": ("time_limit",), "iteration_limit": ("max_iter",), "threads": ("max_threads",),
        "feasibility_tolerance": ("tol_feas",), "presolve": ("presolve_enable",),
    }),
    "scs": ("scs", "scs", {
        "time_limit": ("time_limit_secs",), "iteration_limit": ("max_iters",),
        "feasibility_tolerance": ("eps_abs", "eps_rel"),
    }),
    "ecos": ("ecos", "ecos", {"iteration_limit": ("max_iters",), "feasibility_tolerance": ("feastol",)}),
    "qoco": ("qoco", "qoco", {"iteration_limit": ("max_iters",)}),
    "cvxopt": ("cvxopt", "cvxopt", {"iteration_limit": ("max_iters",), "feasibility_tolerance": ("feastol",)}),
    "mosek": ("mosek", "mosek", {}),
    "copt": ("coptpy", "coptpy", {}),
}  # fmt: skip

# the solver's own word, or failing that CVXPY's -> termination
_TERMINATION = {
    "solved": Termination.OPTIMAL,
    "primalinfeasible": Termination.INFEASIBLE,
    "dualinfeasible": Termination.INFEASIBLE_OR_UNBOUNDED,
    "maxiterations": Termination.ITERATION_LIMIT,
    "maxtime": Termination.TIME_LIMIT,
    "callbackterminated": Termination.INTERRUPTED,
    "interrupted": Termination.INTERRUPTED,
    "optimal": Termination.OPTIMAL,
    "infeasible": Termination.INFEASIBLE,
    "unbounded": Termination.INFEASIBLE_OR_UNBOUNDED,
    "infeasible_or_unbounded": Termination.INFEASIBLE_OR_UNBOUNDED,
}


class Cvxpy(Backend):
    """A continuous solver through CVXPY; without a variant, Clarabel."""

    name = "cvxpy"
    variants = tuple(_VARIANTS)

    def __init__(self, variant: str | None = None) -> None:
        super().__init__(variant)
        self.module, self.distribution, self._words = _VARIANTS[variant or "clarabel"]
        self.supported_options = frozenset({"threads", *self._words})

    def capabilities(self) -> Capabilities:
        """LPs and their duals; certificates of infeasibility from the solvers that keep them."""
        return Capabilities(
            duals=True,
            infeasibility_certificate=self.variant in (None, "clarabel", "scs"),
            cones=frozenset(Cone) if self.variant in (None, "clarabel", "scs") else frozenset(),
        )

    def installed(self) -> bool:
        """CVXPY and the solver itself; neither is imported."""
        return importable("cvxpy") and importable(self.module)

    def _resolve(self, program: Program) -> Backend:
        return self if self.variant is not None else Cvxpy("clarabel")

    def _open(self, program: Program, options: Options) -> Session:
        own = {"linear_solver": "qdldl"} if self.variant == "scs" else {}
        others = {} if "threads" in self._words else {"threads": one_thread(self.label)}
        return _CvxpySession(self, program, options, own | options.in_words(self._words, others))


class _CvxpySession(Session):
    def __init__(self, owner: Backend, program: Program, options: Options, settings: dict[str, Any]) -> None:
        super().__init__(owner, program, options)
        import cvxpy

        assert owner.variant is not None
        self._cp, self._solver, self._settings = cvxpy, owner.variant.upper(), settings
        if options.native:
            self._try_settings()

    def _try_settings(self) -> None:
        """Refuse settings the solver does not know now, not at the first solve: by one iteration on x >= 0."""
        settings = dict(self._settings)
        for word in _VARIANTS[self._solver.lower()][2].get("iteration_limit", ()):
            if not isinstance(settings.get(word), str):
                settings[word] = 1
        x = self._cp.Variable()
        problem = self._cp.Problem(self._cp.Minimize(x), [x >= 0])
        try:
            data, chain, _ = problem.get_problem_data(self._solver, solver_opts=dict(settings))
            chain.solve_via_data(problem, data, False, False, dict(settings))
        except Exception as error:
            given = ", ".join(f"{key} = {value!r}" for key, value in self.options.native.items())
            raise UnsupportedOption(f"{self.owner.label} cannot honour the option {given}: {error}.") from None

    def _build(self, data: Data) -> None:
        cp = self._cp
        x = cp.Variable(data.c.size)
        A = data.A.tocsr()
        equal = data.row_lower == data.row_upper
        above = np.isfinite(data.row_lower) & ~equal
        below = np.isfinite(data.row_upper) & ~equal
        fixed = data.lower == data.upper
        low, high = np.isfinite(data.lower) & ~fixed, np.isfinite(data.upper) & ~fixed
        self._parts: list[tuple[Any, Flags, float]] = []  # constraint, its rows, sign of its multipliers
        if equal.any():
            self._parts.append((A[equal] @ x == data.row_lower[equal], equal, -1.0))
        if below.any():
            self._parts.append((A[below] @ x <= data.row_upper[below], below, -1.0))
        if above.any():
            self._parts.append((A[above] @ x >= data.row_lower[above], above, 1.0))
        constraints = [part[0] for part in self._parts]
        constraints += [x[fixed] == data.lower[fixed]] if fixed.any() else []
        constraints += [x[low] >= data.lower[low]] if low.any() else []
        constraints += [x[high] <= data.upper[high]] if high.any() else []
        for cone in self.program.cones:
            columns = [x[column] for column in cone.columns.T]
            if cone.kind is Cone.SECOND_ORDER:
                constraints.append(cp.SOC(columns[0], cp.vstack(columns[1:])))
            elif cone.kind is Cone.POWER:
                constraints.append(cp.PowCone3D(*columns, cone.exponents))
            else:
                constraints.append(cp.ExpCone(*columns))
        self._x, self._data = x, data
        self._problem = cp.Problem(cp.Minimize(data.c @ x + data.offset), constraints)
        self._canonical = self._problem.get_problem_data(self._solver, solver_opts=dict(self._settings))

    def _run(self, start: Start, basis: Any) -> Raw:
        problem, (data, chain, inverse) = self._problem, self._canonical
        clock, left = Deadline(), self._deadline.limit
        settings = dict(self._settings)
        for key in _VARIANTS[self._solver.lower()][2].get("time_limit", ()) if left is not None else ():
            settings |= {} if key in self.options.native else {key: left}
        word = ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CVXPY's "may be inaccurate" and deprecations of its solvers
            try:
                native = chain.solve_via_data(problem, data, False, False, settings)
                word = _word(native)
                problem.unpack_results(native, chain, inverse)
            except self._cp.error.SolverError as error:
                word = word or str(error)
        status = problem.status or "solver_error"
        raw = Raw(_termination(word, status), f"{status} ({word})" if word else status)
        raw.solve_seconds = clock.elapsed
        stats = problem.solver_stats
        raw.iterations = int(stats.num_iters) if stats is not None and stats.num_iters is not None else None
        if self._x.value is not None:
            raw.x = np.array(self._x.value, dtype=float)
            raw.point = PointStatus.FEASIBLE if raw.termination is Termination.OPTIMAL else PointStatus.INFEASIBLE
        multipliers = self._multipliers()
        if multipliers is not None and raw.x is not None:
            raw.rest = Rest(multipliers, self._data.c - self._data.A.T @ multipliers)
            raw.dual = PointStatus.FEASIBLE if raw.termination is Termination.OPTIMAL else PointStatus.INFEASIBLE
        elif raw.termination is Termination.INFEASIBLE and self.owner.capabilities().infeasibility_certificate:
            raw.ray = multipliers
        return raw

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


def _termination(word: str, status: str) -> Termination:
    for spelling in (word.lower(), status):
        if spelling in _TERMINATION:
            return _TERMINATION[spelling]
        if "time_limit" in spelling:  # SCS: "solved (inaccurate - reached time_limit_secs)"
            return Termination.TIME_LIMIT
        if "max_iters" in spelling:
            return Termination.ITERATION_LIMIT
        if "inaccurate" in spelling or "almost" in spelling or "error" in spelling or "progress" in spelling:
            return Termination.NUMERICAL
    return Termination.ERROR
