"""Find the smallest ℓ, hence the smallest decoder ε, whose exact mean length fits a bit budget.

The mechanism is the dyadic quantized Laplace mechanism (`workbench.mechanisms.dyadic_laplace`). It
adds Laplace noise with the database privacy ε and sends the result as an integer in an Elias code.
The decoder, who sees these integers, has the weaker guarantee ℓε with ℓ > 1. Theorem 8 and Fig. 3
are those of "Communication-Efficient Laplace Mechanism for Differential Privacy via Random
Quantization" ("the paper").

Notation. The mean length is the mean number of bits of a message for one scalar. The mechanism is a
mixture of levels T = 0, 1, 2, ... with the step size δ_T; δ₀ determines ℓ = (e^(δ₀) - 1)/δ₀ and the
other way round. An octave is a factor of 2 in δ₀.

The mean length is not monotone in ℓ. Every step size is a power of two times δ₀. If the length of a
code jumps at powers of two, all levels jump at the same δ₀, once per octave. The search therefore
runs over log2 δ₀:

1. one point per octave from ℓ - 1 = 2^-51 on, to find where the length is close to the budget;
2. from there `SCAN_POINTS_PER_OCTAVE` points per octave. Local minima just above the budget are
   refined, because a dip between two points may reach the budget. The length falls by jumps but
   rises by at most 2 bits per octave, which bounds the depth of such dips. It also shows that
   points before a long length do not fit; these are not computed;
3. the first two neighbouring points of which only the second fits the budget are a bracket; it is
   bisected to the last bit of δ₀.

"Smallest" is claimed at this resolution. The search ends at δ₀ = 160, where ℓ > 10^67. The laws of
δ_T for δ₀ and 2δ₀ there agree to the last digit of a double, and [80, 160] is one whole octave, so
a budget that is not reached by then is not reached by any ℓ. (For ℓ → ∞, without privacy towards
the decoder, the length oscillates for ever and need not fall below the budget.)

Theorem 8 of the paper is a check. It bounds the mean length of the Elias delta code from above. If
that bound is within the bits at some ℓ, then the exact mean length is as well. So the least ℓ is at
most the smallest ℓ at which the bound is within the bits.

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

SCAN_POINTS_PER_OCTAVE: Final = 64  # With fewer points a narrow dip of the length may be missed.
_MIN_LOG_DELTA: Final = math.log2(2.0**-50)  # The search begins here, where ℓ - 1 is about 2^-51.
_MAX_LOG_DELTA: Final = math.log2(160.0)  # The search ends here, and finds no ℓ if none fits.
# The length varies by at most this within an octave. The scan begins before the first octave whose
# length is this close to the budget.
_OCTAVE_SWING_BITS: Final = 3.0
# A minimum between two points is at most this far below them; only such dips are refined.
_MAX_DIP_BITS: Final = 0.25
# A chunk of this many points is skipped if its last length is far above the budget.
_CHUNK_POINTS: Final = 8
_MAX_RISE_BITS: Final = 2.0  # The length rises by at most this much per octave.
_RISE_SAFETY: Final = 2.0  # A chunk is skipped only if this times the possible rise is too little.
_MAX_BISECTIONS: Final = 60  # A bracket is halved this many times.
_MAX_ROUNDING_STEPS: Final = 40  # If no ℓ fits after this many doubled steps, none is returned.
_MAX_SCALED_INPUT: Final = 2.0**60  # ε times a larger number would not fit into an integer.
_BATCH_COUNT: Final = 8  # Lengths at many points are computed in this many parts, to save memory.
_MINIMUM_TOLERANCE: Final = 1e-6  # A minimum of the length is found up to this, in log2 δ₀.
_MAX_MINIMUM_STEPS: Final = 40  # The search for a minimum ends after this many steps.
# Values of log2 δ₀ at which the bound of Theorem 8 is evaluated.
_THEOREM_LOG_DELTAS = np.arange(-30, 7.01, 0.25)


@dataclass(frozen=True)
class LeastEll:
    """The smallest ℓ within a bit budget. All fields except the last are None if there is none.

    Attributes:
        ell: the smallest ℓ > 1 within the bits.
        delta0: the step size δ₀ of this ℓ.
        decoder_epsilon: ℓε, rounded up, per unit of the distance ‖x - x'‖₁ of the data.
        mean_bits: the exact mean length at this ℓ, in bits per scalar.
        least_bits: the smallest mean length that the search met, in bits per scalar. If no ℓ is
            within the bits, this is the smallest one over all ℓ of the search.
    """

    ell: float | None
    delta0: float | None
    decoder_epsilon: float | None
    mean_bits: float | None
    least_bits: float


class _LengthFunction:
    """Compute the exact mean length as a function of log2 δ₀, and remember the smallest value.

    Args:
        epsilon: ε > 0 of the database.
        code: "gamma" or "delta".
        data: the law of one scalar.
    """

    def __init__(self, epsilon: float, code: Code, data: DataLaw) -> None:
        self._parameters = (epsilon, code, data)
        self.least_bits = math.inf

    def compute_at(self, log_deltas: Vector) -> Vector:
        """Compute E[bits] at many log2 δ₀ (n,). Shape (n,)."""
        lengths = _compute_lengths(*self._parameters, log_deltas.tobytes())
        self.least_bits = min(self.least_bits, float(lengths.min()))
        return lengths

    def __call__(self, log_delta: float) -> float:
        """Compute E[bits] at one log2 δ₀."""
        (length,) = self.compute_at(np.array([log_delta]))
        return float(length)


@lru_cache(maxsize=2048)
def _compute_lengths(epsilon: float, code: Code, data: DataLaw, log_delta_bytes: bytes) -> Vector:
    """Compute the mean length in bits at many log2 δ₀, for a code and a law of the data.

    `log_delta_bytes` are the bytes of the array of log2 δ₀, because a cache needs hashable keys.
    The lengths are cached, because searches for other budgets use the same grids.
    """
    log_deltas = np.frombuffer(log_delta_bytes)
    batches = [log_deltas]
    if log_deltas.size >= _BATCH_COUNT:
        batches = np.array_split(log_deltas, _BATCH_COUNT)
    lengths_of_batches = []
    for batch in batches:
        levels = compute_levels_at(np.exp2(batch))
        lengths_of_batches.append(mean_bits_at(epsilon, *levels, code, data))
    lengths = np.concatenate(lengths_of_batches)
    lengths.flags.writeable = False  # The cached array is shared.
    return lengths


def find_least_ell(
    epsilon: float, bits: float, code: Code = "gamma", data: DataLaw = UNIFORM_DATA
) -> LeastEll:
    """Find the smallest ℓ whose exact mean length per scalar is at most `bits`.

    Args:
        epsilon: ε > 0 of the database.
        bits: the largest mean length, > 0.
        code: "gamma" or "delta".
        data: the law of one scalar. Default: uniform on (-1, 1), as in Fig. 3 of the paper.

    Returns:
        The smallest ℓ with its mean length. If none is within the bits, ℓ is None in it.

    Raises:
        InvalidRequest: ε or the bits are not positive, or ε times the data is too large.
    """
    epsilon = read_positive_float(epsilon, "epsilon")
    bits = read_positive_float(bits, "bits")
    check_code(code)
    largest_input = epsilon * data.max_size
    if not largest_input <= _MAX_SCALED_INPUT:
        must("epsilon times the largest |x|", "at most 2^60", largest_input)
    length = _LengthFunction(epsilon, code, data)
    crossing = _find_first_crossing(length, bits)
    ell = None if crossing is None else _round_to_ell(crossing, epsilon, bits, code, data)
    if ell is None:
        return LeastEll(
            ell=None,
            delta0=None,
            decoder_epsilon=None,
            mean_bits=None,
            least_bits=length.least_bits,
        )
    decoder_epsilon = round_up(Fraction(ell) * Fraction(epsilon))
    bits_at_ell = mean_bits(epsilon, compute_levels(ell), code, data)
    return LeastEll(ell, delta_zero(ell), decoder_epsilon, bits_at_ell, length.least_bits)


def _find_first_crossing(length: _LengthFunction, bits: float) -> float | None:
    """Find the smallest log2 δ₀ whose length is at most `bits`; None if there is none."""
    octaves = np.append(np.arange(_MIN_LOG_DELTA, _MAX_LOG_DELTA), _MAX_LOG_DELTA)
    chunk_rise = _RISE_SAFETY * _MAX_RISE_BITS * _CHUNK_POINTS
    # Lengths above this limit change neither the smallest length nor the first close octave.
    octave_limit = max(bits, length(_MAX_LOG_DELTA)) + _OCTAVE_SWING_BITS
    octave_lengths = _compute_close_lengths(length, octaves, octave_limit, chunk_rise)
    if octave_lengths[0] <= bits:
        return float(octaves[0])
    least_possible_bits = max(bits, float(octave_lengths.min()))
    close_bits = least_possible_bits + _OCTAVE_SWING_BITS
    first_close = np.flatnonzero(octave_lengths <= close_bits)[0]
    least_length = math.inf
    lowest_point = _MAX_LOG_DELTA
    points = [float(octaves[max(0, first_close - 1)])]
    lengths = [length(points[0])]
    while points[-1] < _MAX_LOG_DELTA:
        steps = np.arange(1, _CHUNK_POINTS + 1) / SCAN_POINTS_PER_OCTAVE
        grid = np.minimum(points[-1] + steps, _MAX_LOG_DELTA)
        # The last points of the previous chunk show minima across its end.
        points = points[-2:] + grid.tolist()
        grid_rise = chunk_rise / SCAN_POINTS_PER_OCTAVE
        grid_lengths = _compute_close_lengths(length, grid, least_possible_bits, grid_rise)
        lengths = lengths[-2:] + grid_lengths.tolist()
        for i in range(1, len(points)):
            if lengths[i] <= bits:
                return _bisect_crossing(length, bits, points[i - 1], points[i])
            if lengths[i] < least_length:
                least_length = lengths[i]
                lowest_point = points[i]
            is_dip = i + 1 < len(points) and lengths[i] <= min(lengths[i - 1], lengths[i + 1])
            if is_dip and lengths[i] <= bits + _MAX_DIP_BITS:
                minimum = _find_minimum(length, bits, points[i - 1], points[i + 1])
                if minimum is not None:
                    return _bisect_crossing(length, bits, points[i - 1], minimum)
    # No ℓ fits. One more minimisation makes length.least_bits precise.
    low = lowest_point - 1 / SCAN_POINTS_PER_OCTAVE
    high = min(lowest_point + 1 / SCAN_POINTS_PER_OCTAVE, _MAX_LOG_DELTA)
    _find_minimum(length, bits, low, high)
    return None


def _compute_close_lengths(
    length: _LengthFunction, grid: Vector, limit: float, margin: float
) -> Vector:
    """Compute the lengths at a grid of log2 δ₀, except where they are proven to exceed a limit.

    Args:
        length: the mean length as a function of log2 δ₀.
        grid: increasing points, shape (n,).
        limit: the limit in bits.
        margin: the most bits by which the length rises within `_CHUNK_POINTS` points.

    Returns:
        The lengths, shape (n,). They are infinite at points that are skipped.
    """
    lengths = np.full(grid.shape, math.inf)
    chunks = np.arange(grid.size) // _CHUNK_POINTS
    ends = np.append(np.flatnonzero(np.diff(chunks)), grid.size - 1)
    lengths[ends] = length.compute_at(grid[ends])
    is_close = (lengths[ends] <= limit + margin)[chunks]
    is_close[ends] = False
    if is_close.any():
        lengths[is_close] = length.compute_at(grid[is_close])
    return lengths


def _find_minimum(length: _LengthFunction, bits: float, low: float, high: float) -> float | None:
    """Find the minimum in (low, high) by Brent's method; None if its length is above `bits`."""
    from scipy.optimize import minimize_scalar  # The import is slow.

    minimum = minimize_scalar(
        length,
        bounds=(low, high),
        method="bounded",
        options={"xatol": _MINIMUM_TOLERANCE, "maxiter": _MAX_MINIMUM_STEPS},
    )
    return float(minimum.x) if minimum.fun <= bits else None


def _bisect_crossing(
    length: _LengthFunction, bits: float, too_long: float, short_enough: float
) -> float:
    """Find a log2 δ₀ at which the length crosses the limit, by bisection.

    Args:
        length: the mean length as a function of log2 δ₀.
        bits: the limit.
        too_long: a log2 δ₀ at which the length is above the limit.
        short_enough: a log2 δ₀ at which it is within the limit.

    Returns:
        A log2 δ₀ within the limit, next to one that is not.
    """
    _, crossing = bisect(
        lambda log_delta: length(log_delta) <= bits,
        too_long,
        short_enough,
        max_steps=_MAX_BISECTIONS,
    )
    return crossing


def _round_to_ell(
    log_delta: float, epsilon: float, bits: float, code: Code, data: DataLaw
) -> float | None:
    """Round log2 δ₀ to an ℓ that is a double and whose own exact mean length is at most `bits`.

    The mean length is that of a code at ε, for a law of the data.
    Rounding to a double may increase the length by its last digits. None if no ℓ close by fits.
    """
    rounded_ell, _ = ell_from_delta(2.0**log_delta)
    ell = max(float(rounded_ell), math.nextafter(1.0, 2.0))
    step = math.ulp(ell)
    for _ in range(_MAX_ROUNDING_STEPS):
        if mean_bits(epsilon, compute_levels(ell), code, data) <= bits:
            return ell
        ell += step
        step *= 2
    return None


def judge_decoder_epsilon(
    decoder_epsilon: float, epsilon: float, bits: float, code: str, data: DataLaw
) -> OracleVerdict:
    """Compare the least decoder ε with the upper bound of Theorem 8.

    Args:
        decoder_epsilon: the ℓε that was found; inf if none was.
        epsilon: ε of the database.
        bits: the largest mean length.
        code: "gamma" or "delta". The theorem is about the delta code; for gamma there is no bound.
        data: the law of one scalar.

    Returns:
        The verdict. If the theorem gives no bound, a verdict that says so.
    """
    if code != "delta":
        return OracleVerdict.without_formula(
            "no closed form is known for the least ell; Theorem 8 is about the delta code."
        )
    ell, deltas, pmf = compute_levels_at(np.exp2(_THEOREM_LOG_DELTAS))
    # Theorem 8 has the bound L(ln(2ε E|x| + 9/8 ln(2ℓ ln ℓ + 1) + 2) - E[ln δ_T]). The function L
    # is `elias_delta_bound`.
    delta_bound = np.log1p(2 * ell * np.log(ell))  # ln(2ℓ ln ℓ + 1) >= δ₀
    log_sizes = np.log(2 * epsilon * data.mean_size + 9 / 8 * delta_bound + 2)
    log_sizes = log_sizes - (pmf * np.log(deltas)).sum(axis=1)
    pairs = zip(ell.tolist(), log_sizes.tolist(), strict=True)
    fitting_ells = [value for value, log_size in pairs if elias_delta_bound(log_size) <= bits]
    if not fitting_ells:
        return OracleVerdict.without_formula("Theorem 8 shows no ell within these bits.")
    proof = (
        "Theorem 8: its bound on the mean length of the delta code is within the bits at this ell."
    )
    value = min(fitting_ells) * epsilon
    return OracleVerdict.judge(decoder_epsilon, "Theorem 8", value, "upper bound", proof)
