"""Compute the exact expected loss of real noise whose sum with the answer is clamped into a range.

The density of the noise is constant on cells (`workbench.mechanisms.real_noise`). Clamping cuts an
error off at the distance u from the answer to the end of the range.

Notation: η is the noise, c(h) = h^p is the loss of an error h, with p = 1 or 2, and
g(u) = E c(min(|η|, u)) is the expected loss if errors are cut off at u. The tail probability
S(u) = Pr[|η| > u] is affine on every cell, so

    g(u) = ∫_0^u p h^(p-1) S(h) dh        of degree p + 1 on every cell
    G(u) = ∫_0^u g(h) dh

The weights of a geometric tail need more bits with every period. On a range of many periods, the
masses of the cells are therefore rounded up to multiples of 2^-192. This raises S, so that g and G
are upper bounds. The excess is less than 2^-100 of the loss of an error as long as the range.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
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
_MAX_EXACT_BITS = 1 << 14  # Masses are rounded up if weights need more bits than this.
_MASS_BITS = 192  # Masses that are rounded up are multiples of 2 to minus this.
_MAX_ROUNDED_CELLS = 100_000  # A law of more rounded cells is not summed.
_MAX_BITS = 1 << 20  # A law whose weights need more bits than this is not summed.

_Runs = list[tuple[int, int]]  # Masses of cells, each with a number of consecutive cells.


def _round_up_masses(law: Any, total: Fraction, last_cell: int) -> tuple[_Runs, int] | None:
    """Round up the masses of |η| on the cells 0..last_cell of a law with a geometric tail.

    A block is one period of the tail. Each block is computed from the last one and rounded up
    again. Far out the rounded blocks no longer change.

    Args:
        law: The `IntegerLaw` of the cells.
        total: The total weight of the noise, with its atom.
        last_cell: The last cell.

    Returns:
        (runs, mass beyond the last cell), in units of 2^-192. None if the law is not even, or if
        its period is longer than one side.

    Raises:
        NotCertified: If too many blocks differ.
    """
    weights = law.weights
    if law.first != -law.last or weights != weights[::-1] or law.period > law.last:
        return None
    scale = (1 << _MASS_BITS) / total
    # Position law.last is the cell 0, because the law is even. |η| has the mass of two other cells.
    masses = [math.ceil(weights[law.last] * scale)]
    masses += [math.ceil(2 * weight * scale) for weight in weights[law.last + 1 :]]
    block = masses[-law.period :]
    while len(masses) <= last_cell:
        check_time_limit()
        next_block = [math.ceil(mass * law.ratio) for mass in block]
        if next_block == block:
            break
        block = next_block
        masses += block
        if len(masses) > _MAX_ROUNDED_CELLS:
            raise NotCertified(
                f"Its loss on a range of this width needs more than {_MAX_ROUNDED_CELLS} cells."
            )
    runs = _count_runs(masses[: last_cell + 1])
    missing_count = last_cell + 1 - len(masses)
    if missing_count > 0:
        runs.append((max(block), missing_count))
    later_blocks = math.ceil(sum(block) * law.ratio / (1 - law.ratio))
    return runs, sum(masses[last_cell + 1 :]) + later_blocks


def _count_runs(masses: Iterable[int]) -> _Runs:
    """Count equal consecutive masses. Returns each mass with its number of cells."""
    return [(mass, sum(1 for _ in cells)) for mass, cells in groupby(masses)]


class CutNoise:
    """The functions g and G of the module header for one noise, up to a largest u.

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
        last_cell = math.ceil(max_distance / beta) + 1
        if not law.ratio:
            last_cell = min(last_cell, max(-law.first, law.last))
        self._power = power
        runs, unit, tail_mass = self._list_masses(law, noise.total, last_cell)
        self._starts = list[Fraction]()
        self._polynomials = list[tuple[Polynomial, ...]]()
        start = ZERO
        cell_count = 0
        # The first cell is half a cell, of double density.
        (first_mass, first_count), *other_runs = runs
        runs = [(2 * first_mass, 1), (first_mass, first_count - 1), *other_runs]
        # Neighbouring cells of the same density are merged.
        for mass, count in runs:
            check_time_limit()
            if not count:
                continue
            cell_count += count
            end = (cell_count - Fraction(1, 2)) * beta
            fall = mass * unit / beta
            slope = [ZERO] * (power - 1) + [power * (tail_mass + fall * start), -power * fall]
            g = _integrate(slope, start, self(start))
            G = _integrate(g, start, self.integral(start))
            self._starts.append(start)
            self._polynomials.append((slope, g, G))
            tail_mass -= fall * (end - start)
            start = end

    def _list_masses(
        self, law: Any, total: Fraction, last_cell: int
    ) -> tuple[_Runs, Fraction, Fraction]:
        """List the masses of |η| on the cells 0..last_cell, and set `is_even`.

        Returns:
            (runs, unit, S(0)). The runs are in this unit, and end with a cell without mass.
        """
        bits = 0
        if law.ratio:
            bits = last_cell // law.period * law.ratio.denominator.bit_length()
        if bits > _MAX_EXACT_BITS:
            rounded_masses = _round_up_masses(law, total, last_cell)
            if rounded_masses is not None:
                self.is_even = True
                runs, mass_beyond = rounded_masses
                unit = Fraction(1, 1 << _MASS_BITS)
                mass = mass_beyond + sum(mass * count for mass, count in runs)
                return [*runs, (0, 1)], unit, mass * unit
        if bits > _MAX_BITS:
            raise NotCertified(
                f"Its exact loss on a range of this width needs numbers of {bits} bits, more than "
                f"{_MAX_BITS}."
            )
        weights = law.weights_between(-last_cell, last_cell)
        self.is_even = weights == weights[::-1]
        # Position last_cell is the cell 0. For |η|, the weights of the cells j and -j are added.
        folded_weights = [weights[last_cell]]
        for a, b in zip(weights[last_cell + 1 :], weights[last_cell - 1 :: -1], strict=True):
            check_time_limit()
            folded_weights.append(a + b)
        runs = _count_runs([*folded_weights, 0])
        return runs, 1 / Fraction(total), law.total / total

    def _evaluate(self, u: Fraction, order: int) -> Fraction:
        """Compute g'(u), g(u) or G(u) for order 0, 1 or 2."""
        cell = bisect_right(self._starts, u) - 1
        if cell >= 0:
            return _evaluate_polynomial(self._polynomials[cell][order], u)
        return ZERO

    def __call__(self, u: Fraction) -> Fraction:
        """Compute g(u), the density at the distance u, exactly."""
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

        def bound_loss(low: Fraction, high: Fraction) -> Fraction:
            """Bound (g(u) + g(R - u))/2 for u in [low, high]. It is exact if both ends are u."""
            return (self(high) + self(width - low)) / 2

        def slope(u: Fraction) -> Fraction:
            """Return g'(u) - g'(R - u), twice the slope of the loss at the answer u."""
            return self._evaluate(u, 0) - self._evaluate(width - u, 0)

        if self._power == 1:
            return bound_loss(centre, centre)
        ends = sorted(
            {min(start, width - start) for start in self._starts if start <= width} | {centre}
        )
        max_value = max(bound_loss(u, u) for u in ends)
        for a, b in pairwise(ends):
            check_time_limit()
            if bound_loss(a, b) <= max_value:
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
                    max_value = max(max_value, bound_loss(low + step * (k - 1), low + step * k))
        return max_value


def _evaluate_polynomial(coefficients: Polynomial, u: Fraction) -> Fraction:
    """Evaluate a polynomial at u."""
    return sum((c * u**k for k, c in enumerate(coefficients)), ZERO)


def _integrate(coefficients: Polynomial, start: Fraction, value_at_start: Fraction) -> Polynomial:
    """Return the antiderivative of a polynomial that has a given value at `start`."""
    antiderivative = [ZERO, *(c / (k + 1) for k, c in enumerate(coefficients))]
    constant = value_at_start - _evaluate_polynomial(antiderivative, start)
    return [constant, *antiderivative[1:]]
