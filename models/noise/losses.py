"""Losses of additive noise on a line: c(η) >= 0 on all integers, which does not fall as |η| grows.

integers          |η|, η², one's own by |η|, lines of two slopes far out (pinball, huber), or the mean loss of the
                  published answer where the sum is clamped
reals, β = Δ/k    of noise constant on the cells [(j - ½)β, (j + ½)β): |j| β, and β/4 for j = 0; (j² + 1/12) β²
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

from workbench.models.oracles.line_noise import POWERS


@dataclass(frozen=True)
class LineLoss:
    """c(η) on all integers: |η|^power, or a table for -m..m, which goes on by `slopes` (right, left) beyond it.

    table: values >= 0 for -m..m that do not fall as |η| grows, unless `falls`: then a program reaches to m. Raises
    ValueError.
    """

    name: str
    power: int = 0
    table: tuple[Fraction, ...] = ()
    slopes: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))
    may_fall: bool = False

    def __post_init__(self) -> None:
        if not self.power and (
            len(self.table) % 2 == 0 or min(self.table) < 0 or not (self.may_fall or self.is_rising)
        ):
            raise ValueError("loss must be >= 0 and not fall as |noise| grows. Got one that does.")

    @property
    def is_rising(self) -> bool:
        """Whether it does not fall as |η| grows."""
        m, values = len(self.table) // 2, self.table
        return all(a <= b for side in (values[m:], values[m::-1]) for a, b in pairwise(side))

    @classmethod
    def from_name(cls, name: str) -> LineLoss:
        """ "absolute" or "squared"."""
        return cls(name, POWERS[name])

    @classmethod
    def from_values(cls, values: Sequence[Fraction]) -> LineLoss:
        """c(|η|) = values[|η|], its last value beyond."""
        return cls("own", 0, (*values[:0:-1], *values))

    @classmethod
    def with_straight_tails(cls, name: str, loss: Callable[[int], Fraction], bend: int) -> LineLoss:
        """c(η) = loss(η), a line on each side from |η| = bend on."""
        m = bend + 1
        table = tuple(map(loss, range(-m, m + 1)))
        return cls(name, 0, table, (table[-1] - table[-2], table[0] - table[1]))

    @classmethod
    def of_clamped_answers(
        cls, name: str, answers: int, loss: Callable[[int, int], Fraction], prior: Sequence[Fraction] | None = None,
        depends_on_difference: bool = False,
    ) -> LineLoss:  # fmt: skip
        """c(η) = Σ_q prior(q) loss(q, clamp(q + η)), q = 0..answers-1, which may fall where the loss of an answer does;
        uniform without a prior. by_difference: whether loss(q, o) hangs on o - q alone: then sums of the prior do."""
        n = answers - 1
        if depends_on_difference:
            of_steps = {step: loss(max(0, -step), max(0, step)) for step in range(-n, n + 1)}

            def loss(q: int, o: int) -> Fraction:
                return of_steps[o - q]

        weights = [Fraction(1)] * answers if prior is None else [*prior]
        sums = [*accumulate(weights, initial=Fraction(0))]
        low = [*accumulate((p * loss(q, 0) for q, p in enumerate(weights)), initial=Fraction(0))]
        high = [
            *accumulate((weights[q] * loss(q, n) for q in range(n, -1, -1)), initial=Fraction(0))
        ]

        def mean(eta: int) -> Fraction:
            first, end = (
                max(0, -eta),
                answers - max(0, eta),
            )  # of the answers that η keeps from both ends
            if depends_on_difference:
                kept = (sums[end] - sums[first]) * loss(first, first + eta)
            else:
                kept = sum(
                    (weights[q] * loss(q, q + eta) for q in range(first, end) if weights[q]),
                    Fraction(0),
                )
            return (low[first] + kept + high[answers - end]) / sums[-1]

        return cls(name, 0, tuple(map(mean, range(-n, n + 1))), may_fall=True)

    @property
    def is_even(self) -> bool:
        """Whether c(-η) = c(η)."""
        return self.table == self.table[::-1] and self.slopes[0] == self.slopes[1]

    @property
    def span(self) -> int:
        """m of the table."""
        return len(self.table) // 2

    def value_at(self, eta: int) -> Fraction:
        """c(η), exact."""
        if self.power:
            return Fraction(abs(eta) ** self.power)
        beyond = abs(eta) - self.span
        known = self.table[min(self.span, max(-self.span, eta)) + self.span]
        return known + beyond * self.slopes[eta < 0] if beyond > 0 else known

    def values_between(self, low: int, high: int) -> dict[int, Fraction]:
        """Map every η in low..high to c(η)."""
        return {eta: self.value_at(eta) for eta in range(low, high + 1)}

    def min_tail_losses(self, last: int, reach: int, ratio: Fraction) -> tuple[Fraction, Fraction]:
        """The least mean loss of mass beyond `last` on the right, and on the left, of noise with
        Pr[η > a + reach] >= ratio Pr[η > a] for every a: what is further out by k has at least ratio^⌈k/reach⌉ of it.
        last >= m, of a table."""
        more = reach * ratio / (1 - ratio)
        return (
            self.value_at(last + 1) + self.slopes[0] * more,
            self.value_at(-last - 1) + self.slopes[1] * more,
        )


def cell_loss(name: str, beta: Fraction) -> Callable[[int], Fraction]:
    """Of the cell j, of "absolute" or "squared" loss."""
    if POWERS[name] == 1:
        return lambda j: beta * (abs(j) or Fraction(1, 4))
    return lambda j: beta**2 * (j * j + Fraction(1, 12))
