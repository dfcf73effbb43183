"""Publish a mean whose number of rows is private, by two noisy sums.

Every x is rounded to a grid of step g that contains lo and hi, so u = (x - lo)/g is one of 0..D
with D = (hi - lo)/g. The release is the pair

    A = Σ u + Z1,    B = Σ (D - u) + Z2,    Z1 and Z2 independent with f(η) ∝ a^|η|

and the mean is published as lo + (hi - lo) A/(A + B), clamped to [lo, hi]. It is the middle of the
range if A + B <= 0. A row moves (A, B) by (u, D - u), whose L1 norm is D for every u. A person of K
rows moves it by at most N = K D under add-remove and N = 2 K D under replace. So a = e^(-ε/N) makes
the pair ε-private, and the mean is post-processing. The number of rows n is (Σ u + Σ (D - u))/D, so
it is published with noise as well, and no more of it is.

Kulesza, Suresh and Wang 2024 (arXiv 2312.06658) give the best constant for such means. This form is
simpler.

Under replace, the centred sum P = A - B = Σ (2u - D) and Q = A + B = n D would have a standard
deviation that is smaller by a factor of √2, for every mean. If j rows replace k rows, then
|ΔP| <= (j + k) D and |ΔQ| = |j - k| D, so |ΔP| + |ΔQ| <= 2 max(j, k) D <= 2 K D. The same noise on
P and Q is therefore as private as noise on A and B. With θ = 2μ - 1, the first-order variance of
the mean lo + (hi - lo) (1 + P/Q)/2 is ((hi - lo)/(2 n D))² (1 + θ²) Var Z. That of the pair is
((hi - lo)/(n D))² (1 + θ²)/2 Var Z, which is twice as large. Under add-remove, the L1 norm of
(ΔP, ΔQ) is also up to 2 K D, but that of (ΔA, ΔB) is K D, and the pair is better. P and Q are not
published: their shift vectors are another relation, which the checkers of certificates do not know.

Error. With the relative mean μ = Σ u/(n D), a first-order expansion gives the standard deviation

    sd = (hi - lo)/(n D) sqrt(((1 - μ)² + μ²) Var Z),    Var Z = 2a/(1 - a)²

Interval. Let ρ be the true μ. Then (1 - ρ) A - ρ B = (1 - ρ) Z1 - ρ Z2 exactly. The interval holds
every ρ with |A - ρ (A + B)| <= w(ρ), where w(ρ) is such that |(1 - ρ) Z1 - ρ Z2| <= w(ρ) with
probability at least 95 % (Fieller). Z is a difference of two geometric numbers, which are
exponential numbers rounded down. So Z is a Laplace number of scale b = 1/ln(1/a) up to less than 1.
For independent Laplace numbers X and Y,

    P(|(1 - ρ) X - ρ Y| > t) = (c² e^(-t/c) - d² e^(-t/d)) / (c² - d²),  c = (1 - ρ) b, d = ρ b
                             = e^(-t/c) (1 + t/(2c)) if c = d

and w(ρ) = t + 1 with this probability at 5 %. The interval is a statement about the noise alone:
rounding to the grid moves the mean by at most g/2 in addition.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from workbench.data.plain import read_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import Real, read_number, read_positive
from workbench.mechanisms.joint_noise import JointNoise
from workbench.privacy.certificate import Certificate
from workbench.privacy.repair import bound_inverse_exponential
from workbench.publishing.sensitivity import PersonRows
from workbench.questions.joint_query import PAIR_OF_SUMS, JointQuery

_RATIO_BITS = 14  # The ratio a has this many bits more than N/ε. The loss of ε is below 1e-4 of it.
_MIN_RATIO_BITS = 40  # For a small N, the ratio has at least this many bits.
_SHORT_NORM = 128  # Up to this N the minimum applies. Long ratios make the proof of a long N slow.
_MAX_TAIL = 0.05  # Probability that the true mean lies outside the interval.
_INTERVAL_CELLS = 200  # Number of cells of ρ on which the interval is computed, rounded outwards.
_BISECTIONS = 80  # Steps of a bisection for w(ρ).
# If c and d differ by less than this share, the formula of c = d is used.
_EQUAL_SCALES = 1e-6


@dataclass(frozen=True)
class ValueGrid:
    """The grid to which the values of a mean are rounded.

    Attributes:
        low: lo.
        high: hi > lo.
        step: g > 0. hi - lo must be a multiple of it.

    Raises:
        InvalidRequest: If the ends and the step are no such numbers.
    """

    low: Fraction
    high: Fraction
    step: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        low = read_number(self.low, "low")
        high = read_number(self.high, "high")
        step = read_positive(self.step, "step")
        if low >= high:
            must("high", f"above low = {low}", high)
        if (high - low) % step:
            must("step", f"a divisor of high - low = {high - low}", step)
        self.__dict__.update(low=low, high=high, step=step)

    @property
    def span(self) -> int:
        """Return D, the number of steps from lo to hi."""
        return int((self.high - self.low) / self.step)

    def offset_of(self, x: Real) -> int:
        """Return u for a value: it is clipped to [lo, hi] and rounded to the grid, halves upwards.

        Args:
            x: A finite number. A decimal text is exact, a float is the number that it stores.

        Raises:
            InvalidRequest: If x is no finite number.
        """
        clipped = min(max(read_number(x, "x"), self.low), self.high)
        return math.floor((clipped - self.low) / self.step + Fraction(1, 2))

    def sum_pair(self, values: Iterable[Real]) -> tuple[int, int]:
        """Compute the true pair (Σ u, Σ (D - u)) of the rows that count.

        Args:
            values: One value for each row that counts.

        Raises:
            InvalidRequest: If a value is no finite number.
        """
        first = 0
        second = 0
        for value in values:
            offset = self.offset_of(value)
            first += offset
            second += self.span - offset
        return first, second


def make_pair_query(grid: ValueGrid, person: PersonRows) -> JointQuery:
    """Make the relation of a pair of sums, with all its shift vectors.

    The relation "replace" of a joint query lets the number of rows change, so a filter, a missing
    value and the cap K need no other relation.

    Args:
        grid: The grid of the values.
        person: The rows of one person, and the relation of neighbours.

    Raises:
        InvalidRequest: If the grid has too many steps.
    """
    return JointQuery(
        release=PAIR_OF_SUMS, neighbours=person.neighbours, rows=person.rows, span=grid.span
    )


def fit_geometric_noise(query: JointQuery, epsilon: Real) -> IntegerLaw:
    """Return the geometric noise that makes a joint release ε-private, f(η) ∝ a^|η|.

    Args:
        query: The relation of the release.
        epsilon: ε > 0.

    Returns:
        The law with a rational a slightly above e^(-ε/N), for the largest L1 norm N.

    Raises:
        InvalidRequest: If ε is no finite number > 0.
    """
    norm = query.max_norm
    exponent = read_positive(epsilon, "epsilon") / norm
    # The reciprocal of the exponent is N/ε.
    bits = max(1, math.ceil(math.log2(max(1.0, 1 / float(exponent))))) + _RATIO_BITS
    if norm <= _SHORT_NORM:
        bits = max(bits, _MIN_RATIO_BITS)
    ratio = bound_inverse_exponential(exponent, bits)
    return IntegerLaw(first=0, weights=[1], period=1, ratio=ratio)


def certify_pair(grid: ValueGrid, person: PersonRows, epsilon: Real) -> Certificate:
    """Certify a pair of sums with geometric noise.

    Args:
        grid: The grid of the values.
        person: The rows of one person, and the relation of neighbours.
        epsilon: ε > 0.

    Returns:
        The certificate, whose mechanism publishes the pair.

    Raises:
        InvalidRequest: If ε is no finite number > 0, or the grid has too many steps.
    """
    query = make_pair_query(grid, person)
    mechanism = JointNoise(query, fit_geometric_noise(query, epsilon))
    record = {
        "low": str(grid.low),
        "high": str(grid.high),
        "step": str(grid.step),
    }
    return Certificate(mechanism, "pure", epsilon, record=record)


def compute_published_mean(grid: ValueGrid, first: int, second: int) -> Fraction:
    """Compute the published mean from a published pair.

    Args:
        grid: The grid of the values.
        first: A, the published sum of x - lo in steps.
        second: B, the published sum of hi - x in steps.

    Returns:
        The mean in [lo, hi]; the middle if A + B <= 0.
    """
    total = first + second
    if total <= 0:
        return (grid.low + grid.high) / 2
    share = min(max(Fraction(first, total), Fraction(0)), Fraction(1))
    return grid.low + (grid.high - grid.low) * share


def compute_mean_error(
    grid: ValueGrid, noise: IntegerLaw, expected_rows: int, relative_mean: Real | None = None
) -> float:
    """Compute the standard deviation of the published mean, to first order in the noise.

    Args:
        grid: The grid of the values.
        noise: The law of Z1 and Z2.
        expected_rows: n >= 1, a public guess of the number of rows.
        relative_mean: μ in [0, 1], a public guess of (mean - lo)/(hi - lo). Default: the worst,
            which is 0 or 1.

    Returns:
        The standard deviation, in the unit of the values.

    Raises:
        InvalidRequest: If n or μ is outside its range.
    """
    rows = read_integer(expected_rows, "expected_rows", 1)
    mu = Fraction(0)
    if relative_mean is not None:
        mu = read_number(relative_mean, "relative_mean")
        if not 0 <= mu <= 1:
            must("relative_mean", "a number in [0, 1]", mu)
    # In the tails, η² has the coefficient 0 of 1, 0 of |η| and 1 of |η|².
    square_terms = (Fraction(0), Fraction(0), Fraction(1))
    variance = noise.mean(lambda eta: eta * eta, tail_terms=square_terms)
    factor = ((1 - mu) ** 2 + mu**2) * variance
    return float(grid.step) / rows * math.sqrt(factor)


def compute_mean_interval(
    grid: ValueGrid, noise: IntegerLaw, first: int, second: int
) -> tuple[float, float]:
    """Compute an interval that holds the true mean with probability at least 95 %.

    The true mean is the mean of the values on the grid. The interval depends on the published pair
    alone.

    Args:
        grid: The grid of the values.
        noise: The geometric law of Z1 and Z2, with one weight.
        first: A, the published sum of x - lo in steps.
        second: B, the published sum of hi - x in steps.

    Returns:
        The ends. They are lo and hi if the noise could explain every mean.

    Raises:
        InvalidRequest: If the noise is no geometric law with one weight.
    """
    if len(noise.weights) != 1 or noise.first or not noise.ratio:
        raise InvalidRequest("noise must be geometric noise with one weight.")
    scale = -1 / math.log(noise.ratio)
    shares = [k / _INTERVAL_CELLS for k in range(_INTERVAL_CELLS + 1)]
    widths = _list_mixed_widths(scale)
    total = first + second
    ends = []
    for k in range(_INTERVAL_CELLS):
        # Between the ends of a cell, w is at most its larger end: it falls up to 1/2, then rises.
        width = max(widths[k], widths[k + 1])
        cell = (shares[k], shares[k + 1])
        if total > 0:
            low = max(cell[0], (first - width) / total)
            high = min(cell[1], (first + width) / total)
        elif total < 0:
            low = max(cell[0], (first + width) / total)
            high = min(cell[1], (first - width) / total)
        else:
            # If A + B = 0, the condition on ρ is |A| <= w. The ends (1, 0) are an empty interval.
            low, high = cell if abs(first) <= width else (1.0, 0.0)
        if low <= high:
            ends += [low, high]
    if not ends:
        # No mean explains the pair. This has a probability of at most 5 %.
        return float(grid.low), float(grid.high)
    length = float(grid.high - grid.low)
    return float(grid.low) + length * min(ends), float(grid.low) + length * max(ends)


@lru_cache(maxsize=64)
def _list_mixed_widths(scale: float) -> list[float]:
    """Return w(ρ) at the ends of the cells of ρ. `scale` is b."""
    return [_find_mixed_width(scale, k / _INTERVAL_CELLS) for k in range(_INTERVAL_CELLS + 1)]


def _find_mixed_width(scale: float, share: float) -> float:
    """Return w(ρ), an upper bound for noise on the integers. `scale` is b, `share` is ρ."""
    low = 0.0
    high = 10 * scale  # At t = 10 b the tail is below 5 % for every ρ.
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _compute_mixed_tail(scale, share, middle) > _MAX_TAIL:
            low = middle
        else:
            high = middle
    return high + 1


def _compute_mixed_tail(scale: float, share: float, width: float) -> float:
    """Return P(|(1 - ρ) X - ρ Y| > t) for Laplace numbers. `width` is t."""
    c = max(share, 1 - share) * scale
    d = min(share, 1 - share) * scale
    if not d:
        return math.exp(-width / c)
    if c - d < _EQUAL_SCALES * c:
        return math.exp(-width / c) * (1 + width / (2 * c))
    wide = c * c * math.exp(-width / c)
    narrow = d * d * math.exp(-width / d)
    return (wide - narrow) / (c * c - d * d)
