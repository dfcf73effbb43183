"""Labels of hardly any prior, left out of the unbiased program: their rows are mixtures of their neighbours' rows.

A label y between two kept ones a < b, y = λ a + (1-λ) b, may take the row M[y] = λ M[a] + (1-λ) M[b]: its mean is y,
and no output is likelier than under the likelier of the two, nor rarer than under the rarer, so the channel stays
private. Labels of no prior are so left out at no loss.

Others cost at most what the mixture loses, p_y E (o-y)², and the bound of the kept labels stays a bound: leaving labels
out relaxes the program, and their loss is not negative. What it saves is more than time: the multipliers of such labels
are noise, which e^ε multiplies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from workbench.exact.distribution import Distribution
from workbench.mechanisms.channel import Channel

__all__ = ["Kept"]

Vector = NDArray[np.float64]
_ROUNDING = 2.0**-50  # relative, of a share, of a sum of up to 10^6 of them and of its products


@dataclass(frozen=True)
class Kept:
    """Some of the labels, the two at the ends among them: positions (m,), rising, in labels (k,) with their prior."""

    labels: Vector
    prior: Vector
    positions: NDArray[np.intp]

    @classmethod
    def beside(cls, labels: Vector, prior: Vector, share: float) -> Kept:
        """All labels but those inside that have the least prior, together at most a share."""
        inside = 1 + np.argsort(prior[1:-1], kind="stable")
        out = inside[np.cumsum(prior[inside]) <= share]
        return cls(labels, prior, np.setdiff1d(np.arange(labels.size), out))

    @property
    def whole(self) -> bool:
        """Whether no label is left out."""
        return self.positions.size == self.labels.size

    @property
    def values(self) -> Vector:
        """The kept labels (m,)."""
        return self.labels[self.positions]

    @property
    def shares(self) -> Vector:
        """Their prior, divided by its sum (m,)."""
        return self.prior if self.whole else self.prior[self.positions] / self.prior[self.positions].sum()

    def bound(self, kept: float) -> float:
        """What a bound >= 0 of the kept labels under their own shares says of all labels: rounded down."""
        return kept if self.whole else kept * float(self.prior[self.positions].sum()) * (1 - _ROUNDING)

    def completed(self, channel: Channel) -> Channel:
        """The channel of all labels (k rows) from one of the kept ones (m rows): exactly unbiased and private if that
        is."""
        rows, places = channel.rows, self.positions.tolist()
        y = [Fraction(value) for value in self.labels.tolist()]
        complete = []
        for i, (start, end) in enumerate(pairwise(places)):
            shares = ((y[end] - y[at]) / (y[end] - y[start]) for at in range(start + 1, end))
            complete += [rows[i], *(_mixture(rows[i], rows[i + 1], share) for share in shares)]
        return Channel((*complete, rows[-1]))


def _mixture(left: Distribution, right: Distribution, share: Fraction) -> Distribution:
    """share · left + (1 - share) · right, for 0 < share < 1."""
    a, b = share.numerator * right.total, (share.denominator - share.numerator) * left.total
    divisor = math.gcd(a, b)
    a, b = a // divisor, b // divisor
    mixed = [a * x + b * z for x, z in zip(left.integers, right.integers, strict=True)]
    return Distribution.from_integers(mixed, "a mixture of two rows")
