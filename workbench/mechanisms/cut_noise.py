"""What real noise costs where it is cut off: g(u) = E c(min(|η|, u)), its integral, and the worst answer of a range.

With S(u) = Pr[|η| > u], a line on every cell, and c(h) = h^p for p = 1, 2,

    g(u) = ∫_0^u p h^(p-1) S(h) dh,        of degree p + 1 on every cell;        G(u) = ∫_0^u g
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

Polynomial = list[Fraction]  # coefficients of 1, u, u², ...
_STEPS = 1 << 40  # of an interval in which a slope changes its sign
_BITS = 1 << 20  # A law whose weights need more bits than this is not summed.


class CutNoise:
    """The functions of the module's docstring for an `AdditiveRealNoise`, up to where they are asked for. even: whether
    the noise is."""

    def __init__(self, noise: Any, power: int, most: Fraction) -> None:
        law = noise.cells
        beta = noise.width
        total = noise.total
        last = math.ceil(most / beta) + 1
        last = last if law.ratio else min(last, max(-law.first, law.last))
        bits = last // law.period * law.ratio.denominator.bit_length() if law.ratio else 0
        if bits > _BITS:
            raise NotCertified(
                f"Its exact loss on so wide a range needs numbers of {bits} bits, more than {_BITS}."
            )
        weights = law.weights_between(-last, last)
        self.is_even = weights == weights[::-1]
        self._power = power
        folded = [weights[last]]
        for a, b in zip(weights[last + 1 :], weights[last - 1 :: -1], strict=True):
            check_time_limit()
            folded.append(a + b)
        folded.append(0)
        self._starts = list[Fraction]()
        self._of_cells = list[tuple[Polynomial, ...]]()
        start = ZERO
        left = law.total / total
        last = 0
        folded[0] *= 2  # of half a cell
        for weight, cells in groupby(folded):  # a density that stays the same is one cell
            check_time_limit()
            last += sum(1 for _ in cells)
            end = (last - Fraction(1, 2)) * beta
            fall = weight / total / beta
            slope = [ZERO] * (power - 1) + [power * (left + fall * start), -power * fall]
            g = _integral(slope, start, self(start))
            G = _integral(g, start, self.integral(start))
            self._starts.append(start)
            self._of_cells.append((slope, g, G))
            start, left = end, left - fall * (end - start)

    def _at(self, u: Fraction, which: int) -> Fraction:
        cell = bisect_right(self._starts, u) - 1
        if cell >= 0:
            return _value(self._of_cells[cell][which], u)
        return ZERO

    def __call__(self, u: Fraction) -> Fraction:
        """g(u)."""
        return self._at(u, 1)

    def integral(self, u: Fraction) -> Fraction:
        """G(u)."""
        return self._at(u, 2)

    def max_loss(self, width: Fraction) -> Fraction:
        """max (g(u) + g(R - u))/2 over the answers u = 0..R, or a little more where it is at no end of a cell.

        For p = 1 it is concave. Else the difference of the two slopes is a parabola wherever u and R - u stay on a
        cell; between a point where it is > 0 and one where it is < 0 the sum is at most g at the end + g at the start.
        """
        half = width / 2

        def mean(u: Fraction, low: Fraction) -> Fraction:
            return (self(u) + self(width - low)) / 2

        def slope(u: Fraction) -> Fraction:
            return self._at(u, 0) - self._at(width - u, 0)

        if self._power == 1:
            return mean(half, half)
        ends = sorted(
            {min(start, width - start) for start in self._starts if start <= width} | {half}
        )
        best = max(mean(u, u) for u in ends)
        for a, b in pairwise(ends):
            check_time_limit()
            if mean(b, a) <= best:
                continue
            left = slope(a)
            middle = slope((a + b) / 2)
            right = slope(b)
            bend = 2 * (left + right - 2 * middle)
            turn = a - (right - left - bend) / (2 * bend) * (b - a) if bend else a
            for low, high in pairwise(sorted({a, b, min(b, max(a, turn))})):
                if slope(low) > 0 > slope(high):
                    step = (high - low) / _STEPS
                    k = bisect_left(range(_STEPS), True, key=lambda k: slope(low + step * k) <= 0)
                    best = max(best, mean(low + step * k, low + step * (k - 1)))
        return best


def _value(terms: Polynomial, u: Fraction) -> Fraction:
    return sum((c * u**k for k, c in enumerate(terms)), ZERO)


def _integral(terms: Polynomial, start: Fraction, value: Fraction) -> Polynomial:
    """That with a value at the start."""
    risen = [ZERO, *(c / (k + 1) for k, c in enumerate(terms))]
    return [value - _value(risen, start), *risen[1:]]
