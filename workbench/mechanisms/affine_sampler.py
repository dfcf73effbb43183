"""Publishing real inputs through a piecewise affine law, exactly, many at a time.

    Pr[. | x] = (1 - t) p(a+, .) + t p(b-, .),   t = (x - a)/(b - a)

so a draw is one Bernoulli(t), which says whose end law it comes from, and one draw from that end law
(`workbench.exact.sampler`). x is the rational its float is; the float nearest to a knot means the knot. The first 64
bits of a uniform U decide U < t in floats unless U is nearer to t than these err; that is decided in integers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler
from workbench.mechanisms.density import piece_of
from workbench.mechanisms.quantization import real_input


class AffineSampler:
    """knots: K+1 increasing rationals; ends: 2K laws, at both ends of every piece; source: of randomness, the operating
    system by default."""

    def __init__(self, knots: Sequence[Fraction], ends: Sequence[Distribution], source: Source | None = None) -> None:
        self.knots = tuple(knots)
        self.source = source or Source()
        number: dict[Distribution, int] = {}
        self.law_of = np.array([number.setdefault(end, len(number)) for end in ends], dtype=np.int32)
        self.sampler = Sampler(tuple(number), self.source)
        self.cuts = np.array([*map(float, knots)])
        widths = [b - a for a, b in pairwise(knots)]
        self.scales = np.array([1 / float(width) for width in widths])
        # t in floats is off by less than this: some roundings of numbers as large as the knots
        self.slack = 2.0**-48 * max(1.0, float(max(map(abs, knots)) / min(widths)))

    def positions(self, x: Vector, given: NDArray[Any] | None = None) -> NDArray[np.int32]:
        """The positions of the outputs for some inputs within the range. Shape of x, (n,). given: the inputs exactly,
        which x is nearest to; then no float means a knot."""
        piece, words = piece_of(self.cuts, x), self.source.words(x.size)
        if given is not None:  # floats keep the order of any other input and the knots
            for at in np.flatnonzero(x == self.cuts[piece]).tolist():
                piece[at] = min(max(bisect_right(self.knots, Fraction(given[at])), 1), self.scales.size) - 1
        ahead = (x - self.cuts[piece]) * self.scales[piece] - words * 2.0**-64  # t - U
        right = ahead > 0
        for at in np.flatnonzero(np.abs(ahead) < self.slack).tolist():
            known = real_input(float(x[at]), self.knots[0], self.knots[-1], self.knots)
            right[at] = self._below(known if given is None else Fraction(given[at]), int(piece[at]), int(words[at]))
        return self.sampler.draw_from(self.law_of[2 * piece + right])

    def _below(self, x: Fraction, piece: int, word: int) -> bool:
        """Whether U < t, for the first 64 bits of U, and more where they do not decide it."""
        a, b = self.knots[piece], self.knots[piece + 1]
        t = min(max((x - a) / (b - a), Fraction(0)), Fraction(1)) * (1 << 64)
        while t - 1 < word < t:
            word, t = word << 16 | int(self.source.short_words(1)[0]), t * (1 << 16)
        return word < t
