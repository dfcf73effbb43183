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

import math

import numpy as np

from workbench.models.convex.requirements import HOCKEY_STICK, POWER_CONE, Bound
from workbench.solvers.arrays import Pair, Vector

_STEEPEST, _LESS = (
    1e6,
    1e-13,
)  # coefficient of a term's tangent, over the limit; relative, more than its rounding
_LARGEST = 24.0  # relative entropy up to which a single term has tangents that reach it


def evaluate_terms(bound: Bound, p: Vector, q: Vector) -> Vector:
    """The terms >= 0 of the outcomes, in floats. Shape of p and q."""
    if bound.kind == HOCKEY_STICK:
        return np.maximum(p - bound.level * q, 0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log, alpha = np.log(p) - np.log(q), bound.level
        if bound.kind == POWER_CONE:
            none, some = (
                (alpha - 1) * q,
                p * np.exp((alpha - 1) * log) - alpha * p + (alpha - 1) * q,
            )
        else:
            none, some = q, p * (log - 1) + q
    return np.where(p > 0, np.maximum(some, 0.0), none)


def max_term_sum(bound: Bound) -> float:
    """What the terms >= 0 of a bound may sum to, rounded up."""
    return float(np.nextafter(bound.limit - 1, np.inf)) if bound.kind == POWER_CONE else bound.limit


def compute_tangents(bound: Bound, p: Vector, q: Vector) -> Pair:
    """(a, b) with a P + b Q <= the term >= 0 of an outcome for all P, Q >= 0, tight at the ratio p/q but for rounding,
    which only lowers it, and for the steepest ratios. Shape of p and q."""
    if bound.kind == HOCKEY_STICK:
        return np.ones_like(p), np.full_like(p, -np.nextafter(bound.level, np.inf))
    alpha = bound.level
    most = (_STEEPEST * max(1.0, bound.limit)) ** (1 / alpha)
    if bound.kind != POWER_CONE:
        most = max(most, math.exp(min(bound.limit, _LARGEST) + 1))  # a slope beyond the limit
    r = np.clip(np.maximum(p, 1e-300) / np.maximum(q, 1e-300), 1 / most, most)
    if bound.kind == POWER_CONE:
        rise, value = r ** (alpha - 1), r**alpha
        return alpha * (rise - 1) - _LESS * alpha * (rise + 1), (1 - alpha) * (
            value - 1
        ) - _LESS * alpha * (value + 1)
    log = np.log(r)
    return log - _LESS * (1 + np.abs(log)), 1 - r - _LESS * (1 + r)
