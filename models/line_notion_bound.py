"""A lower bound for noise on the integers under convex bounds, in exact arithmetic, however a conic solver ended.

Every bound of `models.convex_bounds` is Σ_o φ(P_o, Q_o) <= M, φ convex and homogeneous, so above each of its tangents:

    kind                 φ(P, Q)            tangent at P/Q = r:  φ >= a P + b Q
    power-cone α         P^α Q^(1-α)        a = α r^(α-1)           b = (1-α) r^α
    relative-entropy     P ln(P/Q)          a = 1 + ln r            b = -r
    hockey-stick m       max(0, P - m Q)    a = 1, b = -m           and a = b = 0

With P = A f, Q = B f (`models.line_notions`) a linear program of tangents near the optimum,

    min c'f   s.t.  w'f = 1,  t_o >= a P_o + b Q_o for some (a, b) of every outcome o,  Σ_o t_o <= M,

is a relaxation. Its multipliers y_ok >= 0 of tangents, and λ of the sums, made to agree (Σ_k y_ok = λ for every o),
prove   min_j (c + Σ_ok y_ok (a_ok A_o + b_ok B_o))_j / w_j - Σ λ M.  Numbers a, b are rounded down; the rest is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from models.affine_program import AffineProgram
from models.line_notions import LineNotionModel
from models.requirements import HOCKEY_STICK, POWER_CONE, Bound
from solvers.arrays import Vector
from solvers.backend import Options, backend
from solvers.data import SMALLEST
from solvers.program import Program
from solvers.solution import Solution

__all__ = ["lower_bound"]

_LESS = 1e-13  # relative, by which a tangent is lowered: more than its rounding
_SCALE = 1 << 80
_LARGEST = 1e6  # coefficient of a tangent: beyond it they are no use to a solver
_AROUND = (0.0, 1e-4, -1e-4, 1e-3, -1e-3, 1e-2, -1e-2, 0.1, -0.1)  # ln r of tangents, from where the optimum is thought
_TURNS = 4
_EXACTING = Options(feasibility_tolerance=1e-10, dual_feasibility_tolerance=1e-10)


@dataclass(frozen=True)
class _Sum:
    """One bound with its tangents: a, b (outcomes, tangents); first, second: P, Q as functions of the columns. A solver
    sees rows in units of the limit."""

    bound: Bound
    first: sp.csr_array
    second: sp.csr_array
    a: Vector
    b: Vector

    def with_tangents(self, a: Vector, b: Vector) -> _Sum:
        """More of them."""
        return _Sum(self.bound, self.first, self.second, np.hstack([self.a, a]), np.hstack([self.b, b]))

    @property
    def unit(self) -> float:
        """Of its rows."""
        return max(1.0, self.bound.limit)


def _tangents(bound: Bound, r: Vector) -> tuple[Vector, Vector]:
    """(a, b) of the tangents at ratios r, a little lower."""
    if bound.kind == HOCKEY_STICK:
        above = np.broadcast_to(np.array([1.0, 0.0]), (r.shape[0], 2))
        return above, -above * bound.level
    most = (_LARGEST * max(1.0, bound.limit)) ** (1 / bound.level)
    r = np.clip(r, 1 / most, most)
    if bound.kind == POWER_CONE:
        power = bound.level
        return power * r ** (power - 1) * (1 - _LESS), (1 - power) * r**power * (1 + _LESS)
    log = 1 + np.log(r)
    return log - _LESS * (1 + np.abs(log)), -r * (1 + _LESS)


def _ratios(term: _Sum, x: Vector) -> Vector:
    """P/Q of every outcome at a point. (outcomes, 1)"""
    p, q = np.asarray(term.first @ x), np.asarray(term.second @ x)
    return np.asarray(np.maximum(p, 1e-300) / np.maximum(q, 1e-300))[:, None]


def lower_bound(model: LineNotionModel, near: Vector, solver: str = "highs") -> Fraction:
    """A proven bound on the loss of the model's optimum. near: a point (columns,) close to it."""
    sums = []
    for (shift,), several in model.bounds.items():
        first, second = model.laws(shift)
        for bound in several:
            start = _Sum(bound, first, second, np.empty((first.shape[0], 0)), np.empty((first.shape[0], 0)))
            r = _ratios(start, np.maximum(near, 0.0)) * np.exp(np.array(_AROUND))[None, :]
            sums.append(start.with_tangents(*_tangents(bound, r)))
    best = Fraction(0)
    for _ in range(_TURNS):
        program = _stated(model, sums)
        with backend(solver).open(program, _EXACTING) as session:
            solution = session.solve({})
        if solution.x is None or solution.row_dual is None:
            return best
        proven = _proven(model, sums, solution)
        done = float(proven - best) <= 1e-10 * float(proven)
        best = max(best, proven)
        if done:
            break
        sums = [
            term
            if term.bound.kind == HOCKEY_STICK
            else term.with_tangents(*_tangents(term.bound, _ratios(term, np.maximum(solution.x[: model.columns], 0.0))))
            for term in sums
        ]
    return best


def _stated(model: LineNotionModel, sums: list[_Sum]) -> Program:
    """The program of the docstring. Rows: the total, then of every bound its sum and its tangents, one by one."""
    p = AffineProgram({})
    f, total = p.columns("f", (model.columns,)), p.rows("total", 1, equal=True)
    p.loss(f, model.losses)
    p.put(total, f, model.weights)
    p.right(total, 1.0)
    for k, term in enumerate(sums):
        t, limit = p.columns(f"t_{k}", term.first.shape[:1], lower=-np.inf), p.rows(f"sum_{k}", 1)
        p.put(limit, t, 1.0)
        p.right(limit, term.bound.limit / term.unit)
        for a, b in zip(term.a.T / term.unit, term.b.T / term.unit, strict=True):
            rows = p.rows(f"tangents_{k}", t.size)
            tangents = sp.coo_array(sp.diags_array(a) @ term.first + sp.diags_array(b) @ term.second)
            (row, column), seen = tangents.coords, np.abs(tangents.data) >= SMALLEST
            p.put(rows[row[seen]], f[column[seen]], tangents.data[seen])
            p.put(rows, t, -1.0)
    return p.program(f"tangents of {model.program.name}")


def _proven(model: LineNotionModel, sums: list[_Sum], solution: Solution) -> Fraction:
    """The bound of the docstring, from the multipliers of the program."""
    assert solution.row_dual is not None
    duals = np.maximum(-solution.row_dual, 0.0)
    priced = [Fraction(loss) for loss in model.losses.tolist()]
    allowance, at = Fraction(0), 1
    for term in sums:
        outcomes, count = term.a.shape
        y = duals[at + 1 : at + 1 + outcomes * count].reshape(count, outcomes).T / term.unit
        at += 1 + outcomes * count
        whole = [[int(value * _SCALE) for value in row] for row in y.tolist()]
        most = max(map(sum, whole))
        if not most:
            continue
        allowance += Fraction(most, _SCALE) * Fraction(term.bound.limit)
        for o, row in enumerate(whole):
            row[0] += most - sum(row)
            a = sum(
                (Fraction(v, _SCALE) * Fraction(c) for v, c in zip(row, term.a[o].tolist(), strict=True) if v),
                Fraction(0),
            )
            b = sum(
                (Fraction(v, _SCALE) * Fraction(c) for v, c in zip(row, term.b[o].tolist(), strict=True) if v),
                Fraction(0),
            )
            for share, side in ((a, term.first), (b, term.second)):
                start, stop = side.indptr[o], side.indptr[o + 1]
                for j, entry in zip(side.indices[start:stop].tolist(), side.data[start:stop].tolist(), strict=True):
                    priced[j] += share * Fraction(entry)
    weights = map(Fraction, model.weights.tolist())
    return min(loss / w for loss, w in zip(priced, weights, strict=True)) - allowance
