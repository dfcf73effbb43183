"""The least-squares unbiased label randomizer without an output grid: column generation over rays.

    min Σ_y p_y E (o-y)²   s.t.  M is ε-DP for all pairs of labels,  E[o | y] = y     (Sec. 6 of the label-DP paper)

Every ε-DP channel is a mixture of rays: a column M[·,o] is t (1 + q 1_S) for outputs o, label sets S and t >= 0, with
q = e^ε - 1 (the extreme rays of t_o <= M[y,o] <= e^ε t_o). With w_y = 1 + q 1[y in S] the master program is

    min Σ_j t_j Σ_y p_y w_yj (o_j - y)²    s.t.   Σ_j w_yj t_j = 1,   Σ_j w_yj (o_j - y) t_j = 0   for every y.

With duals v, u of the two rows of y, and f_y(o) = p_y (o-y)² - v_y - u_y (o-y), a ray (o, S) has the reduced cost
Σ_y w_y f_y(o), least for S = {y : f_y(o) < 0}:  φ(o) = Σ_y f_y(o) + q Σ_y min(0, f_y(o)). On each piece between the
roots of the f_y this is one convex quadratic, so its minima are found exactly. Lowering every v_y by m/k, m = -min φ,
makes the duals feasible: Σ v - m is a proven lower bound.

Outputs leave the label range: unbiasedness costs an order of magnitude (labels 0..10 uniform, ε = 1: 98.0075420
against 8.40878638).

| here                        | meaning                             |
|-----------------------------|-------------------------------------|
| rays: outputs (j,), raised (j, k) | o_j and S_j                   |
| master                      | the restricted program, a `Program` |
| price                       | rays of negative reduced cost, and m |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.program import Block, Data, Program

__all__ = ["Rays", "dual_values", "master", "price", "start"]

Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Rays:
    """Candidate columns: outputs (j,), raised (j, k): which labels have e^ε times the mass of the others."""

    outputs: Vector
    raised: Flags

    def plus(self, other: Rays) -> Rays:
        """Both."""
        return Rays(np.append(self.outputs, other.outputs), np.concatenate([self.raised, other.raised]))

    def keep(self, which: NDArray[np.intp]) -> Rays:
        """Some of them."""
        return Rays(self.outputs[which], self.raised[which])

    def weights(self, q: float) -> Vector:
        """w (j, k)."""
        return np.where(self.raised, 1.0 + q, 1.0)


def start(labels: Vector, q: float) -> Rays:
    """k-ary randomized response with the bias taken out: o_i = ((q + k) y_i - Σ y)/q, S_i = {i}. Feasible."""
    k = labels.size
    return Rays(((q + k) * labels - labels.sum()) / q, np.eye(k, dtype=bool))


def master(labels: Vector, prior: Vector, q: float, rays: Rays, unit: float = 1.0) -> Program:
    """The restricted master program, rows "total" (k,) and "mean" (k,); its columns "t" are (1 + q) t, of the size of
    probabilities; the objective in units of `unit`, which should be of its size (solvers' tolerances are absolute).
    """
    k, w = labels.size, rays.weights(q) / (1 + q)
    gap = rays.outputs[:, None] - labels[None, :]  # (j, k)
    width = max(float(np.ptp(labels)), 1.0)  # the rows of the mean in units of the label range
    rows = np.concatenate([w.T, np.where(np.abs(gap) < 1e-9 * width, 0.0, w * gap).T / width])
    right = np.concatenate([np.ones(k), np.zeros(k)])
    count = rays.outputs.size
    cost = (w * gap**2) @ prior / unit
    data = Data(
        cost, 0.0, sp.csc_array(rows), right, right, np.zeros(count), np.ones(count), np.zeros(count, dtype=bool)
    )
    return Program(
        name=f"unbiased randomizer of {k} labels, {count} rays",
        template=data,
        variables=(Block("t", 0, (count,)),),
        rows=(Block("total", 0, (k,)), Block("mean", k, (k,))),
    )


def dual_values(labels: Vector, row_dual: Vector, unit: float = 1.0) -> tuple[Vector, Vector]:
    """(v, u) in the units of the docstring, from the duals of `master`."""
    k, width = labels.size, max(float(np.ptp(labels)), 1.0)
    return row_dual[:k] * unit, row_dual[k:] * unit / width


def price(labels: Vector, prior: Vector, q: float, v: Vector, u: Vector) -> tuple[Rays, float]:
    """(rays of negative reduced cost, one for each local minimum of φ, the deepest first; m = -min φ >= 0)."""
    # f_y(o) = a o² + b o + c
    a, b, c = prior, -2 * prior * labels - u, prior * labels**2 - v + u * labels
    square = b * b - 4 * a * c
    real = (a > 0) & (square > 0)
    root = np.sqrt(np.where(real, square, 0.0))
    far = -(b + np.where(b >= 0, root, -root)) / 2  # the root without cancellation
    with np.errstate(divide="ignore", invalid="ignore"):
        left, right = np.where(real, far / a, 0.0), np.where(real & (far != 0), c / far, 0.0)
        straight = np.where((a == 0) & (b != 0), -c / b, np.nan)
    points = np.concatenate([left[real], right[real], straight[np.isfinite(straight)]])
    edges = np.unique(points)
    middles = (edges[1:] + edges[:-1]) / 2
    ends = [edges[0] - 1, edges[-1] + 1] if edges.size else [0.0]
    inner = np.concatenate([ends[:1], middles, ends[1:]])
    low, high = np.concatenate([[-np.inf], edges]), np.concatenate([edges, [np.inf]])
    raised = a * inner[:, None] ** 2 + b * inner[:, None] + c < 0  # (pieces, k)
    w = np.where(raised, 1.0 + q, 1.0)
    A, B, C = w @ a, w @ b, w @ c
    best = np.clip(-B / (2 * A), low, high)
    depth = A * best**2 + B * best + C
    order = np.argsort(depth)
    order = order[depth[order] < 0]
    return Rays(best[order], raised[order]), max(0.0, float(-depth.min()))
