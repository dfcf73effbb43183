"""The part of the DQL mechanism that both parties must compute alike, in integers that are the same on every machine.

δ₀ and the law of T are computed in 100-digit decimal arithmetic, whose operations are correctly rounded everywhere.
A difference of one bit between two machines' mathematical libraries would otherwise, once in some 2^50 scalars, let
encoder and decoder disagree on T.

    paper                   code                source
    e^(δ₀) = δ₀ℓ + 1        delta_zero          Sec. 5
    δ_t = 2^-t δ₀           δ₀ / 2**t           Sec. 5
    F_T(t) / F_T(t_max)     level_thresholds    (4), evaluated as printed; 100 digits outlast its cancellation
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from functools import lru_cache

from workbench.errors import InvalidRequest

__all__ = ["delta_zero", "level_thresholds"]

_DIGITS = 100
_LARGEST = 2.0**500  # so that 1 + δ₀ℓ is a double


def _context() -> decimal.Context:
    return decimal.Context(
        prec=_DIGITS,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=-999999,
        Emax=999999,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
    )


@lru_cache(maxsize=256)
def _delta_zero(ell: float) -> Decimal:
    """The root δ₀ > 0 of h(δ) = e^δ - δℓ - 1, to at least 60 digits.

    h is convex with h(0) = 0 and h'(0) = 1 - ℓ < 0, so Newton's method falls monotonically to δ₀ from any start above
    it; the start ln(2ℓ ln ℓ + 1) >= δ₀ is the proof of Theorem 8's.
    """
    with decimal.localcontext(_context()):
        slope = Decimal(ell)
        delta = (2 * slope * slope.ln() + 1).ln() * (1 + Decimal(10) ** -60)
        for _ in range(200):
            power = delta.exp()
            change = (power - delta * slope - 1) / (power - slope)
            delta -= change
            if abs(change) <= delta * Decimal(10) ** -62:
                break
        return delta


def delta_zero(ell: float) -> float:
    """The largest step δ₀ of DQL as the nearest double. ell: > 1, at most 2^500; raises InvalidRequest."""
    if not (isinstance(ell, int | float) and 1 < ell <= _LARGEST):
        InvalidRequest.must("ell", "a finite number > 1, at most 2^500", ell)
    return float(_delta_zero(float(ell)))


@lru_cache(maxsize=256)
def level_thresholds(ell: float, max_level: int) -> tuple[int, ...]:
    """Integers c_0 <= c_1 <= ... <= c_(max_level - 1) with c_t = ⌊2^64 F_T(t) / F_T(max_level)⌋.

    For a uniform 64-bit word, #{t : word >= c_t} has the law of T given T <= max_level, to 2^-64. A ratio of F_T is
    the finite product of (4) over i = t+1, ..., max_level.
    """
    with decimal.localcontext(_context()):
        delta = _delta_zero(ell) / 2**max_level
        slope, scale = Decimal(ell), Decimal(2) ** 64
        ratio = Decimal(1)
        thresholds: list[int] = []
        for _ in range(max_level):
            power = (-delta).exp()
            line = delta * slope + 1
            ratio *= (4 - 4 * line * power) / ((1 + power) ** 2 * (2 / (1 + power * power) - line))
            thresholds.append(int(ratio * scale))
            delta *= 2
        return tuple(reversed(thresholds))
