"""Losses of additive noise on a line: c(η) >= 0 on all integers, which does not fall as |η| grows.

integers          |η|, η², one's own by |η|, or the mean loss of the published answer where the sum is clamped
reals, β = Δ/k    of noise constant on the cells [(j - ½)β, (j + ½)β): |j| β, and β/4 for j = 0; (j² + 1/12) β²
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from models.oracles.line_noise import POWERS


@dataclass(frozen=True)
class LineLoss:
    """c(η) on all integers: |η|^power, or a table for -m..m, whose ends hold beyond it.

    table: values >= 0 for -m..m that do not fall as |η| grows. Raises ValueError.
    """

    name: str
    power: int = 0
    table: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if self.power:
            return
        m, values = len(self.table) // 2, self.table
        right, left = values[m:], values[m::-1]
        rising = all(a <= b for side in (right, left) for a, b in pairwise(side))
        if len(values) % 2 == 0 or min(values) < 0 or not rising:
            raise ValueError("loss must be >= 0 and not fall as |noise| grows. Got one that does.")

    @classmethod
    def named(cls, name: str) -> LineLoss:
        """ "absolute" or "squared"."""
        return cls(name, POWERS[name])

    @classmethod
    def own(cls, values: Sequence[Fraction]) -> LineLoss:
        """c(|η|) = values[|η|], its last value beyond."""
        return cls("own", 0, (*values[:0:-1], *values))

    @classmethod
    def clamped(
        cls, name: str, answers: int, loss: Callable[[int], Fraction], prior: Sequence[Fraction] | None = None
    ) -> LineLoss:
        """c(η) = Σ_q prior(q) loss(clamp(q + η) - q), q = 0..answers-1; uniform without a prior."""
        n = answers - 1
        weights = [Fraction(1)] * answers if prior is None else [*prior]
        losses = {r: loss(r) for r in range(-n, n + 1)}
        means = (
            sum((p * losses[min(n, max(0, q + eta)) - q] for q, p in enumerate(weights) if p), Fraction(0))
            for eta in range(-n, n + 1)
        )
        total = sum(weights)
        return cls(name, 0, tuple(mean / total for mean in means))

    @property
    def even(self) -> bool:
        """Whether c(-η) = c(η)."""
        return self.table == self.table[::-1]

    @property
    def span(self) -> int:
        """m of the table."""
        return len(self.table) // 2

    def at(self, eta: int) -> Fraction:
        """c(η), exact."""
        if self.power:
            return Fraction(abs(eta) ** self.power)
        return self.table[min(self.span, max(-self.span, eta)) + self.span]


def cell_loss(name: str, beta: Fraction) -> Callable[[int], Fraction]:
    """Of the cell j, of "absolute" or "squared" loss."""
    if POWERS[name] == 1:
        return lambda j: beta * (abs(j) or Fraction(1, 4))
    return lambda j: beta**2 * (j * j + Fraction(1, 12))
