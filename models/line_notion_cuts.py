"""Noise on the integers under hockey sticks alone, however many, by cutting planes; bounds in exact arithmetic.

    min c'f   s.t.  w'f = 1,   Σ_V (P - m Q) <= δ  for all V,  of every bound (m, δ) of every shift

with the columns of `models.line_notions`. The hockey stick at m is the largest of these sums, at V = {P > m Q}: a pass
over the bounds finds those that a point breaks; points between the master program's vertex and a running centre are
separated where they break one. A bound with δ = 0 is P <= m Q, outcome by outcome.

Bound: for any multipliers u >= 0 of rows r'f <= δ,  min >= min_j (c + Σ u r)_j / w_j - Σ u δ,  in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np

from models.line_notions import LineNotionModel
from models.requirements import Bound
from solvers.arrays import Flags, Vector
from solvers.errors import SolverError
from solvers.growing import GrowingProgram

__all__ = ["LineCuts"]

Broken = Callable[[int, Vector, Vector], Iterable[Bound]]  # (shift, P, Q) -> the bounds that may be broken there

_SCALE = 1 << 80
_ROUNDS, _STALL, _GAIN = 1000, 30, 1e-10  # rounds at most, and those that may bring less than this share in all
_PER_ROUND = 10  # rows of a shift
_SMALL = 2e-9  # coefficients that HiGHS drops; only where rows are stated, never where bounds are proven
_CLOSE = 1e-9  # excess over δ, relative, at which a point counts as feasible


class LineCuts:
    """One run. model: of which the columns and laws count, not the bounds; broken: gives bounds at a point.

    rounds: of work, after `run`.
    """

    def __init__(self, model: LineNotionModel, shifts: Iterable[int], broken: Broken) -> None:
        self.model, self.broken = model, broken
        self.laws = {shift: tuple(part.toarray() for part in model.laws(shift)) for shift in shifts}
        self.unit = float(model.losses.max()) or 1.0
        units = model.column_units
        self.columns = units
        self.master = GrowingProgram(model.losses * units / self.unit, [(model.weights * units, 1.0)], tolerance=1e-10)
        self.rows: list[tuple[Vector, float]] = []  # r, δ
        self.rounds, self.version = 0, self.master.version

    def _add(self, row: Vector, limit: float) -> None:
        scaled = row * self.columns
        size = max(float(np.abs(scaled).max()), 1e-300)
        stated = np.where(np.abs(scaled / size) < _SMALL, 0.0, scaled / size)
        self.master.add(stated, limit / size)
        self.rows.append((row, limit))

    def _separate(self, x: Vector) -> int:
        """How many rows a point brought."""
        before = len(self.rows)
        for shift, (first, second) in self.laws.items():
            p, q = first @ x, second @ x
            candidates: list[tuple[float, Bound, Flags]] = []
            for bound in self.broken(shift, p, q):
                gaps = p - bound.level * q
                inside = gaps > 0
                if not bound.limit:
                    for o in np.flatnonzero(gaps > _CLOSE * p).tolist():
                        self._add(first[o] - bound.level * second[o], 0.0)
                elif (excess := float(gaps[inside].sum()) / bound.limit - 1) > _CLOSE:
                    candidates.append((excess, bound, inside))
            candidates.sort(key=lambda candidate: -candidate[0])
            for _, bound, inside in candidates[:_PER_ROUND]:
                self._add(first[inside].sum(axis=0) - bound.level * second[inside].sum(axis=0), bound.limit)
        return len(self.rows) - before

    def run(self, start: Vector) -> Vector:
        """The columns of the optimum. start: about the same. Raises SolverError where there is none."""
        self._separate(start)
        centre, x, values = start, start, [0.0]
        for _ in range(_ROUNDS):
            try:
                point = self.master.solve()
            except SolverError:
                if not self.rounds:
                    raise
                break  # numerical trouble: what was known before it stands
            self.rounds += 1
            x = point.x * self.columns
            values.append(point.value)
            if len(values) > _STALL and values[-1] - values[-_STALL] <= _GAIN * abs(values[-1]):
                break
            between = 0.5 * (centre + x)
            if self._separate(between):
                centre = 0.7 * centre + 0.3 * x
            else:
                centre = between
                if not self._separate(x):
                    break
        return np.maximum(x, 0.0)

    def proven(self) -> Fraction:
        """The bound of the docstring. The multipliers are those of columns in one unit: what they miss is then no more
        than a solver's tolerance."""
        master = GrowingProgram(self.model.losses / self.unit, [(self.model.weights, 1.0)], tolerance=1e-10)
        sizes = []
        for row, limit in self.rows:
            sizes.append(max(float(np.abs(row).max()), 1e-300))
            stated = np.where(np.abs(row / sizes[-1]) < _SMALL, 0.0, row / sizes[-1])
            master.add(stated, limit / sizes[-1])
        return self._priced(master.solve().duals, sizes)

    def _priced(self, duals: Vector, sizes: list[float]) -> Fraction:
        priced = [Fraction(loss) for loss in self.model.losses.tolist()]
        allowance = Fraction(0)
        for (row, limit), size, dual in zip(self.rows, sizes, duals.tolist(), strict=True):
            u = Fraction(int(dual * self.unit / size * _SCALE), _SCALE)
            if u:
                allowance += u * Fraction(limit)
                for j in np.flatnonzero(row).tolist():
                    priced[j] += u * Fraction(float(row[j]))
        weights = map(Fraction, self.model.weights.tolist())
        return min(loss / w for loss, w in zip(priced, weights, strict=True)) - allowance
