"""Additive noise on the integers under bounds on neighbouring laws, as one linear program with a proven lower bound.

    min Σ c(η) f(η) (+ c a)   s.t.  Σ f (+ a) = 1,   Σ_o φ(P_o, Q_o) <= limit   for every bound and shift s,

P = f, Q = f(· + s), s = ±1..±D of the sensitivity D. Every bound (`models.requirements`) is such a sum with terms φ
that are convex, homogeneous and >= 0: the largest of 0 and their tangents a P + b Q at ratios P/Q (`models.tangents`):

    t_so >= a P_o + b Q_o  for some tangents,  t >= 0,  Σ_o t_so <= limit          limit = 0: a P_o + b Q_o <= 0

A hockey stick has one tangent beside 0, so that nothing is lost; cones gain tangents where a point breaks them.

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

Few t are positive at an optimum. They are stated where a point breaks a bound, of a hockey stick at its worst shift
alone in every round; what is not stated is 0. HiGHS goes on by its dual simplex method: the new column costs nothing,
so duals stay feasible. Other solvers are given all tangents of hockey sticks at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from models.requirements import HOCKEY_STICK, Bound
from models.tangents import allowance, term_tangents
from solvers.arrays import Flags, Integers, Vector
from solvers.data import SMALLEST
from solvers.errors import SolverError
from solvers.growing import GrowingProgram, Point, RestatedProgram
from solvers.program import Program
from solvers.search import Deadline

More = Callable[[Vector, Vector], Iterable[Bound]]  # (P, Q) -> further bounds that they break

_SCALE = 2.0**20  # of all masses, so that tolerances are fine beside a small δ
_TOLERANCE = 1e-10  # HiGHS's least: reduced costs within its usual one may cost a bound 1e-8 of its value
_UNIT = 1 << 80  # multipliers are rounded down to multiples of its inverse
_ROUNDS, _AT_ONCE = 2000, 8  # of work; bounds, and shifts of cones, that gain tangents in a round
_LITTLE = 1e-2  # share of the worst outcome's excess from which outcomes gain tangents
_ROUGH = 1e-2  # relative excess up to which further bounds are asked for
_NEARLY = 1e-7  # relative, below a limit, where a bound may press at the optimum
_SPECK = 1e-9  # mass beside which ratios do not count


@dataclass(frozen=True, eq=False)
class LineProgram:
    """One program of the module's docstring.

    sensitivity: D; reach: L >= D; losses: c(η), which do not fall as |η| grows; bounds: of every shift; folded: whether
    they are even; open: whether noise goes on beyond; atom: its loss, None without one (hockey sticks alone have one).
    """

    sensitivity: int
    reach: int
    losses: Sequence[Callable[[int], Fraction]]
    bounds: Sequence[Bound]
    folded: bool = True
    open: bool = True
    atom: Fraction | None = None

    @property
    def last(self) -> int:
        """The largest η that has a column."""
        return self.reach + self.sensitivity * self.open

    @cached_property
    def shifts(self) -> Integers:
        """All that are stated."""
        up = np.arange(1, self.sensitivity + 1)
        return up if self.folded else np.concatenate([up, -up])

    @property
    def stated(self) -> int:
        """How many columns are f."""
        return self.last + 1 if self.folded else 2 * self.last + 1

    @cached_property
    def costs(self) -> list[list[Fraction]]:
        """What a unit of mass costs in every column, by each loss: of f, of the mass beyond, of the atom."""
        sides = (1,) if self.folded else (1, -1)
        values = [*range(0 if self.folded else -self.last, self.last + 1)]
        values += [side * (self.last + 1) for side in sides if self.open]
        atom = [] if self.atom is None else [self.atom]
        return [[*map(loss, values), *atom] for loss in self.losses]

    @cached_property
    def weights(self) -> Integers:
        """How often a column counts in the total mass."""
        counts = np.ones(len(self.costs[0]), dtype=np.int64)
        if self.folded:
            counts[1 : self.stated + self.open] = 2
        return counts

    @cached_property
    def sides(self) -> tuple[sp.csr_array, Integers, Integers]:
        """(E, first, second): with e = E x,  P = e[first], (outcomes,), and Q = e[second], (shifts, outcomes)."""
        size, d, reach = len(self.costs[0]), self.sensitivity, self.reach
        rows = [sp.eye_array(size), sp.csr_array((1, size))]  # every column, and no mass
        eta = np.arange(-reach, reach + 1)
        moved = eta[None, :] + self.shifts[:, None]
        first = [self._column(eta)]
        second = [np.where(np.abs(moved) <= self.last, self._column(moved), size)]
        for side in (1, -1) if self.open else ():  # the mass beyond reach + step, on the right and on the left
            beyond = np.zeros((2 * d + 1, size))
            for row, step in zip(beyond, range(-d, d + 1), strict=True):
                row[self._column(side * np.arange(reach + step + 1, self.last + 1))] = 1
                row[self.stated + (side < 0 and not self.folded)] = 1
            centre = size + 1 + d + (side < 0) * (2 * d + 1)
            rows.append(sp.csr_array(beyond))
            first.append(np.array([centre]))
            second.append(centre + side * self.shifts[:, None])
        if self.atom is not None:
            first.append(np.array([size - 1]))
            second.append(np.full((self.shifts.size, 1), size))
        return sp.csr_array(sp.vstack(rows)), np.concatenate(first), np.hstack(second)

    def _column(self, eta: Integers) -> Integers:
        return np.abs(eta) if self.folded else eta + self.last

    def laws(self, x: Vector) -> tuple[Vector, Vector]:
        """(P, Q) at the columns x: (outcomes,), and a row for every shift."""
        entries, first, second = self.sides
        e = np.asarray(entries @ x)
        return e[first], e[second]

    def masses(self, x: Vector) -> Vector:
        """f on -last..last."""
        f = np.maximum(x[: self.stated], 0.0)
        return np.concatenate([f[:0:-1], f]) if self.folded else f

    def columns(self, masses: Vector, finer: float = 1.0) -> Vector:
        """The columns of a law on -k..k, or about those on a grid that is so many times finer; nothing beyond."""
        size = masses.size // 2
        eta = np.arange(0 if self.folded else -self.last, self.last + 1)
        coarse = np.floor(eta / finer + 0.5).astype(np.int64)
        x = np.zeros(len(self.costs[0]))
        inside = np.abs(coarse) <= size
        x[: self.stated][inside] = masses[coarse[inside] + size]
        return x

    @property
    def program(self) -> Program:
        """The program in one piece, under hockey sticks."""
        live = _Live(self, "", 1.0)
        live.state_all()
        assert isinstance(live.master, RestatedProgram)
        name = f"noise on the integers up to {self.last}, {self.sensitivity} differences"
        return replace(live.master.program, name=name, scale=_SCALE)

    def solve(
        self,
        near: Vector | None = None,
        *,
        more: More | None = None,
        precision: float = 1e-9,
        deadline: Deadline | None = None,
        solver: str = "highs",
    ) -> Answer:
        """The optimum. near: columns that are about the same; more: where bounds are infinitely many; precision: the
        excess over a limit, relative, at which a point counts as feasible. A point that stopped early breaks a limit
        by `excess`; the bound is proven all the same. Raises SolverError."""
        live = _Live(self, solver)
        if solver != "highs":
            live.state_all()
        elif near is not None:
            live.state_near(near)
        for _ in range(_ROUNDS):
            try:
                live.solve(deadline)
            except SolverError:  # numerical trouble, or no time: what was known before it stands
                if live.point is None:
                    raise
                break
            if not live.broken(more, precision) or (deadline is not None and deadline.passed):
                break
        return live.answer()


@dataclass(frozen=True)
class Answer:
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
    def beyond(self) -> float:
        """The mass beyond, of one side in the mean."""
        return float(self.x[self.program.stated :].mean()) if self.program.open else 0.0


class _Bound:
    """A bound of the program. unit: of its rows; columns: of its t, -1 where none is stated, (shifts, outcomes);
    sums: the row Σ t <= limit of every shift, -1 where none is."""

    def __init__(self, bound: Bound, shape: tuple[int, ...]) -> None:
        self.stated, self.limit = bound, allowance(bound)
        self.unit = max(1.0, self.limit)
        self.columns, self.sums = np.full(shape, -1), np.full(shape[0], -1)

    def terms(self, p: Vector, q: Vector) -> Vector:
        """φ(P, Q), but for the steepest ratios, where it is the steepest tangent."""
        a, b = term_tangents(self.stated, p, q)
        return np.maximum(a * p + b * q, 0.0)

    def excess(self, terms: Vector, p: Vector) -> Vector:
        """Over the limit, relative, at every shift; of the worst outcome where the limit is 0."""
        if self.limit:
            return np.asarray(terms.sum(axis=1) / self.limit - 1)
        return np.asarray((terms / np.maximum(p, _SPECK)).max(axis=1))


@dataclass(frozen=True)
class _Tangents:
    """Rows a P + b Q <= t of outcomes of a bound, at one shift, from a row on."""

    row: int
    bound: _Bound
    shift: int
    outcomes: Integers
    a: Vector
    b: Vector


class _Live:
    """The program as far as it is stated."""

    def __init__(self, line: LineProgram, solver: str, scale: float = _SCALE) -> None:
        self.line, self.scale = line, scale
        self.size, self.rows = line.weights.size, 0
        weights, costs = line.weights.astype(float), np.array([[*map(float, each)] for each in line.costs])
        costs, several = costs * weights, len(costs) > 1
        minimised = (
            np.append(np.zeros(self.size), 1.0) if several else costs[0]
        )  # what is minimised: z, or the only loss
        total = [(np.append(weights, 0.0) if several else weights, self.scale)]
        self.width = minimised.size
        self.master = (
            GrowingProgram(minimised, total, _TOLERANCE)
            if solver == "highs"
            else RestatedProgram(minimised, total, solver)
        )
        if several:
            self._extend(0, 0, sp.csr_array(np.hstack([costs, np.full((len(costs), 1), -1.0)])), 0.0)
        self.bounds: list[_Bound] = []
        self.tangents: list[_Tangents] = []
        self.point: Point | None = None
        self.x, self.excess, self.rounds = np.zeros(self.size), 0.0, 0
        self._know(line.bounds)

    def _know(self, bounds: Iterable[Bound]) -> bool:
        """Whether any of the bounds is new."""
        known = {bound.stated for bound in self.bounds}
        new = [bound for bound in bounds if bound not in known]
        self.bounds += [_Bound(bound, self.line.sides[2].shape) for bound in new]
        return bool(new)

    def solve(self, deadline: Deadline | None) -> None:
        """A next point."""
        self.point = self.master.solve(deadline)
        self.x, self.rounds = np.maximum(self.point.x[: self.size], 0.0) / self.scale, self.rounds + 1

    def state_all(self) -> None:
        """Tangents of all outcomes, of cones at P = Q/2 and P = 2 Q."""
        outcomes = np.ones(self.line.sides[1].size)
        for bound in self.bounds:
            for shift in range(bound.sums.size):
                for ratio in (1.0,) if bound.stated.kind == HOCKEY_STICK else (0.5, 2.0):
                    self._state(bound, shift, ratio * outcomes, outcomes, outcomes > 0)

    def state_near(self, x: Vector) -> None:
        """Tangents of all bounds that a point reaches."""
        p, q = self.line.laws(x)
        for bound in self.bounds:
            terms = bound.terms(p, q)
            nearly = _NEARLY if bound.stated.kind == HOCKEY_STICK else 1.0
            for shift in np.flatnonzero(bound.excess(terms, p) >= -nearly).tolist():
                self._state(bound, shift, p, q[shift], terms[shift] > 0)

    def broken(self, more: More | None, precision: float) -> bool:
        """Whether the last point breaks a bound, of which more is now stated."""
        assert self.point is not None
        p, q = self.line.laws(self.x)
        t = np.append(self.point.x / self.scale, 0.0)  # 0 where none is stated
        worst: list[tuple[float, int, _Bound, Vector]] = []
        for bound in self.bounds:
            terms = bound.terms(p, q)
            excess = bound.excess(terms, p)
            conic = bound.stated.kind != HOCKEY_STICK
            shifts = np.flatnonzero(excess > precision).tolist() if conic else [int(excess.argmax())]
            worst += [(float(excess[shift]), shift, bound, terms[shift]) for shift in shifts]
        worst.sort(key=lambda each: -each[0])
        self.excess, new = max([0.0, *(each[0] for each in worst[:1])]), False
        for excess_there, shift, bound, term in worst[:_AT_ONCE]:
            if excess_there > precision:
                gaps = term - t[bound.columns[shift]] * bound.unit
                least = 0.0 if bound.stated.kind == HOCKEY_STICK else _LITTLE * gaps.max()
                new |= self._state(bound, shift, p, q[shift], gaps > least)
        if more is not None and self.excess < _ROUGH:
            for row in q:
                new |= self._know(more(p, row))
        return new

    def _state(self, bound: _Bound, shift: int, p: Vector, q: Vector, where: Flags) -> bool:
        """State the tangents of some outcomes at their ratios p/q. Whether there are new ones."""
        entries, first, second = self.line.sides
        columns = bound.columns[shift]
        o = np.flatnonzero(where & (columns < 0) if bound.stated.kind == HOCKEY_STICK else where)
        if not o.size:
            return False
        if bound.limit and bound.sums[shift] < 0:
            bound.sums[shift] = self._extend(0, 0, sp.csr_array((1, self.width)), bound.limit / bound.unit * self.scale)
        a, b = (side / bound.unit for side in term_tangents(bound.stated, p[o], q[o]))
        rows = sp.diags_array(a) @ entries[first[o]] + sp.diags_array(b) @ entries[second[shift, o]]
        new = o[columns[o] < 0]
        columns[new] = self.width + np.arange(new.size) if bound.limit else 0
        if bound.limit:
            wide = self.width + new.size
            t = sp.csr_array((np.ones(o.size), (np.arange(o.size), columns[o])), shape=(o.size, wide))
            rows = sp.csr_array(sp.hstack([rows, sp.csr_array((o.size, wide - self.size))]) - t)
        row = self._extend(new.size if bound.limit else 0, int(bound.sums[shift]), sp.csr_array(rows), 0.0)
        self.tangents.append(_Tangents(row, bound, shift, o, a, b))
        return True

    def _extend(self, new: int, place: int, rows: sp.csr_array, right: float) -> int:
        """The first of some rows that came with new columns of the sum at a place."""
        rows.data[np.abs(rows.data) < SMALLEST] = 0.0  # solvers would drop them with a warning; the bound has them
        rows.eliminate_zeros()
        self.master.extend(np.full(new, place), rows, right)
        self.rows, self.width = self.rows + rows.shape[0], self.width + new
        return self.rows - rows.shape[0]

    def answer(self) -> Answer:
        """At the last point."""
        assert self.point is not None
        value = self.point.value / self.scale
        return Answer(self.line, self.x, value, self.proven(), self.excess, self.rounds, self.master.version)

    def proven(self) -> Fraction:
        """The lower bound of the module's docstring."""
        assert self.point is not None
        line, duals = self.line, self.point.duals
        entries, first, second = line.sides
        left: dict[tuple[int, int], list[int]] = {}  # of the multiplier of a sum, for every outcome
        charged = Fraction(0)
        for bound in self.bounds:
            for shift, row in enumerate(bound.sums.tolist()):
                most = int(duals[row] * _UNIT) if 0 <= row < duals.size else 0
                left[id(bound), shift] = [most] * first.size
                charged += Fraction(bound.limit / bound.unit) * most
        amounts: dict[float, Counter[int]] = {}  # of the entries of P and Q, by the coefficient they have
        for part in self.tangents:
            rest = left[id(part.bound), part.shift]
            for i, dual in enumerate(duals[part.row : part.row + part.outcomes.size].tolist()):
                if not dual:
                    continue
                o, amount = int(part.outcomes[i]), int(dual * _UNIT)
                if part.bound.limit:
                    amount = min(amount, rest[o])
                    rest[o] -= amount
                for side, entry in ((part.a, first[o]), (part.b, second[part.shift, o])):
                    amounts.setdefault(float(side[i]), Counter())[int(entry)] += amount
        shares = [1] if len(line.costs) == 1 else [int(dual * _UNIT) for dual in duals[: len(line.costs)].tolist()]
        costs = [
            sum((p * c for p, c in zip(shares, each, strict=True)), Fraction(0)) / sum(shares)
            for each in zip(*line.costs, strict=True)
        ]
        priced = [c * int(w) * _UNIT for c, w in zip(costs, line.weights, strict=True)]
        for coefficient, several in amounts.items():
            exact = Fraction(coefficient)
            for entry, amount in several.items():
                for j in entries.indices[entries.indptr[entry] : entries.indptr[entry + 1]].tolist():
                    priced[j] += exact * amount
        least = min(c / int(w) for c, w in zip(priced, line.weights, strict=True))
        return (least - charged) / _UNIT
