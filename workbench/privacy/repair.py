"""Repair: turn masses that are nearly private into masses that are, changing as little as possible.

Solver output satisfies f(η) <= e^ε f(η+μ) up to rounding, and rounding either way breaks an exact bound. With integers
k(η) over 2^b and E = ⌊2^112 e^ε⌋ / 2^112 <= e^ε

    raise        k(η+μ) to ⌈k(η) / E⌉ wherever η is no violation of μ, to the least fixed point
    then         k(η) <= E k(η+μ) <= e^ε k(η+μ) holds exactly there, whatever the k are divided by
    violations   of a bound on their mass: the pattern {η : f(η) > e^ε f(η+μ)} of every μ is kept, zeros stay zero
    room         if δ is still missed, mix with the closure without violations, k <- (1-θ) k + θ k', by the least 2^-j
                 that does: k' is purely private, and both the hockey stick and the mass on violations can only fall

The exact audit judges every step; nothing here is trusted.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NotCertified, NotProven
from workbench.exact.numbers import exp_bounds
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.modulo import ModuloNoise, Shift
from workbench.privacy.audit import Privacy, audit_for
from workbench.privacy.claim import Claim

__all__ = ["Pattern", "exact_loss", "pattern_of", "raised", "repair_noise", "threshold"]

Pattern = Mapping[Shift, NDArray[np.bool_]]  # difference -> (N,) where the loss may exceed ε

_BITS = 112  # of E below e^ε
_WIDEST = 4096  # bits of a weight


def threshold(epsilon: Fraction, bits: int = _BITS) -> int:
    """⌊2^bits e^ε⌋."""
    return exp_bounds(epsilon, bits)[0]


def pattern_of(mechanism: AdditiveNoise, budgets: Mapping[Shift, Fraction], slack: float = 1e-6) -> Pattern:
    """Where a mechanism means its privacy loss to exceed ε: f(η) > e^ε f(η+μ) (1 + slack) + 1e-12, in floats.

    Ratios tight up to rounding are no violations, and neither are masses below what a solver can see.
    """
    f = mechanism.pmf
    return {
        shift: f > np.exp(min(float(epsilon), 700.0)) * f[mechanism.question.index(shift)] * (1 + slack) + 1e-12
        for shift, epsilon in budgets.items()
    }


def raised(
    question: ModuloNoise, weights: Sequence[int], budgets: Mapping[Shift, Fraction], pattern: Pattern | None
) -> list[int]:
    """The least integers >= weights with k(η) <= E k(η+μ) for every μ and every η outside its pattern.

    Largest first, so that every element is final when it is taken: ⌈k/E⌉ <= k.
    """
    k = list(weights)
    moves = [
        (question.index(shift).tolist(), threshold(epsilon), None if pattern is None else pattern[shift].tolist())
        for shift, epsilon in budgets.items()
    ]
    heap = [(-value, at) for at, value in enumerate(k) if value]
    heapq.heapify(heap)
    while heap:
        value, at = heapq.heappop(heap)
        value = -value
        if value != k[at]:
            continue  # it has been raised since
        for index, e, free in moves:
            if free is not None and free[at]:
                continue
            least = -(-(value << _BITS) // e)
            to = index[at]
            if k[to] < least:
                k[to] = least
                heapq.heappush(heap, (-least, to))
    return k


def repair_noise(
    question: ModuloNoise,
    values: Sequence[Fraction],
    claim: Claim,
    pattern: Pattern | None = None,
    *,
    bits: int = 96,
) -> Privacy:
    """The exact audit of a mechanism near `values`, which proves a claim of it.

    Args:
        question: of N elements; values: N rationals, negative ones count as 0.
        claim: what to meet; masses are raised for the ratios that its notion bounds, and mixed with uniform noise where
            it bounds none (uniform noise reveals nothing).
        pattern: of the outcomes that may break the ratio, where the notion bounds their mass; by default what the
            values mean.
        bits: of the smallest mass.

    Raises:
        NotCertified: the values are all zero, or need weights of more than 4096 bits.
    """
    least = min((value for value in values if value > 0), default=None)
    if least is None:
        raise NotCertified("There is no mass to repair.")
    width = bits + max(0, (least.denominator // least.numerator).bit_length())
    if width > _WIDEST:
        raise NotCertified(f"Masses as small as 2^-{width - bits} need weights of more than {_WIDEST} bits.")
    k = [max(0, int(value * (1 << width))) for value in values]

    def private(weights: Sequence[int]) -> Privacy | None:
        try:
            return audit_for(AdditiveNoise(question, weights), claim)
        except NotProven:  # as good as refused: a mechanism a little further away can be proven
            return None

    required = {shift: claim.requirements(shift) for shift in question.differences}
    kinds = {requirement.kind for several in required.values() for requirement in several}
    budgets = {
        shift: min(requirement.epsilon for requirement in several) for shift, several in required.items() if several
    }
    if kinds and all(requirement.delta == 0 for several in required.values() for requirement in several):
        repaired = private(raised(question, k, budgets, None))
        if repaired is None:
            raise NotCertified("The exact audit refuses the repaired masses.")
        return repaired
    if kinds == {"mass-above-ratio"}:
        if pattern is None:
            pattern = pattern_of(AdditiveNoise(question, k), budgets)
        k = raised(question, k, budgets, pattern)
    repaired = private(k)
    if repaired is not None:
        return repaired
    closed = raised(question, k, budgets, None) if kinds else [1] * len(k)
    total, closed_total = sum(k), sum(closed)

    def mixed(share: Fraction) -> Privacy | None:
        top, whole = share.numerator, share.denominator
        return private([(whole - top) * a * closed_total + top * b * total for a, b in zip(k, closed, strict=True)])

    for power in range(80, -1, -4):
        repaired = mixed(Fraction(1, 1 << power))
        if repaired is not None and kinds and all(len(several) == 1 for several in required.values()):
            return repaired
        if repaired is not None:  # the share may be large here, where a solver has not come close before
            low, high = Fraction(1, 16 << power), Fraction(1, 1 << power)
            for _ in range(10):
                middle = (low + high) / 2
                audited = mixed(middle)
                low, high, repaired = (middle, high, repaired) if audited is None else (low, middle, audited)
            return repaired
    raise NotCertified("The exact audit refuses the repaired masses.")


def exact_loss(mechanism: AdditiveNoise, losses: Any) -> Fraction:
    """Σ f(η) loss(η) exactly, floats as they are; for a matrix (answers, N) the largest over rows."""
    table = np.asarray(losses, dtype=np.float64)
    rows = table if table.ndim == 2 else table[None, :]
    k, total = mechanism.masses.integers, mechanism.masses.total
    sums = [
        sum((Fraction(c) * w for c, w in zip(row.tolist(), k, strict=True) if c and w), Fraction(0)) for row in rows
    ]
    return max(sums) / total
