"""Answers of solvers: a point, dual values and a bound, and the checks that need no solver.

A solution has three statuses: why the solver stopped (`termination`), and whether the solver calls
its point (`point`) and its dual values (`dual`) feasible.

Signs. Everything is reported for the model as it was written: a maximisation reports its own
objective and bound. Dual values belong to the minimisation of sense * objective:
y_i = d(sense * objective) / d(right-hand side of row i), and reduced costs are c - A'y.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from workbench.solvers.arrays import Vector
from workbench.solvers.program import Data, Program

_ROUNDING_UNIT = 2.0**-53  # Relative rounding error of one operation.
_RAY_TOLERANCE = 1e-7  # Smaller numbers count as zero in a ray of size one.
# A ray of a program with unbounded variables proves infeasibility only if its bound exceeds this,
# because the rounding error of the bound is then not known.
_MIN_UNBOUNDED_PROOF = 1e-9
# Rounding error of numpy's pairwise sum of a product, in rounding units, for up to 10^9 terms.
_SUM_ERROR_UNITS = 64


class Termination(enum.StrEnum):
    """Why the solver stopped.

    GAP_LIMIT: a MILP reached the requested gap, which is larger than that of OPTIMAL. CUTOFF: dual
    values prove that the minimum is at least the requested cutoff. LICENCE: the program is too
    large for the licence. NUMERICAL: the solver calls its answer imprecise. INTERRUPTED: Ctrl-C was
    pressed.
    """

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INFEASIBLE_OR_UNBOUNDED = "infeasible_or_unbounded"
    TIME_LIMIT = "time_limit"
    GAP_LIMIT = "gap_limit"
    NODE_LIMIT = "node_limit"
    ITERATION_LIMIT = "iteration_limit"
    CUTOFF = "cutoff"
    LICENCE = "licence"
    NUMERICAL = "numerical"
    ERROR = "error"
    INTERRUPTED = "interrupted"


class PointStatus(enum.StrEnum):
    """Status of a primal point or a dual vector."""

    NONE = "none"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"


class Start(enum.StrEnum):
    """Where a solve started.

    COLD is from nothing, BASIS from a stored basis or point, and HOT from the live solver object of
    the last solve.
    """

    COLD = "cold"
    BASIS = "basis"
    HOT = "hot"


@dataclass(frozen=True)
class Residuals:
    """Largest absolute violations of a point, recomputed in double precision.

    Attributes:
        rows: largest violation of a row.
        bounds: largest violation of a bound of a column.
        integrality: largest distance of an integer column from an integer.
        cones: largest violation of a second-order cone.
    """

    rows: float
    bounds: float
    integrality: float
    cones: float = 0.0

    @property
    def max_violation(self) -> float:
        """Return the largest of all violations."""
        return max(self.rows, self.bounds, self.integrality, self.cones)


class DualValues(NamedTuple):
    """Dual values of a linear program, and its basis.

    Attributes:
        row_dual: (rows,) multipliers, or None.
        reduced_cost: (columns,) c - A'y with the multipliers y, or None.
        basis: an object of the solver's library, or None. It is not pickled.
    """

    row_dual: Vector | None = None
    reduced_cost: Vector | None = None
    basis: Any = None

    def __reduce__(self) -> tuple[type[DualValues], tuple[Vector | None, ...]]:
        return DualValues, (self.row_dual, self.reduced_cost)


def relative_gap(objective: float | None, bound: float | None) -> float | None:
    """Return |objective - bound| / max(1, |objective|), or None if one of them is unknown.

    Args:
        objective: objective of the best point, or None.
        bound: bound on the optimum, or None.
    """
    if objective is None or bound is None:
        return None
    return abs(objective - bound) / max(1.0, abs(objective))


@dataclass(frozen=True)
class Solution:
    """Answer of one backend for one program.

    Attributes:
        program: the program that was solved.
        p: stacked vector of its parameters; the numbers are in `data`.
        termination: why the solver stopped.
        point: whether `x` is feasible, by the solver's own status.
        dual: whether `row_dual` is feasible, by the solver's own status.
        x: (columns,) point, or None. None if `point` is NONE.
        dual_values: multipliers, reduced costs and basis in the solver's own units. Use `row_dual`,
            `reduced_cost` and `basis`.
        native_bound: bound that the solver reports, without the program's shift. None if dual
            values prove a bound (most LPs), or if the solver reports none. Use `bound`.
        ray: certificate that passed its check, or None. For an infeasible program: multipliers y of
            the rows that prove infeasibility (their `lagrangian_bound` with zero costs is
            positive). For an unbounded program: a direction of x.
        iterations: number of iterations. None if the solver does not count them.
        nodes: number of nodes of the branch-and-bound search. None if the solver does not count
            them.
        seconds: wall-clock time to load the program, solve it and read the answer.
        solver: label of the backend: "highs", "ortools:glop", ...
        version: version of the native library.
        options: the options in force, under the solver's own names.
        seed: seed of the solver's random numbers. None if it is not known.
        threads: number of threads. None if it is not known.
        start: where the solve started.
        raw_status: status in the solver's own words.
        notes: sentences about the solve, such as the result of a second solve.
    """

    program: Program = field(repr=False)
    p: Vector = field(repr=False)
    termination: Termination
    point: PointStatus = PointStatus.NONE
    dual: PointStatus = PointStatus.NONE
    x: Vector | None = field(default=None, repr=False)
    dual_values: DualValues = field(default=DualValues(), repr=False)
    native_bound: float | None = None
    ray: Vector | None = field(default=None, repr=False)
    iterations: int | None = None
    nodes: int | None = None
    seconds: float = 0.0
    solver: str = ""
    version: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    seed: int | None = None
    threads: int | None = None
    start: Start = Start.COLD
    raw_status: str = ""
    notes: tuple[str, ...] = ()

    @cached_property
    def data(self) -> Data:
        """Return the numbers of the program as the model states them (unscaled)."""
        return self.program.data_at(self.p)

    @property
    def row_dual(self) -> Vector | None:
        """Return the multipliers (rows,), or None."""
        if self.dual_values.row_dual is None:
            return None
        # Solvers get the costs multiplied by `program.cost`.
        return self.dual_values.row_dual / self.program.cost

    @property
    def reduced_cost(self) -> Vector | None:
        """Return c - A'y (columns,) as the solver reports it, or None."""
        if self.dual_values.reduced_cost is None:
            return None
        # Solvers get the costs multiplied by `program.cost`.
        return self.dual_values.reduced_cost / self.program.cost

    @property
    def basis(self) -> Any:
        """Return the basis, which `solve(start="basis", basis=...)` of the backend accepts."""
        return self.dual_values.basis

    @cached_property
    def objective(self) -> float | None:
        """Return the recomputed objective of the point in the model, or None without a point."""
        if self.x is None:
            return None
        value = float(self.data.c @ self.x) + self.data.offset + self.program.shift
        return self.program.sense * value

    @cached_property
    def bound(self) -> float | None:
        """Return a bound on the optimum, a lower bound for minimisation; None if none is known.

        For an LP with dual values it is their Lagrangian bound, recomputed. For a MILP, and for an
        LP without dual values, it is the solver's own bound. With cones no bound is known.
        """
        if self.native_bound is not None:
            return self.program.sense * (self.native_bound + self.program.shift)
        is_lp = self.program.cones is None and not self.program.is_mip
        if self.dual is not PointStatus.FEASIBLE or not is_lp or self.row_dual is None:
            return None
        value = lagrangian_bound(self.data, self.row_dual)
        if value is None:
            return None
        return self.program.sense * (value + self.program.shift)

    @property
    def gap(self) -> float | None:
        """Return the `relative_gap` of objective and bound."""
        return relative_gap(self.objective, self.bound)

    @cached_property
    def residuals(self) -> Residuals | None:
        """Return the recomputed violations of the point; None without a point."""
        if self.x is None:
            return None
        residuals = compute_residuals(self.data, self.x)
        if self.program.cones is None:
            return residuals
        # Each row of `cones` lists the columns of one cone: x_0 >= |(x_1, x_2, ...)|.
        first, *components = self.x[self.program.cones.T]
        excess = np.linalg.norm(components, axis=0) - first
        return replace(residuals, cones=float(excess.max(initial=0.0)))

    @property
    def is_optimal(self) -> bool:
        """Return whether the solver claims optimality and there is a point."""
        return self.termination is Termination.OPTIMAL and self.x is not None

    def __getitem__(self, name: str) -> Vector:
        """Return the value of a variable in its model shape.

        Raises KeyError for an unknown variable, and ValueError without a point.
        """
        block = self.program.block(name)
        if self.x is None:
            raise ValueError(
                f"{self.solver} returned no point ({self.termination}); {name} has no value"
            )
        return block.read(self.x)

    def __str__(self) -> str:
        residuals = "-" if self.residuals is None else f"{self.residuals.max_violation:.3g}"
        gap = _format_optional(self.gap, ".3g")
        lines = [
            f"{self.program.name} by {self.solver} {self.version}: {self.termination}",
            f"  point      {self.point}, objective {_format_optional(self.objective)}",
            f"  bound      {_format_optional(self.bound)}, gap {gap}",
            f"  residuals  {residuals}",
            f"  duals      {self.dual}",
            f"  work       {self.iterations} iterations, {self.nodes} nodes, "
            f"{self.seconds:.4f} s, {self.start}",
            f"  status     {self.raw_status}",
        ]
        return "\n".join(lines + [f"  note       {note}" for note in self.notes])


def _format_optional(number: float | None, form: str = ".12g") -> str:
    """Return a number in a format of `format`, or "unknown" for None."""
    if number is None:
        return "unknown"
    return format(number, form)


def compute_residuals(data: Data, x: Vector) -> Residuals:
    """Return the largest violations of rows, bounds and integrality.

    Args:
        data: numbers of the program.
        x: (columns,) the point.
    """

    def find_violation(values: Vector, low: Vector, high: Vector) -> float:
        """Return by how much the values leave [low, high] at most, 0 if they do not."""
        return float(np.maximum(low - values, values - high).max(initial=0.0))

    integer_values = x[data.integrality]
    return Residuals(
        rows=find_violation(data.A @ x, data.row_lower, data.row_upper),
        bounds=find_violation(x, data.lower, data.upper),
        integrality=float(np.abs(integer_values - np.round(integer_values)).max(initial=0.0)),
    )


def lagrangian_bound(data: Data, row_dual: Vector, tolerance: float = 1e-9) -> float | None:
    """Return the lower bound on min c'x + c0 that row multipliers prove.

        min_x c'x + y'(r - Ax)  =  sum_i y_i r_i
                                   + sum_j min over [lower_j, upper_j] of (c - A'y)_j x_j

    with r_i the lower row bound where y_i > 0, else the upper one. A multiplier y_i whose row bound
    r_i is infinite is replaced by zero. If the minimum over x_j is at an infinite bound, the
    reduced cost (c - A'y)_j must be zero within `tolerance` (relative to 1 + |c_j|). Solvers call
    this dual feasibility. The largest possible rounding error is subtracted, so the result is a
    true bound if all variables are bounded.

    Args:
        data: numbers of the program.
        row_dual: (rows,) multipliers y.
        tolerance: largest accepted reduced cost of a variable without a bound.

    Returns:
        The bound, or None if the multipliers prove nothing.
    """
    A = data.A
    entry_counts = A.indptr[1:] - A.indptr[:-1]  # Number of non-zeros of each column.
    column_index = np.repeat(np.arange(data.c.size), entry_counts)
    side = np.where(row_dual > 0, data.row_lower, data.row_upper)
    has_side = np.isfinite(side)
    if not has_side.all():
        row_dual = np.where(has_side, row_dual, 0.0)
        side = np.where(has_side, side, 0.0)

    products = A.data * row_dual[A.indices]
    reduced_cost = data.c - np.bincount(column_index, products, data.c.size)
    end = np.where(reduced_cost > 0, data.lower, data.upper)
    has_end = np.isfinite(end)
    has_all_ends = has_end.all()
    if not has_all_ends:
        max_reduced_cost = tolerance * (1.0 + np.abs(data.c[~has_end]))
        if (np.abs(reduced_cost[~has_end]) > max_reduced_cost).any():
            return None
        reduced_cost = np.where(has_end, reduced_cost, 0.0)
        end = np.where(has_end, end, 0.0)
    terms = np.concatenate([row_dual * side, reduced_cost * end, [data.offset]])

    # The rounding error of a reduced cost is proportional to the sum of the sizes of its terms. Its
    # effect on the bound is that error times the largest |x_j|.
    term_size = np.abs(data.c) + np.bincount(column_index, np.abs(products), data.c.size)
    if not has_all_ends:
        term_size = np.where(has_end, term_size, 0.0)
    max_x = np.maximum(np.abs(data.lower), np.abs(data.upper))
    max_x = np.where(np.isfinite(max_x), max_x, np.abs(end))
    # The operations of a column are a product or sum for each entry, the difference to c_j, and the
    # product with x_j.
    operation_count = int(entry_counts.max(initial=0)) + 2
    error_units = operation_count * float(term_size @ max_x)
    error_units += _SUM_ERROR_UNITS * float(np.abs(terms).sum())
    return float(terms.sum() - _ROUNDING_UNIT * error_units)


def proves_infeasibility(data: Data, multipliers: Vector) -> bool:
    """Return whether row multipliers prove that the program has no feasible point.

    They prove it if their lower bound on the zero objective is positive, because this objective is
    0 at every feasible point.

    Args:
        data: numbers of the program.
        multipliers: (rows,); the largest has size one.
    """
    bound = lagrangian_bound(data.without_costs, multipliers, _RAY_TOLERANCE)
    is_bounded = bool(np.isfinite(data.lower).all() and np.isfinite(data.upper).all())
    min_bound = 0.0 if is_bounded else _MIN_UNBOUNDED_PROOF
    return bound is not None and bound > min_bound


def is_unbounded_direction(data: Data, direction: Vector) -> bool:
    """Return whether a direction improves the objective and never leaves the feasible set.

    Args:
        data: numbers of the program.
        direction: (columns,); the largest entry has size one.
    """

    def stays_inside(step: Vector, low: Vector, high: Vector) -> bool:
        """Return whether a step from any point never leaves [low, high], up to the tolerance."""
        return bool(
            (step[np.isfinite(high)] <= _RAY_TOLERANCE).all()
            and (step[np.isfinite(low)] >= -_RAY_TOLERANCE).all()
        )

    return (
        float(data.c @ direction) < -_RAY_TOLERANCE
        and stays_inside(data.A @ direction, data.row_lower, data.row_upper)
        and stays_inside(direction, data.lower, data.upper)
    )
