"""Build the two-bin quantizers of Cai et al. 2024: RQM, ERM, randomized response and biased ones.

A quantizer publishes a real input x in [-c, c] as one of m bins B_1 < ... < B_m. A two-bin
quantizer draws a bin at or left of x and a bin right of x, by its selection distributions. It
publishes one of the two, such that the mean of the output is x. For x in [B_j, B_{j+1}) the left
bin l <= j is drawn with probability left_j(l), and the right bin r > j with right_{m-j}(m+1-r). B_l
is published with probability (B_r - x)/(B_r - B_l), else B_r. The output law, eq. (4), is

    p(x, i) = left_j(i) Σ_{r>j} right_{m-j}(m+1-r) (B_r - x)/(B_r - B_i)           for B_i <= x
    p(x, i) = right_{m-j}(m+1-i) Σ_{l<=j} left_j(l) (x - B_l)/(B_i - B_l)          for B_i > x

The law is affine in x between bins and jumps at them. Everything is computed in rationals.
Selection probabilities that are floats are read as exact rationals and divided by their sum, so the
result is unbiased without any rounding error.

Biased quantization (Section 5) publishes one of the two bins by the exponential mechanism, whose
score is minus the distance: Pr[B_l] : Pr[B_r] = exp(-β (x - B_l)) : exp(-β (B_r - x)). Between bins
every p(x, i) is a sum of logistic functions that fall (i <= j) or rise (i > j) in x. Its extremes
are therefore one-sided limits at bins and ±c. There ε is enclosed by ball arithmetic and rounded
up.

The ε of ERM. Theorem 1 of the paper is false for small margins Δ of the outermost bins: its proof
bounds the number j of bins left of x for x = -c only. The following bound holds for every γ >= 0,
Δ > 0 and every number m >= 2 of equally spaced bins from -A to A, where A = c + Δ:

    ε <= γ + ln(2 (m-1) (1 + 2c/Δ))

`erm_proven_epsilon_bound` has the proof. Two larger numbers are therefore bounds, too:
γ + ln(2m (c+Δ)²/Δ²), and for Δ >= sqrt(2) c the bound of Theorem 1.

| paper                      | here                                                             |
|----------------------------|------------------------------------------------------------------|
| q_j(i) (symmetric)         | selection[j - 1][i - 1]                                          |
| q^(l)_j(i), q^(r)_j(i)     | selection, right                                                 |
| RQM, q                     | rqm(bins, q): q_j(1) = (1-q)^(j-1), q_j(i) = q (1-q)^(j-i)       |
| ERM, γ, eq. (2)            | erm(bins, gamma)                                                 |
| Theorem 1, (3)             | erm_epsilon_bound: ε < γ + ln(2m(c+Δ)/c), false for small Δ      |
| its correction             | erm_proven_epsilon_bound: ε <= γ + ln(2(m-1)(1+2c/Δ))            |
| Theorem 2                  | erm_error_bound: 4/γ ln(m)(c+Δ) + (2c+2Δ)/(m-1)                  |
| bound of Youn et al. 2023  | rqm_epsilon_bound: ln(2(1-q)²(c+Δ)/Δ) + m ln 1/(1-q)             |
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.data.intervals import read_bins, read_half_width
from workbench.data.plain import read_integer
from workbench.errors import Infeasible, must
from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution, to_common_denominator
from workbench.exact.numbers import (
    Rationals,
    Real,
    ball_ends,
    log_upper_bound,
    make_ball,
    read_number,
    read_number_where,
    read_positive,
    round_up,
)
from workbench.mechanisms.baselines.poisson_binomial import NonAffine
from workbench.mechanisms.piecewise_affine import Quantizer

Selection = list[Distribution]  # The j-th (from 1) is over the bins 1..j.
_MAX_EXPONENT = 700  # e^x overflows a double for x slightly above this.
Numbers = NDArray[Any]  # Floats, or objects that add and multiply: rationals, balls.


def equal_bins(m: int, reach: Real) -> Rationals:
    """Return m bins equally spaced from -reach to reach.

    Args:
        m: The number of bins, >= 2.
        reach: The largest bin, > 0.

    Returns:
        The m bins as exact rationals.

    Raises:
        InvalidRequest: If m is no integer >= 2, or reach is not a finite number > 0.
    """
    read_integer(m, "m", 2)
    top = read_positive(reach, "reach")
    return tuple(-top + 2 * top * i / (m - 1) for i in range(m))


def two_bin(
    bins: Any,
    selection: Sequence[Any],
    right: Sequence[Any] | None = None,
    *,
    c: Real = 1,
    name: str = "two-bin",
) -> Quantizer:
    """Build the two-bin mechanism with given selection distributions, as an exact quantizer.

    Args:
        bins: The m increasing bins, with B_1 <= -c < c <= B_m.
        selection: m - 1 distributions, the j-th (from 1) over bins 1..j: probabilities or weights,
            floats or exact. Those that no input in [-c, c] uses may be None.
        right: The same for right bins, counted from the right. Default: `selection` (symmetric
            use).
        c: Half the width of the input domain.
        name: The name of the mechanism in tables.

    Returns:
        The quantizer.

    Raises:
        InvalidRequest: If the bins are not increasing or do not cover [-c, c], if there are not m -
            1 distributions, if the j-th has not j probabilities, or if one that inputs use is None.
    """
    half_width = read_half_width(c)
    outputs = read_bins(bins, half_width)
    (*scaled_bins, scaled_width), _ = to_common_denominator([*outputs, half_width])
    bin_array = np.array(scaled_bins, dtype=object)
    laws = []
    left_laws = _read_selection(selection, len(outputs))
    right_laws = _read_selection(selection if right is None else right, len(outputs))
    for j, a, b in _bin_pieces(scaled_bins, scaled_width):
        left_law = left_laws[j - 1]
        right_law = right_laws[len(outputs) - j - 1]
        if left_law is None or right_law is None:
            used = f"given for {j} and {len(outputs) - j} bins, which inputs use"
            must("selection", used, "None")
        # All masses of a law are multiplied by the same integers, so that they stay integers.
        bin_distances = bin_array[j:] - bin_array[:j, None]
        inverse_distances = math.lcm(*bin_distances.flat) // bin_distances
        joint_law = np.outer(left_law.array, right_law.array[::-1]) * inverse_distances
        for x in (a, b):
            law = _combine_shares(joint_law, bin_array[j:] - x, x - bin_array[:j, None])
            laws.append(Distribution.from_integers(law.tolist(), "an end law"))
    knots = (-half_width, *(b for b in outputs if -half_width < b < half_width), half_width)
    return Quantizer(knots, outputs, tuple(laws), name)


def _bin_pieces(bins: Sequence[Any], c: Any) -> list[tuple[int, Any, Any]]:
    """Return (j, a, b) of the pieces: for x in [a, b) there are j bins at or left of x."""
    knots = [-c, *(b for b in bins if -c < b < c), c]
    return [(bisect_right(bins, a), a, b) for a, b in pairwise(knots)]


def _read_selection(rows: Sequence[Any], m: int) -> list[Distribution | None]:
    """Read m - 1 distributions, the j-th over j bins. None stays None."""
    if len(rows) != m - 1:
        must("selection", f"{m - 1} distributions", len(rows))
    laws = []
    for j, row in enumerate(rows, 1):
        law = None if row is None else Distribution.read_rounded(row, f"selection of {j}")
        if law is not None and len(law) != j:
            must(f"selection of {j}", f"{j} probabilities", len(law))
        laws.append(law)
    return laws


def _combine_shares(joint_law: Numbers, left: Numbers, right: Numbers) -> Numbers:
    """Compute p(x, .) from the joint law of the two bins and the shares of the left and right bin.

    Args:
        joint_law: Probability of every pair of a left and a right bin, shape (j, m - j).
        left: Share with which the left bin of a pair is published, shape (..., j, m - j).
        right: The same for the right bin.

    Returns:
        The probabilities of the bins, shape (..., m).
    """
    left_masses = (joint_law * left).sum(axis=-1)
    right_masses = (joint_law * right).sum(axis=-2)
    return np.concatenate([left_masses, right_masses], axis=-1)


def rqm_selection(m: int, q: Real) -> Selection:
    """Return the exact geometric selection of RQM.

    Args:
        m: The number of bins.
        q: The parameter of RQM, in [0, 1).

    Returns:
        m - 1 distributions, the j-th (from 1) over the bins 1..j.

    Raises:
        InvalidRequest: If q is outside [0, 1).
    """
    value = read_number_where(q, "q", "a number in [0, 1)", lambda number: 0 <= number < 1)
    keep = 1 - value
    return [
        Distribution([keep ** (j - 1), *(value * keep ** (j - i) for i in range(2, j + 1))])
        for j in range(1, m)
    ]


def rqm(bins: Any, q: Real, *, c: Real = 1) -> Quantizer:
    """Build the randomized quantization mechanism of Youn et al. 2023.

    Args:
        bins: The m increasing bins, as for `two_bin`; equally spaced in the papers.
        q: The parameter of RQM, in [0, 1).
        c: Half the width of the inputs [-c, c].

    Returns:
        The exact quantizer.

    Raises:
        InvalidRequest: If the bins are not increasing or do not cover [-c, c], if q is outside [0,
            1), or if c is outside [1e-100, 1e100].
    """
    outputs = read_bins(bins, read_half_width(c))
    return two_bin(outputs, rqm_selection(len(outputs), q), c=c, name="RQM")


def estimate_rqm_epsilon(bins: Rationals, q: Fraction) -> float:
    """Estimate the ε of RQM on inputs in [-1, 1], in floats.

    Args:
        bins: The m increasing bins, which cover [-1, 1].
        q: The parameter of RQM, in [0, 1).

    Returns:
        The ε up to rounding. It is inf if a bin has probability 0 for some inputs only.
    """
    positions = np.array(bins, dtype=float)
    powers = float(1 - q) ** np.arange(len(bins))
    laws = []
    for j, a, b in _bin_pieces(positions.tolist(), 1.0):
        # The bins next to the input come last in the left law, and first in the right law.
        left_law = float(q) * powers[:j][::-1]
        right_law = float(q) * powers[: len(bins) - j]
        left_law[0] = powers[j - 1]
        right_law[-1] = powers[len(bins) - j - 1]
        distances = positions[j:] - positions[:j, None]
        joint_law = np.outer(left_law, right_law) / distances
        ends = np.array([a, b])[:, None, None]
        laws.append(_combine_shares(joint_law, positions[j:] - ends, ends - positions[:j, None]))
    largest = np.max(laws, axis=(0, 1))
    smallest = np.min(laws, axis=(0, 1))
    is_drawn = largest > 0
    if (smallest[is_drawn] <= 0).any():
        return math.inf
    return float(np.log(largest[is_drawn] / smallest[is_drawn]).max())


def erm_selection(bins: Sequence[Fraction], gamma: Real) -> Selection:
    """Return the selection (2) of ERM, in floats that are read exactly.

    Args:
        bins: The m increasing bins.
        gamma: The parameter γ >= 0 of ERM.

    Returns:
        m - 1 distributions, the j-th (from 1) over the bins 1..j.

    Raises:
        InvalidRequest: If gamma is negative or no finite number.
    """
    value = read_positive(gamma, "gamma", or_zero=True)
    laws = [Distribution([1])]
    for j, last in enumerate(bins[1:-1], 2):
        weights = [math.exp(value * (b - last) / (2 * (last - bins[0]))) for b in bins[:j]]
        laws.append(Distribution.from_floats(weights, "selection"))
    return laws


def erm(bins: Any, gamma: Real, *, c: Real = 1) -> Quantizer:
    """Build the exponential randomized mechanism, eq. (2).

    Args:
        bins: The m increasing bins, symmetric around 0.
        gamma: The parameter γ >= 0 of ERM.
        c: Half the width of the inputs [-c, c].

    Returns:
        The exact quantizer.

    Raises:
        InvalidRequest: If the bins are not increasing, not symmetric around 0 or do not cover [-c,
            c], if gamma is negative, or if c is outside [1e-100, 1e100].
    """
    outputs = read_bins(bins, read_half_width(c))
    if any(a != -b for a, b in zip(outputs, reversed(outputs), strict=True)):
        must("bins", "symmetric around 0 for ERM", ", ".join(f"{float(b):g}" for b in outputs))
    return two_bin(outputs, erm_selection(outputs, gamma), c=c, name="ERM")


def randomized_response(epsilon: Real, *, c: Real = 1) -> Quantizer:
    """Build two-point randomized response, which publishes ±c (e^ε + 1)/(e^ε - 1).

    The outputs are rounded up in size, so that the mechanism is exactly ε-private.

    Args:
        epsilon: The budget, 0 < ε <= 700.
        c: Half the width of the inputs [-c, c].

    Returns:
        The exact quantizer of two outputs.

    Raises:
        InvalidRequest: If epsilon is not a finite number > 0, or c is outside [1e-100, 1e100].
        Infeasible: If epsilon is larger than 700.
    """
    budget = read_positive(epsilon, "epsilon")
    half_width = read_half_width(c)
    if budget > _MAX_EXPONENT:
        raise Infeasible(f"epsilon must be at most {_MAX_EXPONENT} here. Got {float(budget):g}.")
    # The factor exceeds the rounding errors of tanh and of the division.
    rounded_up_reach = math.nextafter(1 / math.tanh(float(budget) / 2) * (1 + 2**-50), math.inf)
    reach = half_width * Fraction(rounded_up_reach)
    return two_bin([-reach, reach], [[1]], c=half_width, name="randomized response")


@dataclass(frozen=True, eq=False)
class BiasedQuantizer(NonAffine):
    """Biased quantization with a symmetric selection.

    Attributes:
        selection: The m - 1 distributions over bins, as for `two_bin`: the j-th over bins 1..j,
            where right bins are counted from the right.
        beta: The exact rate β >= 0 of the bias.
    """

    selection: tuple[Distribution, ...]
    beta: Fraction

    name = "biased"
    not_exact = (
        "Biased quantization has logistic probabilities, which are no rationals: "
        "it is a baseline to compare with."
    )

    @classmethod
    def from_selection(
        cls, bins: Any, selection: Sequence[Any], beta: Real, *, c: Real = 1
    ) -> BiasedQuantizer:
        """Build the biased variant of a symmetric two-bin mechanism.

        Args:
            bins: The m increasing bins, as for `two_bin`.
            selection: The m - 1 distributions over bins, as for `two_bin`.
            beta: The rate β >= 0 of the bias.
            c: Half the width of the inputs.

        Returns:
            The mechanism.

        Raises:
            InvalidRequest: If the bins are not increasing or do not cover [-c, c], if a
                distribution of the selection is not over bins 1..j, or if beta is negative.
        """
        half_width = read_half_width(c)
        outputs = read_bins(bins, half_width)
        laws = tuple(law for law in _read_selection(selection, len(outputs)) if law is not None)
        return cls(outputs, half_width, laws, read_positive(beta, "beta", or_zero=True))

    def _joint_law(self, j: int) -> Numbers:
        """Return the joint law of a left and a right bin, both from left to right.

        Shape (j, m - j).
        """
        left, right = (np.array([*self.selection[i - 1]], dtype=object) for i in (j, self.m - j))
        return np.outer(left, right[::-1])

    def _probabilities(self, x: Vector) -> Vector:
        """Return Pr[j|x] in floats. x has shape (k,), the result (k, m)."""
        p = np.zeros((x.size, self.m))
        place = np.clip(np.searchsorted(self.outputs, x, side="right"), 1, self.m - 1)
        for j in np.unique(place):
            inputs = x[place == j, None, None]
            score = float(self.beta) * (2 * inputs - self.outputs[:j, None] - self.outputs[j:])
            share = 1 / (1 + np.exp(np.clip(score, -_MAX_EXPONENT, _MAX_EXPONENT)))
            p[place == j] = _combine_shares(self._joint_law(j).astype(float), share, 1 - share)
        return p

    @cached_property
    def epsilon(self) -> float:
        """Return the exact ε, from enclosures of all end laws, rounded up.

        It is inf if a bin has probability 0 for some inputs and not for others.
        """
        from flint import ctx

        bins = np.array(self.bins, dtype=object)
        balls = np.frompyfunc(make_ball, 1, 1)
        exp = np.frompyfunc(lambda ball: ball.exp(), 1, 1)
        laws = []  # For each end law, (lower, upper) bounds on the probability of every bin.
        with ctx.workprec(160):
            for j, a, b in _bin_pieces(self.bins, self.c):
                for x in (a, b):
                    score = balls(self.beta * (2 * x - bins[:j, None] - bins[j:]))
                    share = 1 / (1 + exp(score))
                    law = _combine_shares(balls(self._joint_law(j)), share, 1 - share)
                    laws.append([*map(ball_ends, law)])
        output_ranges = [
            (min(low for low, _ in law), max(high for _, high in law))
            for law in zip(*laws, strict=True)
        ]
        drawn_ranges = [(low, high) for low, high in output_ranges if high > 0]
        if any(low <= 0 for low, _ in drawn_ranges):
            return math.inf
        return max(log_upper_bound(Fraction(round_up(high / low))) for low, high in drawn_ranges)


def _span(c: Real, delta: Real) -> tuple[float, float]:
    """Read half the width of the inputs and the margin of the outermost bins, as floats."""
    return float(read_half_width(c)), float(read_positive(delta, "delta", or_zero=True))


def erm_epsilon_bound(m: int, gamma: Real, delta: Real, c: Real = 1) -> float:
    """Compute the printed bound of Theorem 1 on the ε of ERM: ε < γ + ln(2m(c+Δ)/c).

    It is false for some Δ < sqrt(2) c. `erm_proven_epsilon_bound` holds for every Δ. The bins are m
    equal ones on [-c-Δ, c+Δ].

    Args:
        m: The number of bins.
        gamma: The parameter γ of ERM.
        delta: The margin Δ >= 0 of the outermost bins beyond c.
        c: Half the width of the inputs.

    Returns:
        The printed number, which may be smaller than the ε of ERM.
    """
    half_width, extra = _span(c, delta)
    return float(read_number(gamma, "gamma")) + math.log(2 * m * (half_width + extra) / half_width)


def erm_proven_epsilon_bound(m: int, gamma: Real, delta: Real, c: Real = 1) -> float:
    """Compute a proven bound on the ε of ERM: ε <= γ + ln(2(m-1)(1+2c/Δ)).

    The bins are m equal ones on [-c-Δ, c+Δ]. The notation is that of the module header.

    Proof. Let A = c + Δ, h = 2A/(m-1), x in [B_j, B_{j+1}) and t = B_{j+1} - x. By symmetry it is
    enough to bound p(x, i) for i <= j. A selection distribution over k bins has weights from
    e^{-γ/2} to 1 before it is divided by their sum, so each of its probabilities is at least
    e^{-γ/2}/k. Hence q_j(i) >= e^{-γ/2}/j, and the drawn right bin R has

        E R - x >= e^{-γ/2} (t + (A - B_{j+1})/2) = e^{-γ/2} (A - x + t)/2.

    In p(x, i) = q_j(i) E (R - x)/(R - B_i) the denominator is at most 2A, and j = (A + x + t)/h. So

        p(x, i) >= e^{-γ}/(2(m-1)) (A - x + t)/(A + x + t).

    The last fraction is at least min(1, (A - x)/(A + x)), which is at least Δ/(2c + Δ) as x <= c.
    This bounds all probabilities of bins from below, and 1 bounds them from above. ∎

    Args:
        m: The number of bins, >= 2.
        gamma: The parameter γ >= 0 of ERM.
        delta: The margin Δ >= 0 of the outermost bins beyond c.
        c: Half the width of the inputs.

    Returns:
        The bound on ε, infinite if Δ = 0.
    """
    half_width, extra = _span(c, delta)
    rate = float(read_positive(gamma, "gamma", or_zero=True))
    if not extra:
        return math.inf
    return rate + math.log(2 * (m - 1) * (1 + 2 * half_width / extra))


def erm_error_bound(m: int, gamma: Real, delta: Real, c: Real = 1) -> float:
    """Compute Theorem 2: E|M(x) - x| <= 4/γ ln(m) (c+Δ) + (2c+2Δ)/(m-1) for ERM with m equal bins.

    Args:
        m: The number of bins.
        gamma: The parameter γ > 0 of ERM.
        delta: The margin Δ >= 0 of the outermost bins beyond c.
        c: Half the width of the inputs.

    Returns:
        The bound on the error.
    """
    half_width, extra = _span(c, delta)
    rate = float(read_positive(gamma, "gamma"))
    return 4 / rate * math.log(m) * (half_width + extra) + 2 * (half_width + extra) / (m - 1)


def rqm_epsilon_bound(m: int, q: Real, delta: Real, c: Real = 1) -> float:
    """Compute the bound of Youn et al. 2023, as quoted: ε <= ln(2(1-q)²(c+Δ)/Δ) + m ln 1/(1-q).

    Args:
        m: The number of bins.
        q: The parameter of RQM, in [0, 1).
        delta: The margin Δ > 0 of the outermost bins beyond c.
        c: Half the width of the inputs.

    Returns:
        The bound on ε.
    """
    half_width, extra = _span(c, delta)
    keep = 1 - float(read_number(q, "q"))
    return math.log(2 * keep**2 * (half_width + extra) / extra) + m * math.log(1 / keep)
