"""Lower bounds at (ε, δ) on the loss of every channel for real answers of which any two are neighbours.

Answers x_i with weights p_i, Σ p = 1, and any multipliers λ_i: with v_i(o) = p_i c(o - x_i) - λ_i, v = v^+ - v^-, every
channel M, as Σ_o M_i(o) = 1, costs

    loss = Σ λ + Σ_o Σ_i v_i M_i >= Σ λ - Σ_i max_o (1 - κ) v_i^- - Σ_o Σ_i κ v_i^- M_i + Σ_o Σ_j v_j^+ M_j
    κ(o) = min(1, Σ_j v_j^+ / (e^ε Σ_i v_i^-)),     θ_j(o) = v_j^+ / Σ v^+,     v_j^+ >= e^ε κ θ_j Σ_i v_i^-

so that the last two sums are >= -Σ_ij Σ_o κ v_i^- θ_j (M_i - e^ε M_j)^+ >= -δ Σ_ij max_o κ v_i^- θ_j at (ε, δ), and

    loss >= Σ λ - Σ_i max_o (1 - κ) v_i^- - δ Σ_ij max_o κ v_i^- θ_j                                (`bound_of`)

An output between two of those given, the x_i among them, may be drawn at random from the two, with itself as the mean:
that costs no more where c(r) = |r|, and L²/4 more at most where they are L apart and c(r) = r²; one beyond them all
becomes the nearest. So the outputs are those given, and the caller takes L²/4 off. With λ best at δ = 0, c(r) = |r|
and narrow bins the loss is about (1 - δ) Σ λ, which the best channel at δ = 0 reaches where it publishes the answer
itself with probability δ.

Without the λ: at δ = 0 there are λ_i >= 0 with κ = 1 and Σ λ = U, the least loss (duality; rows of sums >= 1 cost as
much, as one that cannot be lowered anywhere is the least everywhere, so that all can be scaled). As v_i^- <= λ_i,
v_j^+ <= p_j c and Σ v^+ >= Σ v = F - U with F(o) = Σ_j p_j c(o - x_j),

    loss >= U - δ U Σ_j p_j max_o c(o - x_j) / (F(o) - U)                                            (`share_lost`)

For c(r) = r² the maximum is 1 + (x_j - m)²/(K - U), m the mean, K = F(m) (Cauchy and Schwarz: F = K + (o - m)²), the
sum 1 + K/(K - U). For |r| it is convex in x_j, so chords are above it.
"""

from __future__ import annotations

import math

import numpy as np

from solvers.arrays import Vector

_ROUNDED = 1e-9  # relative, more than floats lose
_CHORDS = 65


def share_lost(x: Vector, p: Vector, least: float, loss: str) -> float:
    """Σ_j p_j max_o c(o - x_j) / (F(o) - U), rounded up. x: (k,) increasing; p: (k,) of sum 1; least: U, or more."""
    if loss == "squared":
        spread = float(p @ (x - p @ x) ** 2)
        left = spread * (1 - _ROUNDED) - least
        return (1 + spread / left) * (1 + _ROUNDED) if left > 0 else math.inf
    below, moment = np.cumsum(p), np.cumsum(p * x)
    left = (x * (2 * below - below[-1]) + moment[-1] - 2 * moment) * (1 - _ROUNDED) - least  # F - U at the x_j
    if not (left > 0).all():
        return math.inf
    at = np.linspace(x[0], x[-1], _CHORDS)
    most = np.array([(np.abs(x - each) / left).max() for each in at])
    return float(p @ np.interp(x, at, most)) * (1 + _ROUNDED)


def bound_of(costs: Vector, multipliers: Vector, ratio: float, delta: float) -> float:
    """The bound of any multipliers, rounded down. costs: (k, m) p_i c(o - x_i); multipliers: (k,) λ; ratio: e^ε."""
    v = costs - multipliers[:, None]
    less, more = np.maximum(-v, 0.0), np.maximum(v, 0.0)
    above, below = more.sum(axis=0), ratio * less.sum(axis=0)
    share = more / np.maximum(above, np.finfo(float).tiny)
    covered = np.minimum(1.0, above / np.maximum(below * (1 + _ROUNDED), np.finfo(float).tiny))
    lost = float(((1 - covered) * less).max(axis=1).sum())
    for row in less * covered:
        near = np.flatnonzero(row)
        if near.size:
            lost += delta * float((row[near] * share[:, near]).max(axis=1).sum())
    total = float(multipliers.sum())
    return total - lost - _ROUNDED * (float(np.abs(multipliers).sum()) + lost)
