"""Publishing real inputs through a piecewise affine law, exactly, many at a time.

    Pr[. | x] = (1 - t) p(a+, .) + t p(b-, .),   t = (x - a)/(b - a)

so a draw is one Bernoulli(t), which says whose end law it comes from, and one draw from that end law
(`workbench.exact.sampler`). x is the rational its float is; the
float nearest to a knot means the knot. The first byte w of a uniform U decides U < t unless t lies
in or next to [w, w + 1)/256; 16 bits more settle most of these, and what is near then is decided in integers.
"""

from __future__ import annotations

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

_CHUNK = 1 << 15
_BYTE, _WORD = 1 << 8, 1 << 16


class AffineSampler:
    """knots: K+1 increasing rationals; ends: 2K laws, at both ends of every piece; source: of randomness, the operating
    system by default."""

    def __init__(self, knots: Sequence[Fraction], ends: Sequence[Distribution], source: Source | None = None) -> None:
        self.knots = tuple(knots)
        self.source = source or Source()
        number: dict[Distribution, int] = {}
        self.law_of = np.array([number.setdefault(end, len(number)) for end in ends], dtype=np.int32)
        self.sampler = Sampler(tuple(number), self.source)
        self.cuts = np.array([float(k) for k in knots[1:-1]])
        self.lefts = np.array([float(k) for k in knots[:-1]])
        widths = [b - a for a, b in pairwise(knots)]
        self.scales = np.array([_BYTE / float(width) for width in widths])
        # t 2^8 in floats is off by less than this: some roundings of numbers as large as the knots
        self.slack = _BYTE * 2.0**-48 * max(1.0, float(max(map(abs, knots)) / min(widths)))

    def draw(self, x: Vector, outputs: Vector, out: Vector) -> None:
        """Publish every input in x, within the range, into out, both of shape (n,). outputs: (m,) published values."""
        for start in range(0, x.size, _CHUNK):
            part = x[start : start + _CHUNK]
            np.take(outputs, self.positions(part), out=out[start : start + _CHUNK])

    def positions(self, x: Vector) -> NDArray[np.int32]:
        """The positions of the outputs for some inputs within the range. Shape of x, (n,)."""
        first = self.source.short_bytes(x.size)
        piece: Any = 0
        if self.cuts.size > 40:
            piece = np.searchsorted(self.cuts, x, side="right")
        elif self.cuts.size:
            piece = np.zeros(x.size, dtype=np.int8)
            for cut in self.cuts:
                piece += x >= cut
        ahead = (x - self.lefts[piece]) * self.scales[piece] - first  # t 2^8 - w: U < t when >= 1, not when <= 0
        right = ahead >= 0.5
        near = np.flatnonzero((ahead > -self.slack) & (ahead < 1 + self.slack))
        if near.size:
            more = self.source.short_words(near.size)
            further = ahead[near] * _WORD - more
            right[near] = further >= 0.5
            slack = self.slack * _WORD
            for i in np.flatnonzero((further > -slack) & (further < 1 + slack)).tolist():
                at = int(near[i])
                word = int(first[at]) * _WORD + int(more[i])
                right[at] = self._below(float(x[at]), int(piece[at]) if self.cuts.size else 0, word)
        return self.sampler.draw_from(self.law_of[2 * piece + right])

    def _below(self, x: float, piece: int, word: int) -> bool:
        """Whether U < t, for the first 24 bits of U, and more where they do not decide it."""
        a, b = self.knots[piece], self.knots[piece + 1]
        t = Fraction(0) if x == self.lefts[piece] else min(max((Fraction(x) - a) / (b - a), Fraction(0)), Fraction(1))
        return below(self.source, word, _BYTE * _WORD, t)


def below(source: Source, value: int, whole: int, t: Fraction) -> bool:
    """Whether U < t for a uniform U in [value, value + 1) / whole, of which more words are drawn until they say so."""
    while True:
        if value + 1 <= t * whole:
            return True
        if value >= t * whole:
            return False
        value, whole = value * _WORD + int(source.short_words(1)[0]), whole * _WORD
