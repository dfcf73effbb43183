"""Convex bounds on two laws (P, Q) as tangents: linear inequalities that they imply, exact in floats but for rounding,
which only weakens them.

A bound Σ Q φ(P/Q) <= M, φ convex, implies for any ratios r_i (Q φ(P/Q) is convex and homogeneous in (P, Q))

    Σ_i φ'(r_i) P_i + (φ(r_i) - r_i φ'(r_i)) Q_i  <=  M

    hockey-stick (m, δ)     φ(r) = max(0, r - m)
    power-cone (α, M)       φ(r) = r^α / M, bounded by 1
    relative-entropy (K)    φ(r) = r ln r

What is added to φ that sums to 0 for laws of one mass, a (P - Q), changes none of this: with φ(1) = φ'(1) = 0 every
term Q φ(P/Q) is >= 0, the sum of some of them is within the limit too, and each is the largest of 0 and its tangents.

    hockey-stick m >= 1     max(0, P - m Q)                      tangent at r: P - m Q                 <= δ
    power-cone              P^α Q^(1-α) - α P + (α - 1) Q        α (r^(α-1) - 1), (1 - α) (r^α - 1)    <= M - 1
    relative-entropy        P ln(P/Q) - P + Q                    ln r, 1 - r                           <= K
"""

from __future__ import annotations

import numpy as np

from models.requirements import HOCKEY_STICK, POWER_CONE, Bound
from solvers.arrays import Vector
from solvers.data import SMALLEST

_LARGEST = 1e8  # of a coefficient: steeper tangents are taken at a smaller ratio
_ROUNDING = 1e-15
_SPECK = 1e-9
_STEEPEST, _LESS = 1e6, 1e-13  # coefficient of a term's tangent, over the limit; relative, more than its rounding


def excess(bound: Bound, p: Vector, q: Vector) -> float:
    """By what share of the limit (of 1 where it is smaller, for a δ) the laws break a bound; <= 0 where they do not.

    Ratios that are too steep for a tangent count in full, but for masses that a solver means to be 0.
    """
    a, b, limit = tangent(bound, p, q)
    parts = a * p + b * q
    if bound.kind == HOCKEY_STICK:
        return float(parts.sum() - limit)
    shown = p > _SPECK
    with np.errstate(divide="ignore", over="ignore"):
        r = p[shown] / q[shown]
        phi = r ** (bound.level - 1) / bound.limit if bound.kind == POWER_CONE else np.log(r)
    parts[shown] = p[shown] * phi
    return float((parts.sum() - limit) / limit)


def tangent(bound: Bound, p: Vector, q: Vector) -> tuple[Vector, Vector, float]:
    """(a, b, limit) with a'P + b'Q <= limit for all laws that meet the bound, tight at ratios p/q. Shapes (n,)."""
    some = q > 0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        r = np.where(p > 0, np.where(some, p / q, np.inf), np.where(some, 0.0, 1.0))
    limit = bound.limit
    if bound.kind == HOCKEY_STICK:
        above = r > bound.level
        a, b = above.astype(float), np.where(above, -np.nextafter(bound.level, np.inf), 0.0)
    elif bound.kind == POWER_CONE:
        alpha = bound.level
        r = np.minimum(r, (_LARGEST * bound.limit / alpha) ** (1 / alpha))
        a, b, limit = alpha * r ** (alpha - 1) / bound.limit, (1 - alpha) * r**alpha / bound.limit, 1.0
    else:
        r = np.clip(r, 1 / _LARGEST, _LARGEST)
        a, b = 1 + np.log(r), -r
    pair = np.array((a, b))
    sizes = np.abs(pair)
    small = sizes < SMALLEST
    lost = float(sizes[small].max(initial=0.0))  # of laws: at most so
    pair[small] = sizes[small] = 0.0
    size = float(sizes.max(axis=1, initial=0.0).sum())
    return pair[0], pair[1], limit + 2 * lost + 8 * _ROUNDING * (size + abs(limit))


def allowance(bound: Bound) -> float:
    """What the terms >= 0 of a bound may sum to, rounded up."""
    return float(np.nextafter(bound.limit - 1, np.inf)) if bound.kind == POWER_CONE else bound.limit


def term_tangents(bound: Bound, p: Vector, q: Vector) -> tuple[Vector, Vector]:
    """(a, b) with a P + b Q <= the term >= 0 of an outcome for all P, Q >= 0, tight at the ratio p/q but for rounding,
    which only lowers it, and for the steepest ratios. Shape of p and q."""
    if bound.kind == HOCKEY_STICK:
        return np.ones_like(p), np.full_like(p, -np.nextafter(bound.level, np.inf))
    alpha = bound.level
    most = (_STEEPEST * max(1.0, bound.limit)) ** (1 / alpha)
    r = np.clip(np.maximum(p, 1e-300) / np.maximum(q, 1e-300), 1 / most, most)
    if bound.kind == POWER_CONE:
        rise, value = r ** (alpha - 1), r**alpha
        return alpha * (rise - 1) - _LESS * alpha * (rise + 1), (1 - alpha) * (value - 1) - _LESS * alpha * (value + 1)
    log = np.log(r)
    return log - _LESS * (1 + np.abs(log)), 1 - r - _LESS * (1 + r)
