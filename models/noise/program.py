"""Additive noise on the integers under bounds on neighbouring laws, as one linear program with a proven lower bound.

    min Σ c(η) f(η) (+ c a)   s.t.  Σ f (+ a) = 1,   Σ_o φ(P_o, Q_o) <= limit   for every bound and shift s,

P = f, Q = f(· + s), s = ±1..±D of the sensitivity D, by tangents as they are needed
(`workbench.models.convex.tangent_program`), of a hockey stick at its worst shift alone in every round. Other solvers
than HiGHS are given all of hockey sticks at once.

    letter      here                     letter      here
    D           sensitivity              f(η)        columns, |η| <= last
    c           losses                   a           atom: a point mass beside the cells (real noise alone)

Ended (`open` False): f vanishes beyond the reach L, last = L: what is feasible is a mechanism, under hockey sticks.
Open: f is stated up to last = L + D, with the mass beyond, on the right and on the left, as columns of their own. All
outcomes η > L, and all η < -L, are merged, which is post-processing: every bound holds of the merged pair, and the mass
beyond costs no less than at its first value, as c does not fall. So the optimum is a lower bound for all noise.

Folded: c is even, f is (the mean of f and its mirror image: bounds are jointly convex), and s > 0 suffice. Of several
losses the largest mean counts: min z, z >= Σ c_q f, whose multipliers p_q are weights that add up to 1; c = Σ p_q c_q.

Bound: for any multipliers v >= 0 of tangents, and u of sums with Σ v <= u for every t,

    min >= min_j (c + Σ v (a P + b Q))_j / w_j - Σ u limit,       in exact arithmetic; w: how often j counts in Σ f.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from workbench.models import statement
from workbench.models.convex.requirements import Bound
from workbench.models.convex.tangent_program import (
    BoundMultipliers,
    Comparisons,
    FindBrokenBounds,
    TangentProgram,
)
from workbench.solvers.arrays import Integers, Vector
from workbench.solvers.data import MIN_COEFFICIENT, floor_to_bits
from workbench.solvers.exact.rational_lp import Integers as Exact
from workbench.solvers.exact.rational_lp import to_object_array
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline

_SCALE = 2.0**20  # of all masses, so that tolerances are fine beside a small δ
_BITS = 80  # of multipliers, which are rounded down
_UNIT = 1 << _BITS


@dataclass(frozen=True, eq=False)
class LineProgram:
    """One program of the module's docstring.

    sensitivity: D; reach: L >= D; losses: c(η), which do not fall as |η| grows; bounds: of every shift; folded: whether
    they are even; open: whether noise goes on beyond; atom: its loss, None without one (hockey sticks alone have one);
    beyond: by loss, what a unit of the mass beyond costs at least on the right and on the left (its first value's);
    unit: the program is solved in losses divided by it, less the least of them.
    """

    sensitivity: int
    reach: int
    losses: Sequence[Callable[[int], Fraction]]
    bounds: Sequence[Bound]
    is_folded: bool = True
    is_open: bool = True
    atom_loss: Fraction | None = None
    tail_losses: Sequence[tuple[Fraction, Fraction]] | None = None
    loss_unit: Fraction = Fraction(1)

    @property
    def last(self) -> int:
        """The largest η that has a column."""
        return self.reach + self.sensitivity * self.is_open

    @cached_property
    def shifts(self) -> Integers:
        """All that are stated."""
        up = np.arange(1, self.sensitivity + 1)
        return up if self.is_folded else np.concatenate([up, -up])

    @property
    def mass_columns(self) -> int:
        """How many columns are f."""
        return self.last + 1 if self.is_folded else 2 * self.last + 1

    @cached_property
    def costs(self) -> list[list[Fraction]]:
        """What a unit of mass costs in every column, by each loss: of f, of the mass beyond, of the atom."""
        sides = (1,) if self.is_folded else (1, -1)
        values = [*range(0 if self.is_folded else -self.last, self.last + 1)]
        ends = [tuple(loss(side * (self.last + 1)) for side in (1, -1)) for loss in self.losses]
        more = ends if self.tail_losses is None else self.tail_losses
        atom = [] if self.atom_loss is None else [self.atom_loss]
        return [
            [*map(loss, values), *far[: len(sides) * self.is_open], *atom]
            for loss, far in zip(self.losses, more, strict=True)
        ]

    @cached_property
    def shift(self) -> Fraction:
        """The least of all costs, which no law avoids."""
        return min(map(min, self.costs))

    @cached_property
    def scaled_costs(self) -> list[list[Fraction]]:
        """The costs of the program that is solved."""
        if not self.shift and self.loss_unit == 1:
            return self.costs
        return [[(cost - self.shift) / self.loss_unit for cost in each] for each in self.costs]

    @cached_property
    def weights(self) -> Integers:
        """How often a column counts in the total mass."""
        counts = np.ones(len(self.costs[0]), dtype=np.int64)
        if self.is_folded:
            counts[1 : self.mass_columns + self.is_open] = 2
        return counts

    @cached_property
    def comparisons(self) -> Comparisons:
        """P and Q for every shift; entries: every column, no mass, and the mass beyond."""
        size, d, reach = self.base.shape[1], self.sensitivity, self.reach
        rows = [sp.eye_array(size), sp.csr_array((1, size))]  # every column, and no mass
        eta = np.arange(-reach, reach + 1)
        moved = eta[None, :] + self.shifts[:, None]
        first = [self._column(eta)]
        second = [np.where(np.abs(moved) <= self.last, self._column(moved), size)]
        for side in (
            (1, -1) if self.is_open else ()
        ):  # the mass beyond reach + step, on the right and on the left
            beyond = np.zeros((2 * d + 1, size))
            for row, step in zip(beyond, range(-d, d + 1), strict=True):
                row[self._column(side * np.arange(reach + step + 1, self.last + 1))] = 1
                row[self.mass_columns + (side < 0 and not self.is_folded)] = 1
            centre = size + 1 + d + (side < 0) * (2 * d + 1)
            rows.append(sp.csr_array(beyond))
            first.append(np.array([centre]))
            second.append(centre + side * self.shifts[:, None])
        if self.atom_loss is not None:
            first.append(np.array([self.weights.size - 1]))
            second.append(np.full((self.shifts.size, 1), size))
        return Comparisons(sp.csr_array(sp.vstack(rows)), np.concatenate(first), np.hstack(second))

    @cached_property
    def base(self) -> Program:
        """The program without bounds: of several losses the largest is a column, behind the others."""
        weights, costs = (
            self.weights.astype(float),
            np.array([[*map(float, each)] for each in self.scaled_costs]),
        )
        costs = costs * weights
        x = statement.Variable(weights.size, "x", (0.0, np.inf))
        rows = [weights @ x == 1]
        if len(costs) > 1:
            least = statement.Variable((), "largest mean", (0.0, np.inf))
            rows.append(np.where(costs < MIN_COEFFICIENT, 0.0, costs) @ x <= least)
        objective = costs[0] @ x if len(costs) == 1 else least
        name = f"noise on the integers up to {self.last}, {self.sensitivity} differences"
        stated = statement.Problem(objective, rows, [x]).to_program(name, _SCALE)
        unit, data = float(self.loss_unit), stated.template
        return replace(
            stated,
            template=replace(data, c=data.c * unit),
            cost=1 / unit,
            shift=float(self.shift),
            variables=(),  # columns have numbers in files, no names
            rows=(),
        )

    def _column(self, eta: Integers) -> Integers:
        return np.abs(eta) if self.is_folded else eta + self.last

    def masses(self, x: Vector) -> Vector:
        """f on -last..last."""
        f = np.maximum(x[: self.mass_columns], 0.0)
        return np.concatenate([f[:0:-1], f]) if self.is_folded else f

    def columns_of_law(self, masses: Vector, refinement: float = 1.0) -> Vector:
        """The columns of a law on -k..k, or about those on a grid that is so many times finer; nothing beyond."""
        size = masses.size // 2
        eta = np.arange(0 if self.is_folded else -self.last, self.last + 1)
        coarse = np.floor(eta / refinement + 0.5).astype(np.int64)
        x = np.zeros(self.base.shape[1])
        inside = np.abs(coarse) <= size
        x[: self.mass_columns][inside] = masses[coarse[inside] + size]
        return x

    @property
    def program(self) -> Program:
        """The program in one piece, under hockey sticks."""
        live = self._live("")
        live.add_all_tangents()
        return live.master.program

    def _live(self, solver: str) -> TangentProgram:
        return TangentProgram(
            self.base, self.comparisons, self.bounds, solver, has_similar_comparisons=True
        )

    def solve(
        self,
        nearby_columns: Vector | None = None,
        *,
        find_broken_bounds: FindBrokenBounds | None = None,
        precision: float = 1e-9,
        deadline: Deadline | None = None,
        solver: str = "highs",
    ) -> LineAnswer:
        """The optimum. near: columns that are about the same; more: where bounds are infinitely many; precision: the
        excess over a limit, relative, at which a point counts as feasible. A point that stopped early breaks a limit
        by `excess`; the bound is proven all the same. Raises SolverError."""
        live = self._live(solver)
        if solver != "highs":
            live.add_all_tangents()
        elif nearby_columns is not None:
            live.add_tangents_near(nearby_columns)
        point = live.solve(find_broken_bounds, precision, deadline)
        x, unit = live.x[: self.weights.size], float(self.loss_unit)
        weights = (np.maximum(-point.duals[1 : 1 + len(self.costs)], 0.0) / unit).tolist()
        multipliers = (
            replace(
                part,
                sum_multiplier=part.sum_multiplier / unit,
                tangent_multipliers=part.tangent_multipliers / unit,
            )
            for part in live.bound_multipliers(point)
        )
        bound = _prove_lower_bound(self, multipliers, weights) * self.loss_unit + self.shift
        value = point.value + float(self.shift)
        return LineAnswer(
            self, x, value, bound, live.largest_excess, live.rounds, live.master.version
        )


@dataclass(frozen=True)
class LineAnswer:
    """x: the columns; value: of the program; bound: proven; excess: of the worst bound over its limit, relative;
    rounds: of work; version: of the solver."""

    program: LineProgram
    x: Vector
    value: float
    bound: Fraction
    excess: float
    rounds: int
    version: str

    @property
    def masses(self) -> Vector:
        """f on -last..last."""
        return self.program.masses(self.x)

    @property
    def mean_tail_mass(self) -> float:
        """The mass beyond, of one side in the mean."""
        return float(self.x[self.program.mass_columns :].mean()) if self.program.is_open else 0.0

    @property
    def tail_masses(self) -> tuple[float, float]:
        """The mass beyond on the right and on the left, of an open program."""
        far = self.x[self.program.mass_columns :]
        return float(far[0]), float(far[-1])


def _prove_lower_bound(
    line: LineProgram, multipliers: Iterable[BoundMultipliers], weights: Sequence[float]
) -> Fraction:
    """The lower bound of the module's docstring, at scaled costs. weights: of several losses."""
    parts, charged, entries = [*multipliers], Fraction(0), line.comparisons.entries
    exponents = (np.frexp(side)[1].min(initial=0) for part in parts for side in (part.a, part.b))
    bits = 53 - int(min(exponents, default=0))  # of tangents, which are doubles
    of_entries = to_object_array([0] * entries.shape[0])
    for part in parts:
        most = int(part.sum_multiplier * _UNIT)
        charged += Fraction(part.limit) * most
        rows = np.flatnonzero(part.tangent_multipliers)
        rows = rows[np.argsort(part.outcomes[rows], kind="stable")]
        amounts = floor_to_bits(part.tangent_multipliers[rows], _BITS)
        if part.limit and rows.size:
            amounts = _capped(amounts, part.outcomes[rows], most)
        for side, of_side in ((part.a, part.first), (part.b, part.second)):
            np.add.at(of_entries, of_side[rows], amounts * floor_to_bits(side[rows], bits))
    shares = [int(dual * _UNIT) for dual in weights] if len(line.costs) > 1 else []
    shares = (
        shares if any(shares) else [1] * len(line.costs)
    )  # all are 0 where losses are below a solver's digits
    costs = [
        sum((p * c for p, c in zip(shares, each, strict=True)), Fraction(0)) / sum(shares)
        for each in zip(*line.scaled_costs, strict=True)
    ]
    priced = [c * int(w) * _UNIT for c, w in zip(costs, line.weights, strict=True)]
    of_columns = to_object_array([0] * entries.shape[1])
    np.add.at(of_columns, entries.indices, np.repeat(of_entries, np.diff(entries.indptr)))
    priced = [
        price + Fraction(amount, 1 << bits)
        for price, amount in zip(priced, of_columns[: len(priced)].tolist(), strict=True)
    ]
    return (min(c / int(w) for c, w in zip(priced, line.weights, strict=True)) - charged) / _UNIT


def _capped(amounts: Exact, outcomes: Integers, most: int) -> Exact:
    """Multipliers of tangents, sorted by outcome, cut so that those of an outcome sum to at most that of its sum."""
    begins = np.diff(outcomes, prepend=-1) != 0
    sums = np.cumsum(amounts)
    before = (sums - amounts)[begins][np.cumsum(begins) - 1]  # of all outcomes before
    reached: Exact = np.minimum(sums - before, most)
    reached[~begins] -= reached[np.flatnonzero(~begins) - 1]
    return reached
