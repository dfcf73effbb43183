"""Define the losses c(η) >= 0 of additive noise η on the integers, and of cells on the reals.

`LineLoss` is a loss on the integers, `cell_loss` a loss on the reals. They do not fall as |η|
grows, except the mean loss of a clamped answer.

    integers          |η|, η², a user-defined table by |η|, lines with two slopes (pinball, huber),
                      or the mean loss of the published answer if the sum is clamped
    reals, β = Δ/k    noise whose density is constant on the cells [(j - ½)β, (j + ½)β) of width β:
                      k cells in the sensitivity Δ. The mean of |η| in cell j is |j| β, and β/4 for
                      j = 0; the mean of η² is (j² + 1/12) β²
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, chain, pairwise

from workbench.models.oracles.line_noise import POWERS


@dataclass(frozen=True)
class LineLoss:
    """A loss c(η) on all integers: a power |η|^power, or a table that continues in two lines.

    For example, the table (1, 0, 2) with the slopes (2, 1) is c(η) = 2 η for η > 0 and |η| for
    η < 0.

    Attributes:
        name: name of the loss in reports.
        power: exponent 1 or 2 of |η|, or 0 for a table.
        table: values >= 0 for η = -m..m, of odd length 2 m + 1; empty for a power.
        slopes: (right, left): increase of the loss in each step away from 0 beyond the table.
        may_fall: whether the table may fall as |η| grows. Programs then include all of -m..m.

    Raises:
        ValueError: the table has an even length or a negative value, or falls although it may not.
    """

    name: str
    power: int = 0
    table: tuple[Fraction, ...] = ()
    slopes: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))
    may_fall: bool = False

    def __post_init__(self) -> None:
        if self.power:
            return
        is_ordered = self.may_fall or self.is_rising
        if len(self.table) % 2 == 0 or min(self.table) < 0 or not is_ordered:
            raise ValueError("loss must be >= 0 and not fall as |noise| grows. Got one that does.")

    @property
    def is_rising(self) -> bool:
        """Check that the table does not fall as |η| grows."""
        right = self.table[self.span :]
        left = self.table[self.span :: -1]
        steps = chain(pairwise(right), pairwise(left))
        return all(nearer <= farther for nearer, farther in steps)

    @classmethod
    def from_name(cls, name: str) -> LineLoss:
        """Return the loss |η| or η².

        Args:
            name: "absolute" or "squared".
        """
        return cls(name, POWERS[name])

    @classmethod
    def from_values(cls, values: Sequence[Fraction]) -> LineLoss:
        """Return the user-defined loss c(η) = values[|η|], constant beyond the last value.

        Args:
            values: losses of the distances 0, 1, ..., which do not fall.
        """
        return cls("own", 0, (*values[:0:-1], *values))

    @classmethod
    def with_straight_tails(
        cls,
        name: str,
        loss: Callable[[int], Fraction],
        bend: int,
    ) -> LineLoss:
        """Return a loss that is a line on each side from |η| = bend on.

        Args:
            name: name of the loss in reports.
            loss: function from η to its loss.
            bend: distance from which on the loss is linear.
        """
        m = bend + 1
        table = tuple(map(loss, range(-m, m + 1)))
        right_slope = table[-1] - table[-2]
        left_slope = table[0] - table[1]
        return cls(name, 0, table, (right_slope, left_slope))

    @classmethod
    def of_clamped_answers(
        cls,
        name: str,
        answers: int,
        loss: Callable[[int, int], Fraction],
        prior: Sequence[Fraction] | None = None,
        depends_on_difference: bool = False,
    ) -> LineLoss:
        """Return the mean loss c(η) = Σ_q prior(q) loss(q, clamp(q + η)) over q = 0..answers-1.

        It may fall as |η| grows where the loss of an answer does.

        Args:
            name: name of the loss in reports.
            answers: number of answers; sums are clamped to 0..answers-1.
            loss: function from the true and the published answer to the loss.
            prior: weights of the true answers, in order; None for uniform weights.
            depends_on_difference: whether loss(q, o) depends on o - q alone, so that sums of the
                prior suffice.
        """
        n = answers - 1
        if depends_on_difference:
            # Each difference o - q is evaluated once, at the pair (q, o) with a 0.
            loss_of_step = {step: loss(max(0, -step), max(0, step)) for step in range(-n, n + 1)}

            def loss(q: int, o: int) -> Fraction:
                """Return the loss of publishing o for q, from the table of differences."""
                return loss_of_step[o - q]

        weights = [Fraction(1)] * answers if prior is None else [*prior]
        zero = Fraction(0)
        weight_sums = [*accumulate(weights, initial=zero)]
        low_losses = (p * loss(q, 0) for q, p in enumerate(weights))
        low_sums = [*accumulate(low_losses, initial=zero)]
        high_losses = (weights[q] * loss(q, n) for q in range(n, -1, -1))
        high_sums = [*accumulate(high_losses, initial=zero)]

        def mean_loss(eta: int) -> Fraction:
            """Return the loss of the noise value η, summed over the answers with their weights."""
            # The sums of the answers first..end-1 with η stay in range. Smaller answers are clamped
            # to 0, larger ones to n.
            first = max(0, -eta)
            end = answers - max(0, eta)
            if depends_on_difference:
                inner_sum = (weight_sums[end] - weight_sums[first]) * loss(first, first + eta)
            else:
                inner_sum = sum(
                    (weights[q] * loss(q, q + eta) for q in range(first, end) if weights[q]), zero
                )
            return (low_sums[first] + inner_sum + high_sums[answers - end]) / weight_sums[-1]

        return cls(name, 0, tuple(map(mean_loss, range(-n, n + 1))), may_fall=True)

    @property
    def is_even(self) -> bool:
        """Check that c(-η) = c(η)."""
        right_slope, left_slope = self.slopes
        return self.table == self.table[::-1] and right_slope == left_slope

    @property
    def span(self) -> int:
        """Return m, the largest η of the table."""
        return len(self.table) // 2

    def value_at(self, eta: int) -> Fraction:
        """Compute c(η) exactly.

        Args:
            eta: an integer noise value.
        """
        if self.power:
            return Fraction(abs(eta) ** self.power)
        distance_beyond = abs(eta) - self.span
        table_value = self.table[min(self.span, max(-self.span, eta)) + self.span]
        if distance_beyond > 0:
            right_slope, left_slope = self.slopes
            return table_value + distance_beyond * (left_slope if eta < 0 else right_slope)
        return table_value

    def values_between(self, low: int, high: int) -> dict[int, Fraction]:
        """Return c(η) for every η in low..high, as a dictionary.
        Args:
            low: the smallest η.
            high: the largest η.
        """
        return {eta: self.value_at(eta) for eta in range(low, high + 1)}

    def bound_tail_losses(
        self,
        last: int,
        reach: int,
        ratio: Fraction,
    ) -> tuple[Fraction, Fraction]:
        """Return lower bounds on the mean loss, given that the noise is beyond `last`.

        The noise satisfies Pr[η > a + reach] >= ratio Pr[η > a] for every a, and so does -η.

        Args:
            last: a noise value >= m for a table.
            reach: distance over which the tail falls by at most `ratio`.
            ratio: in (0, 1).

        Returns:
            (right, left): bounds on E[c(η) | η > last] and on E[c(η) | η < -last].
        """
        # The distance of η from last + 1 is at least k with probability ratio^⌈k/reach⌉ or more.
        # The sum over k >= 1 bounds its mean. A power has slopes 0: only its value at last + 1
        # counts.
        mean_distance = reach * ratio / (1 - ratio)
        right_slope, left_slope = self.slopes
        right = self.value_at(last + 1) + right_slope * mean_distance
        left = self.value_at(-last - 1) + left_slope * mean_distance
        return right, left


def cell_loss(name: str, beta: Fraction) -> Callable[[int], Fraction]:
    """Return the mean loss of a cell as a function of the cell number j.

    Args:
        name: "absolute" or "squared".
        beta: width β of a cell.
    """
    if POWERS[name] == 1:
        return lambda j: beta * (abs(j) or Fraction(1, 4))
    return lambda j: beta**2 * (j * j + Fraction(1, 12))
