"""Publishing real inputs through a piecewise affine law, exactly, many at a time.

    Pr[. | x] = (1 - t) p(a+, .) + t p(b-, .),   t = (x - a)/(b - a)

so a draw is one Bernoulli(t), which says whose end law it comes from, and one draw from that end law
(`workbench.exact.sampler`). x is the rational its float is; the
float nearest to a knot means the knot. The first byte w of a uniform U decides U < t unless t lies
in or next to [w, w + 1)/256; 16 bits more settle most of these, and what is near then is decided in integers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.data.plain import read_exact_number
from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler

_CHUNK = 1 << 15
_BYTE = 1 << 8
_WORD = 1 << 16


class AffineSampler:
    """knots: K+1 increasing rationals; ends: 2K laws, at both ends of every piece; source: of randomness, the operating
    system by default."""

    def __init__(
        self, knots: Sequence[Fraction], ends: Sequence[Distribution], source: Source | None = None
    ) -> None:
        self.knots = tuple(knots)
        self.source = source or Source()
        number: dict[Distribution, int] = {}
        self.law_numbers = np.array(
            [number.setdefault(end, len(number)) for end in ends], dtype=np.int32
        )
        self.sampler = Sampler(tuple(number), self.source)
        self.lefts = np.array([*map(float, knots[:-1])])
        self.cuts = self.lefts[1:]
        widths = [b - a for a, b in pairwise(knots)]
        self.scales = np.array([_BYTE / float(width) for width in widths])
        # t 2^8 in floats is off by less than this: some roundings of numbers as large as the knots
        self.slack = _BYTE * 2.0**-48 * max(1.0, float(max(map(abs, knots)) / min(widths)))

    def draw(self, x: Vector, outputs: Vector) -> Vector:
        """What is published of every input in x, within the range. outputs: (m,) published values. Shape of x."""
        flat = x.reshape(-1)
        drawn = np.empty(x.size)
        for start in range(0, x.size, _CHUNK):
            np.take(
                outputs,
                self.positions(flat[start : start + _CHUNK]),
                out=drawn[start : start + _CHUNK],
            )
        return drawn.reshape(x.shape)

    def positions(self, x: Vector, given: NDArray[Any] | None = None) -> NDArray[np.int32]:
        """The positions of the outputs for some inputs within the range. Shape of x, (n,). given: the inputs exactly,
        which x is nearest to; then no float means a knot."""
        first = self.source.draw_uint8(x.size)
        piece = np.searchsorted(self.cuts, x, side="right")
        if given is not None:  # floats keep the order of any other input and the knots
            for at in np.flatnonzero(x == self.lefts[piece]).tolist():
                piece[at] = (
                    min(
                        max(bisect_right(self.knots, read_exact_number(given[at])), 1),
                        self.lefts.size,
                    )
                    - 1
                )
        ahead = (x - self.lefts[piece]) * self.scales[
            piece
        ] - first  # t 2^8 - w: U < t when >= 1, not when <= 0
        right = ahead >= 0.5
        near = np.flatnonzero((ahead > -self.slack) & (ahead < 1 + self.slack))
        if near.size:
            more = self.source.draw_uint16(near.size)
            further = ahead[near] * _WORD - more
            right[near] = further >= 0.5
            slack = self.slack * _WORD
            for i in np.flatnonzero((further > -slack) & (further < 1 + slack)).tolist():
                at = int(near[i])
                word = int(first[at]) * _WORD + int(more[i])
                of = int(piece[at])
                known = Fraction(x[at]) if given is None else read_exact_number(given[at])
                if given is None and x[at] == self.lefts[of]:
                    known = self.knots[of]
                right[at] = self._below(known, of, word)
        return self.sampler.draw_from(self.law_numbers[2 * piece + right])

    def _below(self, x: Fraction, piece: int, word: int) -> bool:
        """Whether U < t, for the first 24 bits of U, and more where they do not decide it."""
        a = self.knots[piece]
        b = self.knots[piece + 1]
        t = min(max((x - a) / (b - a), Fraction(0)), Fraction(1))
        return self.source.is_uniform_below(word, 24, *t.as_integer_ratio())
