"""Compute the exact expected loss of real noise whose sum with the answer is clamped into a range.

The density of the noise is constant on cells (`workbench.mechanisms.real_noise`). Clamping cuts an
error off at the distance u from the answer to the end of the range.

Notation: η is the noise, c(h) = h^p is the loss of an error h, with p = 1 or 2, and
g(u) = E c(min(|η|, u)) is the expected loss if errors are cut off at u. The tail probability
S(u) = Pr[|η| > u] is affine on every cell, so

    g(u) = ∫_0^u p h^(p-1) S(h) dh        of degree p + 1 on every cell
    G(u) = ∫_0^u g(h) dh
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Any

from workbench.errors import NotCertified
from workbench.exact.numbers import ZERO
from workbench.exact.time_limit import check_time_limit

Polynomial = list[Fraction]  # The coefficients of 1, u, u², ...
# An interval in which the slope changes its sign is divided into this many parts, and the maximum
# is located to one of them.
_BISECTION_PARTS = 1 << 40
_MAX_BITS = 1 << 20  # A law whose weights need more bits than this is not summed.


class CutNoise:
    """The functions g and G of the module's docstring for one noise, up to a largest u.

    Args:
        noise: The `AdditiveRealNoise` whose loss is computed.
        power: The exponent p of the loss, 1 or 2.
        max_distance: The largest u, in the units of the answers.

    Attributes:
        is_even: Whether η and -η have the same law.

    Raises:
        NotCertified: If the exact loss needs too large numbers.
    """

    def __init__(self, noise: Any, power: int, max_distance: Fraction) -> None:
        law = noise.cells
        beta = noise.width
        total = noise.total
        last_cell = math.ceil(max_distance / beta) + 1
        if law.ratio:
            bits = last_cell // law.period * law.ratio.denominator.bit_length()
            if bits > _MAX_BITS:
                raise NotCertified(
                    f"Its exact loss on a range of this width needs numbers of {bits} bits, "
                    f"more than {_MAX_BITS}."
                )
        else:
            last_cell = min(last_cell, max(-law.first, law.last))
        weights = law.weights_between(-last_cell, last_cell)
        self.is_even = weights == weights[::-1]
        self._power = power
        folded_weights = [weights[last_cell]]
        for a, b in zip(weights[last_cell + 1 :], weights[last_cell - 1 :: -1], strict=True):
            check_time_limit()
            folded_weights.append(a + b)
        folded_weights.append(0)
        self._starts = list[Fraction]()
        self._polynomials = list[tuple[Polynomial, ...]]()
        start = ZERO
        # This is Pr[|η| > 0]. The atom at 0 is in `total`, but not in `law`.
        tail_mass = law.total / total
        cell_count = 0
        # The first cell is half a cell, of double density.
        folded_weights[0] *= 2
        # Neighbouring cells of the same density are merged.
        for weight, cells in groupby(folded_weights):
            check_time_limit()
            cell_count += sum(1 for _ in cells)
            end = (cell_count - Fraction(1, 2)) * beta
            fall = weight / total / beta
            slope = [ZERO] * (power - 1) + [power * (tail_mass + fall * start), -power * fall]
            g = _integrate(slope, start, self(start))
            G = _integrate(g, start, self.integral(start))
            self._starts.append(start)
            self._polynomials.append((slope, g, G))
            tail_mass -= fall * (end - start)
            start = end

    def _evaluate(self, u: Fraction, order: int) -> Fraction:
        """Compute g'(u), g(u) or G(u) for order 0, 1 or 2."""
        cell = bisect_right(self._starts, u) - 1
        if cell >= 0:
            return _evaluate_polynomial(self._polynomials[cell][order], u)
        return ZERO

    def __call__(self, u: Fraction) -> Fraction:
        """Compute g(u)."""
        return self._evaluate(u, 1)

    def integral(self, u: Fraction) -> Fraction:
        """Compute G(u).

        Args:
            u: A number in [0, max_distance].
        """
        return self._evaluate(u, 2)

    def max_loss(self, width: Fraction) -> Fraction:
        """Compute an upper bound on max (g(u) + g(R - u))/2 over the answers 0 <= u <= R.

        The noise must be even (`is_even`). The bound is exact if the maximum is at an end of a cell
        or for p = 1, and a little too large otherwise. For p = 1 the sum is concave and
        symmetric, so u = R/2 is the maximum. For p = 2, the derivative g'(u) - g'(R - u) is a
        parabola in u as long as u and R - u stay on one cell each. If it changes from > 0 to < 0 in
        [a, b], the maximum there is at most (g(b) + g(R - a))/2, because g never falls. This bound
        is used on a short interval. Another power needs another search here.

        Args:
            width: R, the width of the range.
        """
        centre = width / 2

        def bound_loss(high: Fraction, low: Fraction) -> Fraction:
            # This is an upper bound for u in [low, high], and exact if low = high = u.
            return (self(high) + self(width - low)) / 2

        def slope(u: Fraction) -> Fraction:
            return self._evaluate(u, 0) - self._evaluate(width - u, 0)

        if self._power == 1:
            return bound_loss(centre, centre)
        ends = sorted(
            {min(start, width - start) for start in self._starts if start <= width} | {centre}
        )
        max_value = max(bound_loss(u, u) for u in ends)
        for a, b in pairwise(ends):
            check_time_limit()
            if bound_loss(b, a) <= max_value:
                continue
            left = slope(a)
            middle = slope((a + b) / 2)
            right = slope(b)
            bend = 2 * (left + right - 2 * middle)
            vertex = a - (right - left - bend) / (2 * bend) * (b - a) if bend else a
            for low, high in pairwise(sorted({a, b, min(b, max(a, vertex))})):
                if slope(low) > 0 > slope(high):
                    step = (high - low) / _BISECTION_PARTS
                    k = bisect_left(
                        range(_BISECTION_PARTS), True, key=lambda k: slope(low + step * k) <= 0
                    )
                    max_value = max(max_value, bound_loss(low + step * k, low + step * (k - 1)))
        return max_value


def _evaluate_polynomial(coefficients: Polynomial, u: Fraction) -> Fraction:
    """Evaluate a polynomial at u."""
    return sum((c * u**k for k, c in enumerate(coefficients)), ZERO)


def _integrate(coefficients: Polynomial, start: Fraction, value_at_start: Fraction) -> Polynomial:
    """Return the antiderivative of a polynomial that has a given value at `start`."""
    antiderivative = [ZERO, *(c / (k + 1) for k, c in enumerate(coefficients))]
    constant = value_at_start - _evaluate_polynomial(antiderivative, start)
    return [constant, *antiderivative[1:]]
