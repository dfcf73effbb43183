"""The choice of ℓ for a bit budget: the smallest ℓ, hence the smallest decoder ε, whose exact mean length meets it.

The mean length is not monotone in ℓ: every step size is a power of two times δ₀, so a code whose length jumps at powers
of two sees all levels jump together, once an octave of δ₀. The search therefore runs over ln δ₀, ℓ = (e^(δ₀) - 1)/δ₀:

1. once an octave, from ℓ - 1 = 2^-51 up, to find where the length comes within reach of the budget;
2. from there `SCAN` points an octave, polishing local minima that stay above the budget by no more than a dip
   between two points can hide (the length falls by jumps, but rises by at most 2 bits an octave);
3. in the first bracket found, bisection to the last bit of δ₀.

"Smallest" is claimed at that resolution. It ends at δ₀ = 160: there ℓ > 10^67, the laws of δ_T for δ₀ and 2δ₀ agree to
the last digit of a double, and [80, 160] is one whole octave, so a budget not met by then is met by no ℓ. (Towards
ℓ = ∞, where the decoder has no privacy left, the length oscillates for ever and need not fall below the budget.)

Theorem 8 judges the search: an ℓ whose bound on the mean length (of the Elias delta code) fits the bits fits them
itself, so the least ℓε is at most that of the smallest such ℓ.

    paper                               code
    "the expected length is set to 5"   bits = 5
    ℓ, ℓε                               LeastEll.ell, LeastEll.decoder_epsilon
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from workbench.errors import must
from workbench.exact.numbers import round_up
from workbench.mechanisms.dyadic_laplace.dyadic_law import (
    compute_levels,
    compute_levels_at,
    delta_zero,
    ell_from_delta,
)
from workbench.mechanisms.dyadic_laplace.elias import Code, check_code
from workbench.mechanisms.dyadic_laplace.mean_length import (
    UNIFORM_DATA,
    DataLaw,
    elias_delta_bound,
    mean_bits,
    mean_bits_at,
)
from workbench.mechanisms.dyadic_laplace.piecewise_linear import read_positive_float
from workbench.pipeline.design import OracleVerdict
from workbench.solvers.arrays import Vector
from workbench.solvers.search import bisect

SCAN_POINTS_PER_OCTAVE: Final = 64
_LOWEST: Final = math.log2(2.0**-50)  # log2 δ₀ where ℓ - 1 is about 2^-51
_HIGHEST: Final = math.log2(160.0)
_SLACK: Final = 3.0  # bits by which the length may swing within an octave
_DIP: Final = 0.25
_OCTAVES = np.arange(-30, 7.01, 0.25)  # log2 δ₀; every one that fits bounds the least ℓ from above


@dataclass(frozen=True)
class LeastEll:
    """ell: the smallest ℓ, delta0: its δ₀, decoder_epsilon: ℓε, rounded up, per unit of ‖x - x'‖₁, mean_bits: the exact
    mean length there; all None where no ℓ is within the bits. least_bits: the smallest mean length met in the search,
    over all ℓ where none is within them."""

    ell: float | None
    delta0: float | None
    decoder_epsilon: float | None
    mean_bits: float | None
    least_bits: float


class _Length:
    """The exact mean length as a function of log2 δ₀, the smallest value seen remembered."""

    def __init__(self, epsilon: float, code: Code, data: DataLaw) -> None:
        self._request = (epsilon, code, data)
        self.least = math.inf

    def many(self, log_delta: Vector) -> Vector:
        """E[bits] at many log2 δ₀; shape (n,)."""
        lengths = _lengths(*self._request, log_delta.tobytes())
        self.least = min(self.least, float(lengths.min()))
        return lengths

    def __call__(self, log_delta: float) -> float:
        return float(self.many(np.array([log_delta]))[0])


@lru_cache(maxsize=2048)
def _lengths(epsilon: float, code: Code, data: DataLaw, points: bytes) -> Vector:
    """E[bits] at the log2 δ₀ with these bytes: searches for other budgets pass over the same grids."""
    log_delta = np.frombuffer(points)
    parts = np.array_split(log_delta, 8) if log_delta.size >= 8 else [log_delta]
    lengths = np.concatenate(
        [mean_bits_at(epsilon, *compute_levels_at(np.exp2(part)), code, data) for part in parts]
    )
    lengths.flags.writeable = False
    return lengths


def find_least_ell(
    epsilon: float, bits: float, code: Code = "gamma", data: DataLaw = UNIFORM_DATA
) -> LeastEll:
    """The smallest ℓ whose exact mean length per scalar, x ~ data, is at most `bits`.

    epsilon: ε > 0 of the database; bits: > 0; code: "gamma" or "delta"; data: x ~ Unif(-1, 1) as in Fig. 3 by default.
    Raises InvalidRequest.
    """
    epsilon, bits = read_positive_float(epsilon, "epsilon"), read_positive_float(bits, "bits")
    check_code(code)
    largest = epsilon * data.max_size
    if not largest <= 2.0**60:
        must("epsilon times the largest |x|", "at most 2^60", largest)
    length = _Length(epsilon, code, data)
    crossing = _first_crossing(length, bits)
    ell = None if crossing is None else _as_ell(crossing, epsilon, bits, code, data)
    if ell is None:
        return LeastEll(None, None, None, None, length.least)
    decoder = round_up(Fraction(ell) * Fraction(epsilon))
    return LeastEll(
        ell,
        delta_zero(ell),
        decoder,
        mean_bits(epsilon, compute_levels(ell), code, data),
        length.least,
    )


def _first_crossing(length: _Length, bits: float) -> float | None:
    """The smallest log2 δ₀ found with length <= bits, or None."""
    octaves = np.append(np.arange(_LOWEST, _HIGHEST), _HIGHEST)
    coarse = length.many(octaves)
    if coarse[0] <= bits:
        return float(octaves[0])
    near = np.flatnonzero(coarse <= max(bits, float(coarse.min())) + _SLACK)
    lowest = (math.inf, _HIGHEST)
    points = [float(octaves[max(0, near[0] - 1)])]
    heights = [length(points[0])]
    while (at := points[-1]) < _HIGHEST:
        grid = np.minimum(
            at + np.arange(1, SCAN_POINTS_PER_OCTAVE + 1) / SCAN_POINTS_PER_OCTAVE, _HIGHEST
        )
        # after the last points of the previous octave, to see minima across its end
        points, heights = points[-2:] + grid.tolist(), heights[-2:] + length.many(grid).tolist()
        for i in range(1, len(points)):
            if heights[i] <= bits:
                return _bisect(length, bits, points[i - 1], points[i])
            lowest = min(lowest, (heights[i], points[i]))
            dip = i + 1 < len(points) and heights[i] <= min(heights[i - 1], heights[i + 1])
            if dip and heights[i] <= bits + _DIP:
                low = _minimum(length, bits, points[i - 1], points[i + 1])
                if low is not None:
                    return _bisect(length, bits, points[i - 1], low)
    _minimum(
        length,
        bits,
        lowest[1] - 1 / SCAN_POINTS_PER_OCTAVE,
        min(lowest[1] + 1 / SCAN_POINTS_PER_OCTAVE, _HIGHEST),
    )  # sharpens length.least
    return None


def _minimum(length: _Length, bits: float, low: float, high: float) -> float | None:
    """The minimum in (low, high), by Brent's method, where its length is <= bits; else None."""
    from scipy.optimize import minimize_scalar  # slow to import

    dip = minimize_scalar(
        length, bounds=(low, high), method="bounded", options={"xatol": 1e-6, "maxiter": 40}
    )
    return float(dip.x) if dip.fun <= bits else None


def _bisect(length: _Length, bits: float, above: float, below: float) -> float:
    """A point with length <= bits next to one above it, in [above, below]; length(above) > bits >= length(below)."""
    return bisect(lambda at: length(at) <= bits, above, below, max_steps=60)[1]


def _as_ell(
    log_delta: float, epsilon: float, bits: float, code: Code, data: DataLaw
) -> float | None:
    """ℓ as a double whose own exact mean length is at most `bits`: rounding to a double can cost the last digits."""
    ell = max(float(ell_from_delta(2.0**log_delta)[0]), math.nextafter(1.0, 2.0))
    step = math.ulp(ell)
    for _ in range(40):
        if mean_bits(epsilon, compute_levels(ell), code, data) <= bits:
            return ell
        ell += step
        step *= 2
    return None


def judge_decoder_epsilon(
    decoder_epsilon: float, epsilon: float, bits: float, code: str, data: DataLaw
) -> OracleVerdict:
    """The verdict on a least decoder ε, inf where none was found."""
    if code != "delta":
        return OracleVerdict.without_formula(
            "no closed form is known for the least ell; Theorem 8 is about the delta code."
        )
    ell, deltas, pmf = compute_levels_at(np.exp2(_OCTAVES))
    spread = np.log1p(2 * ell * np.log(ell))  # ln(2ℓ ln ℓ + 1) >= δ₀
    size = np.log(2 * epsilon * data.mean_size + 9 / 8 * spread + 2) - (pmf * np.log(deltas)).sum(
        axis=1
    )
    fits = [
        value
        for value, z in zip(ell.tolist(), size.tolist(), strict=True)
        if elias_delta_bound(z) <= bits
    ]
    if not fits:
        return OracleVerdict.without_formula("Theorem 8 shows no ell within these bits.")
    proof = (
        "Theorem 8: its bound on the mean length of the delta code is within the bits at this ell."
    )
    return OracleVerdict.judge(
        decoder_epsilon, "Theorem 8", min(fits) * epsilon, "upper bound", proof
    )
