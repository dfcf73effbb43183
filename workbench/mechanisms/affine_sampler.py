"""Draw the outputs for many real inputs at once, exactly, from a law that is affine between knots.

Let x lie between the neighbouring knots a < b, with the end laws p(a+, .) and p(b-, .). Then

    Pr[. | x] = (1 - t) p(a+, .) + t p(b-, .),   t = (x - a)/(b - a)

A draw therefore takes two steps. A Bernoulli(t) selects one of the two end laws, and a draw from
this law (`workbench.exact.sampler`) is the output. A float x counts as the rational that it is,
except that the float nearest to a knot means the knot. The Bernoulli draw is U < t for a uniform U
in [0, 1). The first byte w of U decides it unless t lies in or next to [w, w + 1)/256. Then 16
further bits decide most draws, and integer arithmetic decides the others.
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

_INPUTS_PER_CHUNK = 1 << 15  # Inputs are drawn in chunks, so that temporary arrays stay small.
_BYTE_COUNT = 1 << 8  # The number of different bytes.
_WORD_COUNT = 1 << 16  # The number of different 16-bit words.
_FIRST_WORD_BITS = 24  # A byte and a 16-bit word of U are drawn before exact arithmetic decides.
# A float of t errs by less than this times max(1, largest knot / smallest width).
_ROUNDING_ERROR = 2.0**-48
# A draw with `lead` >= 1 means U < t, and with `lead` <= 0 U >= t. This number separates the two.
_DECISION_POINT = 0.5


class AffineSampler:
    """A sampler for a piecewise affine law.

    Args:
        knots: K + 1 increasing rationals.
        ends: The 2K laws at the left and the right end of each piece between two knots.
        source: The source of randomness. Default: the operating system.
    """

    def __init__(
        self, knots: Sequence[Fraction], ends: Sequence[Distribution], source: Source | None = None
    ) -> None:
        self.knots = tuple(knots)
        self.source = source or Source()
        # Equal laws get the same number, so that the sampler prepares each law once.
        numbers: dict[Distribution, int] = {}
        for law in ends:
            numbers.setdefault(law, len(numbers))
        self.law_numbers = np.array([numbers[law] for law in ends], dtype=np.int32)
        self.sampler = Sampler(tuple(numbers), self.source)
        self.lefts = np.array([*map(float, knots[:-1])])
        self.cuts = self.lefts[1:]
        widths = [b - a for a, b in pairwise(knots)]
        self.scales = np.array([_BYTE_COUNT / float(width) for width in widths])
        # The rounding error of t 2^8 in floats is smaller than the slack.
        largest_ratio = float(max(map(abs, knots)) / min(widths))
        self.slack = _BYTE_COUNT * _ROUNDING_ERROR * max(1.0, largest_ratio)

    def draw(self, x: Vector, outputs: Vector) -> Vector:
        """Draw the published value of every input. Shape of x.

        Args:
            x: The inputs, within the range of the knots.
            outputs: Published values, shape (m,).
        """
        inputs = x.reshape(-1)
        published = np.empty(x.size)
        for start in range(0, x.size, _INPUTS_PER_CHUNK):
            chunk = slice(start, start + _INPUTS_PER_CHUNK)
            np.take(outputs, self.positions(inputs[chunk]), out=published[chunk])
        return published.reshape(x.shape)

    def positions(self, x: Vector, exact_inputs: NDArray[Any] | None = None) -> NDArray[np.int32]:
        """Draw the positions of the outputs for inputs within the range.

        Args:
            x: The inputs as floats, shape (n,).
            exact_inputs: The exact inputs, to which x is nearest, shape (n,). None: a float that is
                nearest to a knot means the knot.

        Returns:
            Positions 0..m-1, shape (n,).
        """
        # The end laws of a piece have the positions 2 piece and 2 piece + 1 in `law_numbers`.
        first_bytes = self.source.draw_uint8(x.size)
        piece = np.searchsorted(self.cuts, x, side="right")
        # Floats keep the order of the inputs and the knots, unless an input is the float of a knot.
        if exact_inputs is not None:
            for position in np.flatnonzero(x == self.lefts[piece]).tolist():
                exact_x = read_exact_number(exact_inputs[position])
                next_knot = max(bisect_right(self.knots, exact_x), 1)
                piece[position] = min(next_knot, self.lefts.size) - 1
        # With lead = t 2^8 - w the draw is U < t if lead >= 1, and not if lead <= 0.
        lead = (x - self.lefts[piece]) * self.scales[piece] - first_bytes
        is_right = lead >= _DECISION_POINT
        open_draws = np.flatnonzero((lead > -self.slack) & (lead < 1 + self.slack))
        if not open_draws.size:
            return self.sampler.draw_from(self.law_numbers[2 * piece + is_right])
        second_words = self.source.draw_uint16(open_draws.size)
        new_lead = lead[open_draws] * _WORD_COUNT - second_words
        is_right[open_draws] = new_lead >= _DECISION_POINT
        new_slack = self.slack * _WORD_COUNT
        is_open = (new_lead > -new_slack) & (new_lead < 1 + new_slack)
        for i in np.flatnonzero(is_open).tolist():
            position = int(open_draws[i])
            first_word = int(first_bytes[position]) * _WORD_COUNT + int(second_words[i])
            piece_number = int(piece[position])
            if exact_inputs is not None:
                exact_x = read_exact_number(exact_inputs[position])
            elif x[position] == self.lefts[piece_number]:
                exact_x = self.knots[piece_number]
            else:
                exact_x = Fraction(x[position])
            is_right[position] = self._is_in_right_law(exact_x, piece_number, first_word)
        return self.sampler.draw_from(self.law_numbers[2 * piece + is_right])

    def _is_in_right_law(self, x: Fraction, piece: int, first_word: int) -> bool:
        """Decide whether U < t from the first 24 bits of U, and draw more bits if these do not."""
        a = self.knots[piece]
        b = self.knots[piece + 1]
        t = min(max((x - a) / (b - a), Fraction(0)), Fraction(1))
        return self.source.is_uniform_below(first_word, _FIRST_WORD_BITS, *t.as_integer_ratio())
