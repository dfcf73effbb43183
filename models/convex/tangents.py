"""Compute tangents of convex bounds on two laws (P, Q): linear inequalities that the bounds imply.

`compute_tangents` returns the coefficients a and b of inequalities a P + b Q <= term. Rounding only
weakens them, so they are valid in floats.

Notation. i counts the outcomes, r_i is a ratio at which a tangent touches, φ is the function of the
ratio P/Q that defines the bound, and φ' its derivative. m, α, δ, M and K are the level and the
limit of a bound (`workbench.models.convex.requirements`).

Let φ be convex. Then Q φ(P/Q) is convex and homogeneous in (P, Q), and so a bound
Σ_i Q_i φ(P_i/Q_i) <= M implies for any ratios r_i

    Σ_i φ'(r_i) P_i + (φ(r_i) - r_i φ'(r_i)) Q_i  <=  M

    hockey-stick (m, δ)     φ(r) = max(0, r - m)
    power-cone (α, M)       φ(r) = r^α
    relative-entropy (K)    φ(r) = r ln r

A multiple of (P - Q) may be added to the terms: its sum over all outcomes is 0, because P and Q
have the same total mass. It is chosen so that φ(1) = φ'(1) = 0. Then every term Q φ(P/Q) is >= 0,
the sum of some of the terms is within the limit too, and each term is the largest of 0 and its
tangents.

    bound                term                            a and b of the tangent at r          limit

    hockey-stick, m >= 1 max(0, P - m Q)                 1, -m                                δ
    power-cone           P^α Q^(1-α) - α P + (α - 1) Q   α (r^(α-1) - 1), (1 - α) (r^α - 1)   M - 1
    relative-entropy     P ln(P/Q) - P + Q               ln r, 1 - r                          K
"""

from __future__ import annotations

import math

import numpy as np

from workbench.models.convex.requirements import HOCKEY_STICK, POWER_CONE, Bound
from workbench.solvers.arrays import Pair, Vector

# A tangent whose coefficients exceed this multiple of max(1, limit) is replaced by the steepest
# allowed one.
_MAX_TANGENT_COEFFICIENT = 1e6
# Coefficients are lowered by this relative amount, which exceeds their rounding error.
_ROUNDING_ALLOWANCE = 1e-13
# Limits of a relative entropy are clipped to this when the largest ratio is chosen, so that the
# exponential does not overflow.
_MAX_SINGLE_TERM_ENTROPY = 24.0
# Masses below this count as this when a ratio is computed, so that no division by 0 occurs.
_MIN_MASS = 1e-300


def evaluate_terms(
    bound: Bound,
    p: Vector,
    q: Vector,
) -> Vector:
    """Compute the nonnegative terms Q φ(P/Q) of the outcomes, in floats.

    Args:
        bound: the bound that defines φ.
        p: masses P >= 0, any shape whose last axis counts outcomes.
        q: masses Q >= 0, the same shape.

    Returns:
        The terms, in the shape of `p` and `q`.
    """
    if bound.kind == HOCKEY_STICK:
        return np.maximum(p - bound.level * q, 0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_ratio = np.log(p) - np.log(q)
        alpha = bound.level
        if bound.kind == POWER_CONE:
            zero_mass_terms = (alpha - 1) * q
            power = p * np.exp((alpha - 1) * log_ratio)
            positive_mass_terms = power - alpha * p + (alpha - 1) * q
        else:
            zero_mass_terms = q
            positive_mass_terms = p * (log_ratio - 1) + q
    return np.where(p > 0, np.maximum(positive_mass_terms, 0.0), zero_mass_terms)


def max_term_sum(bound: Bound) -> float:
    """Return the largest sum of the nonnegative terms that a bound allows, rounded up.

    Args:
        bound: the bound whose limit is converted.
    """
    if bound.kind == POWER_CONE:
        return float(np.nextafter(bound.limit - 1, np.inf))
    return bound.limit


def compute_tangents(
    bound: Bound,
    p: Vector,
    q: Vector,
) -> Pair:
    """Compute (a, b) with a P + b Q <= the term of an outcome, for all P, Q >= 0.

    A tangent touches its term at the ratio p/q up to rounding, which only lowers the tangent. At
    extreme ratios the steepest allowed tangent is returned instead.

    Args:
        bound: the bound that defines the terms.
        p: masses P >= 0 at which the tangents touch, shape (..., outcomes).
        q: masses Q >= 0 at which they touch, the same shape.

    Returns:
        The coefficients a and b, each in the shape of `p` and `q`.
    """
    if bound.kind == HOCKEY_STICK:
        return np.ones_like(p), np.full_like(p, -np.nextafter(bound.level, np.inf))
    alpha = bound.level
    max_ratio = (_MAX_TANGENT_COEFFICIENT * max(1.0, bound.limit)) ** (1 / alpha)
    if bound.kind != POWER_CONE:
        # A tangent at this ratio has a slope beyond the limit.
        max_ratio = max(max_ratio, math.exp(min(bound.limit, _MAX_SINGLE_TERM_ENTROPY) + 1))
    ratio = np.maximum(p, _MIN_MASS) / np.maximum(q, _MIN_MASS)
    r = np.clip(ratio, 1 / max_ratio, max_ratio)
    if bound.kind == POWER_CONE:
        power_slope = r ** (alpha - 1)
        power = r**alpha
        p_slope = alpha * (power_slope - 1)
        q_slope = (1 - alpha) * (power - 1)
        p_rounding = _ROUNDING_ALLOWANCE * alpha * (power_slope + 1)
        q_rounding = _ROUNDING_ALLOWANCE * alpha * (power + 1)
        return p_slope - p_rounding, q_slope - q_rounding
    log = np.log(r)
    p_slope = log - _ROUNDING_ALLOWANCE * (1 + np.abs(log))
    q_slope = 1 - r - _ROUNDING_ALLOWANCE * (1 + r)
    return p_slope, q_slope
