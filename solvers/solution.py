"""What a solver answered: how it stopped, what its point is, what its duals are. Three statuses, never a guess.

Signs. Everything is reported for the model as it was written (a maximisation reports its own objective and bound).
Duals belong to the minimisation of sense * objective: y_i = d(sense * objective) / d(right-hand side of row i), and
reduced costs are c - A'y.
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

_UNIT = 2.0**-53  # relative rounding error of one operation
_PROVING = 1e-7  # of zero, in a certificate of size one
_SUMMED = 64  # ... of numpy's pairwise sum of a product, in units, up to 10^9 terms


class Termination(enum.StrEnum):
    """Why the solver stopped."""

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
    """What a primal point or a dual vector is."""

    NONE = "none"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"


class Start(enum.StrEnum):
    """Where a solve started: nothing kept, a stored basis or point, or the live solver object of the last solve."""

    COLD = "cold"
    BASIS = "basis"
    HOT = "hot"


@dataclass(frozen=True)
class Residuals:
    """Largest violations of a point, recomputed from its data and cones in double precision (absolute)."""

    rows: float
    bounds: float
    integrality: float
    cones: float = 0.0

    @property
    def max_violation(self) -> float:
        """The largest of them."""
        return max(self.rows, self.bounds, self.integrality, self.cones)


class DualValues(NamedTuple):
    """What few callers ask of a solution: row multipliers, reduced costs, basis."""

    row_dual: Vector | None = None
    reduced_cost: Vector | None = None
    basis: Any = None

    def __reduce__(self) -> tuple[type[DualValues], tuple[Vector | None, ...]]:
        """Without the basis, which is an object of the solver's own."""
        return DualValues, (self.row_dual, self.reduced_cost)


def relative_gap(objective: float | None, bound: float | None) -> float | None:
    """|objective - bound| / max(1, |objective|): the one formula for gaps; None when either is unknown."""
    if objective is None or bound is None:
        return None
    return abs(objective - bound) / max(1.0, abs(objective))


@dataclass(frozen=True)
class Solution:
    """One answer of one backend.

    Attributes:
        program, p: what was solved, and the stacked vector of its parameters; the numbers are in `data`.
        termination: why the solver stopped.
        point: what `x` is, by the solver's own word on its point.
        dual: what `row_dual` is.
        x: (columns,) or None; never set without a point.
        rest: what else the solver gave, in its own units: `row_dual`, `reduced_cost`, `basis`.
        native_bound: the bound the solver proved, where no duals show it (MILP, some LPs), else None; see `bound`,
            which has the program's shift.
        ray: when the solver gave one that survived our check, of an infeasible program multipliers y of the rows that
            prove it (`lagrangian_bound` with zero costs is positive), of an unbounded one a direction of x.
        iterations, nodes: None when the solver does not count them.
        seconds: by the wall clock, of loading the program, solving it and reading the answer.
        solver: "highs", "ortools:glop", ...; versions in `version`.
        options: as effective, in the solver's own names.
        seed, threads, start: how it was run.
        raw_status: the solver's own words.
        notes: what else happened, such as the outcome of the zero-objective re-solve.
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
        """The instance in numbers, as the model states it (unscaled)."""
        return self.program.data_at(self.p)

    @property
    def row_dual(self) -> Vector | None:
        """(rows,) multipliers, or None."""
        return (
            None
            if self.dual_values.row_dual is None
            else self.dual_values.row_dual / self.program.cost
        )

    @property
    def reduced_cost(self) -> Vector | None:
        """(columns,) c - A'y as the solver has it, or None."""
        return (
            None
            if self.dual_values.reduced_cost is None
            else self.dual_values.reduced_cost / self.program.cost
        )

    @property
    def basis(self) -> Any:
        """Backend-specific, accepted by the same backend's `solve(start="basis", basis=...)`; or None."""
        return self.dual_values.basis

    @cached_property
    def objective(self) -> float | None:
        """c'x + c0 of the point, recomputed by us, with the program's shift; None without a point."""
        if self.x is None:
            return None
        return self.program.sense * (
            float(self.data.c @ self.x) + self.data.offset + self.program.shift
        )

    @cached_property
    def bound(self) -> float | None:
        """A bound on the optimum (below for minimisation): the Lagrangian bound of an LP's duals, recomputed by us; for
        a MILP, and an LP without duals, the solver's own; None when nothing is known, and of cones."""
        if self.native_bound is not None:
            return self.program.sense * (self.native_bound + self.program.shift)
        if (
            self.dual is not PointStatus.FEASIBLE
            or self.program.cones is not None
            or self.program.is_mip
            or self.row_dual is None
        ):
            return None
        value = lagrangian_bound(self.data, self.row_dual)
        return None if value is None else self.program.sense * (value + self.program.shift)

    @property
    def gap(self) -> float | None:
        """`relative_gap` of objective and bound."""
        return relative_gap(self.objective, self.bound)

    @cached_property
    def residuals(self) -> Residuals | None:
        """Recomputed violations of the point; None without a point."""
        if self.x is None:
            return None
        linear, cones = compute_residuals(self.data, self.x), self.program.cones
        if cones is None:
            return linear
        first, *others = self.x[cones.T]
        return replace(
            linear, cones=float((np.linalg.norm(others, axis=0) - first).max(initial=0.0))
        )

    @property
    def is_optimal(self) -> bool:
        """Whether the solver claims optimality and has a point to show."""
        return self.termination is Termination.OPTIMAL and self.x is not None

    def __getitem__(self, name: str) -> Vector:
        """The value of a named variable in its model shape. Raises KeyError (unknown) or ValueError (no point)."""
        block = self.program.block(name)
        if self.x is None:
            raise ValueError(
                f"{self.solver} returned no point ({self.termination}); {name} has no value"
            )
        return block.read(self.x)

    def __str__(self) -> str:
        def number(value: float | None, form: str = ".12g") -> str:
            return "unknown" if value is None else format(value, form)

        lines = [
            f"{self.program.name} by {self.solver} {self.version}: {self.termination}",
            f"  point      {self.point}, objective {number(self.objective)}",
            f"  bound      {number(self.bound)}, gap {number(self.gap, '.3g')}",
            f"  residuals  {'-' if self.residuals is None else f'{self.residuals.max_violation:.3g}'}",
            f"  duals      {self.dual}",
            f"  work       {self.iterations} iterations, {self.nodes} nodes, {self.seconds:.4f} s, {self.start}",
            f"  said       {self.raw_status}",
        ]
        return "\n".join(lines + [f"  note       {note}" for note in self.notes])


def compute_residuals(data: Data, x: Vector) -> Residuals:
    """Largest violation of rows, bounds and integrality at x (columns,)."""

    def worst(value: Vector, low: Vector, high: Vector) -> float:
        return float(np.maximum(low - value, value - high).max(initial=0.0))

    whole = x[data.integrality]
    return Residuals(
        rows=worst(data.A @ x, data.row_lower, data.row_upper),
        bounds=worst(x, data.lower, data.upper),
        integrality=float(np.abs(whole - np.round(whole)).max(initial=0.0)),
    )


def lagrangian_bound(data: Data, row_dual: Vector, tolerance: float = 1e-9) -> float | None:
    """The lower bound on min c'x + c0 that row multipliers prove over the box of the variables.

        min_x c'x + y'(r - Ax)  =  sum_i y_i r_i + sum_j min over [lower_j, upper_j] of (c - A'y)_j x_j

    with r_i the lower row bound where y_i > 0, else the upper one. Multipliers that point at an infinite row bound are
    set to zero; reduced costs that point at an infinite variable bound spoil the bound unless they are within
    `tolerance` (relative to 1 + |c_j|) of zero, which is dual feasibility as solvers mean it. Where all variables are
    bounded the value is a bound in spite of rounding: it is lowered by the most that rounding can have added.

    Returns:
        The bound, or None when the multipliers prove nothing.
    """
    A = data.A
    lengths = np.diff(A.indptr)
    of = np.repeat(np.arange(data.c.size), lengths)
    side = np.where(row_dual > 0, data.row_lower, data.row_upper)
    usable = np.isfinite(side)
    row_dual, side = np.where(usable, row_dual, 0.0), np.where(usable, side, 0.0)
    products = A.data * row_dual[A.indices]
    reduced = data.c - np.bincount(of, products, data.c.size)
    end = np.where(reduced > 0, data.lower, data.upper)
    reach = np.maximum(np.abs(data.lower), np.abs(data.upper))
    size = np.abs(data.c) + np.bincount(
        of, np.abs(products), data.c.size
    )  # of what makes a reduced cost
    free = ~np.isfinite(end)
    if (np.abs(reduced[free]) > tolerance * (1.0 + np.abs(data.c[free]))).any():
        return None
    reduced, end, size = (np.where(free, 0.0, part) for part in (reduced, end, size))
    reach = np.where(np.isfinite(reach), reach, np.abs(end))
    terms = np.concatenate([row_dual * side, reduced * end, [data.offset]])
    longest = int(lengths.max(initial=0)) + 2
    return float(
        terms.sum() - _UNIT * (longest * float(size @ reach) + _SUMMED * float(np.abs(terms).sum()))
    )


def proves_infeasibility(data: Data, multipliers: Vector) -> bool:
    """Whether row multipliers (rows,) of size one prove that no point exists: their bound on the zero objective is
    positive, although it cannot exceed zero at a feasible point. (Over a box rounding is accounted for; else it must
    exceed 1e-9.)"""
    value = lagrangian_bound(data.without_costs, multipliers, _PROVING)
    box = bool(np.isfinite(data.lower).all() and np.isfinite(data.upper).all())
    return value is not None and value > (0.0 if box else 1e-9)


def is_unbounded_direction(data: Data, direction: Vector) -> bool:
    """Whether a direction (columns,) of size one stays feasible for ever and improves the objective."""

    def stays(step: Vector, low: Vector, high: Vector) -> bool:
        return bool(
            (step[np.isfinite(high)] <= _PROVING).all()
            and (step[np.isfinite(low)] >= -_PROVING).all()
        )

    return (
        float(data.c @ direction) < -_PROVING
        and stays(data.A @ direction, data.row_lower, data.row_upper)
        and stays(direction, data.lower, data.upper)
    )
