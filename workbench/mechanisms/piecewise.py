"""A mechanism on real inputs x whose law is affine in x between knots: every quantizer with finitely many outputs.

Between neighbouring knots a < b

    Pr[i | x] = (b - x)/(b - a) left_i + (x - a)/(b - a) right_i

with left, right the laws at a+ and b- (both one-sided limits: the law may jump at a knot). Everything an audit asks is
decided at these end laws: the ratio of two affine functions and a hockey stick (convex in both laws) are largest at
ends, and the bias E M(x) - x is affine on a piece.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidRequest
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.masses import Masses

__all__ = ["PiecewiseAffine", "rationals"]


def rationals(values: Any, name: str) -> tuple[Fraction, ...]:
    """Numbers as the exact rationals they are, floats included. Raises InvalidRequest."""
    found = []
    for value in values:
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, bool) or not isinstance(plain, (int, float, Fraction)) or plain != plain:
            InvalidRequest.must(name, "a list of finite numbers", value)
        try:
            found.append(Fraction(plain))
        except (OverflowError, ValueError):
            InvalidRequest.must(name, "a list of finite numbers", value)
    return tuple(found)


@dataclass(frozen=True)
class PiecewiseAffine:
    """knots: K+1 increasing rationals; outputs: m values; ends: 2K laws, piece k between ends[2k] (at knots[k]+) and
    ends[2k+1] (at knots[k+1]-). Build it with `of`."""

    knots: tuple[Fraction, ...]
    outputs: tuple[Fraction, ...]
    ends: tuple[Masses, ...]

    def __post_init__(self) -> None:
        if len(self.knots) < 2 or any(a >= b for a, b in zip(self.knots, self.knots[1:], strict=False)):
            InvalidRequest.must("knots", "at least two increasing numbers", [float(x) for x in self.knots])
        if len(self.ends) != 2 * len(self.knots) - 2:
            InvalidRequest.must("ends", f"{2 * len(self.knots) - 2} laws, two for each piece", len(self.ends))
        if any(len(law) != len(self.outputs) for law in self.ends):
            InvalidRequest.must("ends", f"laws on {len(self.outputs)} outputs", [len(law) for law in self.ends])

    @classmethod
    def of(cls, knots: Sequence[Any], outputs: Sequence[Any], ends: Any) -> PiecewiseAffine:
        """The mechanism with these knots (K+1,), outputs (m,) and end laws, shape (2K, m) or (K, 2, m), floats read as
        the rationals they are and laws normalised by their exact sums. Raises InvalidRequest."""
        laws = ends.reshape(-1, ends.shape[-1]) if isinstance(ends, np.ndarray) else ends
        return cls(rationals(knots, "knots"), rationals(outputs, "outputs"), Channel.from_rows(laws).rows)

    @property
    def places(self) -> tuple[Fraction, ...]:
        """x of every end law. 2K of them."""
        return tuple(x for pair in zip(self.knots, self.knots[1:], strict=False) for x in pair)

    def law(self, x: Any) -> Masses:
        """The exact law at x (right-continuous inside, the last end law at the last knot). Raises InvalidRequest."""
        at = rationals([x], "x")[0]
        if not self.knots[0] <= at <= self.knots[-1]:
            InvalidRequest.must("x", f"in [{float(self.knots[0]):g}, {float(self.knots[-1]):g}]", x)
        k = min(bisect_right(self.knots, at), len(self.knots) - 1) - 1
        a, b = self.knots[k], self.knots[k + 1]
        right = (at - a) / (b - a)
        one, two = self.ends[2 * k], self.ends[2 * k + 1]
        return Masses([(1 - right) * one[i] + right * two[i] for i in range(len(self.outputs))])

    @property
    def bias(self) -> Fraction:
        """The largest |E M(x) - x| over all x, exact: it is affine on every piece."""
        return max(abs(mean(law, self.outputs) - x) for law, x in zip(self.ends, self.places, strict=True))

    @property
    def metric_epsilon(self) -> Fraction | None:
        """The least ε with Pr[i|x] <= e^{ε|x-x'|} Pr[i|x'] for all x, x' and i, exact; None when there is none.

        ln of an affine function is concave, so its slope is largest at the end with less mass; a jump has no slope.
        """
        steepest = Fraction(0)
        for k, (a, b) in enumerate(zip(self.knots, self.knots[1:], strict=False)):
            if k and self.ends[2 * k] != self.ends[2 * k - 1]:
                return None
            for i in range(len(self.outputs)):
                one, two = self.ends[2 * k][i], self.ends[2 * k + 1][i]
                if one != two:
                    if not min(one, two):
                        return None
                    steepest = max(steepest, abs(one - two) / ((b - a) * min(one, two)))
        return steepest

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The end laws as floats. Shape (2K, m)."""
        return np.array([law.floats for law in self.ends])


def mean(law: Masses, outputs: Sequence[Fraction]) -> Fraction:
    """Σ Pr[i] outputs[i], exact."""
    return sum((k * o for k, o in zip(law.integers, outputs, strict=True)), Fraction(0)) / law.total
