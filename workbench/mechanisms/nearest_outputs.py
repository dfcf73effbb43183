"""Publish a number in a range as one of m outputs, where the L nearest outputs are likelier.

For L = 1 this is RR-on-Bins (Ghazi et al., Regression with Label Differential Privacy). The range
is [low, high], the outputs are o_j, and a is the ratio of the two masses. The L likelier outputs of
a number x are called its own outputs:

    o_0 <= ... <= o_m-1 in [low, high],  a >= 1
    i(x) = the number of cuts e_i = (o_i + o_i+L)/2 that are <= x
    Pr[o_j | x] = a/N for the own outputs j = i(x)..i(x) + L - 1, else 1/N,      N = m - L + a L

Example: L = 1, a = 3, and the outputs 0, 5, 10 have the cuts 2.5 and 7.5. At x = 4 the own output
is 5, N = 2 + 3 = 5, and the probabilities are 1/5, 3/5, 1/5.

The range may also be divided into n equal steps. With probability d the middle of the step that
contains x is published, and with probability 1 - d a draw from the law above. This is (ln a, d)-DP.

Any two answers are neighbours. Lemma: the two ends of the range decide every notion. Each end has k
= min(L, m - L) own outputs that are not own outputs of the other end. Proof. Let x and x' have r <=
k such outputs each. Merge the outcomes with the same ratio, which changes no notion. This gives P =
(r a, r, N - r - r a)/N, and Q with the first two masses exchanged. These laws are the ones for r =
k after each of the first two outcomes is moved to the third with probability 1 - r/k, which makes
no hockey stick larger. For PDP the mass r a/N of the one ratio above 1 counts, which grows with r.
The steps of x and x' are two more outcomes, of masses d, 0 and 0, d. If they are one step, or
coincide with outputs, outcomes are merged. ∎

Losses c(o - x), c(r) = |r| or r², are exact: with F(x) = Σ_j c(o_j - x),

    at x          (F(x) + (a - 1) Σ_own c(o_j - x))/N
    mean over x   (Σ_j E c(o_j - x) + (a - 1) Σ_j E[c(o_j - x); e_j-L <= x < e_j])/N

The loss at x is convex between cuts. It is continuous at a cut, because the output that becomes an
own one is as far from the cut as the one that ceases to be. Its maximum is therefore at a cut, at
low or at high. With steps it may also be at an end of a step; the first and the last step between
two cuts suffice, because all steps have the same loss. In the mean, x is uniform on each of several
equal parts of the range.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from workbench.data.plain import read_exact_number
from workbench.errors import must
from workbench.exact.arrays import Positions, Vector
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import ONE, ZERO, Rationals, nearest_float, read_number
from workbench.exact.objects import Record
from workbench.exact.random_source import Source
from workbench.io.records import INTEGER, RATIO, RATIOS, RecordForm
from workbench.mechanisms.mechanism import (
    AuditSize,
    Budget,
    Comparison,
    Label,
    Segment,
    assign_budgets,
)
from workbench.mechanisms.range_publisher import RangePublisher
from workbench.mechanisms.shown_mechanism import ShownMechanism

_MAX_MASSES = 4_000_000  # A matrix with more masses than this is refused.
_FORM = RecordForm(
    "The nearest outputs",
    {"kind": "nearest-outputs"},
    ends=RATIOS,
    outputs=RATIOS,
    own=INTEGER,
    odds=RATIO,
    direct=RATIO,
    steps=INTEGER,
)
_OUTCOMES = (  # The merged outcomes of `comparisons`, seen from x.
    "own outputs",
    "the other's own outputs",
    "other outputs",
    "the own step",
    "the other's step",
)


@dataclass(frozen=True, repr=False)
class NearestOutputs(RangePublisher, ShownMechanism):
    """A mechanism for real answers whose L nearest outputs are likelier (module header).

    Attributes:
        ends: The range (low, high) of the answers.
        bins: The outputs, shape (m,).
        own: L, the number of likelier outputs.
        odds: The ratio a of a likelier mass to another mass, >= 1.
        direct: d, the probability of publishing the step of the answer.
        steps: n, the number of equal steps of the range.

    Raises:
        InvalidRequest: If the ends do not increase, if the outputs fall or leave the range, if own
            is not in 1..m-1, if odds or steps is below 1, or if direct is outside [0, 1].
    """

    ends: Rationals
    bins: Rationals
    own: int
    odds: Fraction
    direct: Fraction = ZERO
    steps: int = 1

    is_one_sided: ClassVar[bool] = False
    segments: ClassVar[tuple[Segment, ...]] = ()

    def __post_init__(self) -> None:
        if len(self.ends) != 2 or self.ends[0] >= self.ends[1]:
            must("ends", "two increasing numbers", self.ends)
        if any(a > b for a, b in pairwise((self.ends[0], *self.bins, self.ends[1]))):
            must("outputs", "numbers in the range that do not fall", f"{len(self.bins)} others")
        if not 1 <= self.own < len(self.bins):
            must("own", f"1 to {len(self.bins) - 1} of {len(self.bins)} outputs", self.own)
        if self.odds < 1:
            must("odds", "at least 1", self.odds)
        if not 0 <= self.direct <= 1:
            must("direct", "a probability", self.direct)
        if self.steps < 1:
            must("steps", "at least 1", self.steps)

    @property
    def largest_bias(self) -> Fraction:
        """Return an upper bound on |E M(x) - x| over all x of the range.

        Between cuts the mean does not change, so the bias of a cell is largest at one of its ends.
        """
        m = len(self.bins)
        own_count = self.own
        range_low, range_high = self.ends
        cell_ends = [range_low, *self.cuts, range_high]
        total = m - own_count + own_count * self.odds
        total_sum = sum(self.bins, ZERO)
        own_sum = sum(self.bins[:own_count], ZERO)
        max_bias = ZERO
        for i, (low, high) in enumerate(pairwise(cell_ends)):
            mean = (total_sum + (self.odds - 1) * own_sum) / total
            if low <= high:
                max_bias = max(max_bias, abs(mean - low), abs(mean - high))
            # Behind a cut, the first own output is replaced by the next output.
            if i < m - own_count:
                own_sum += self.bins[i + own_count] - self.bins[i]
        half_step = (range_high - range_low) / self.steps / 2
        return (1 - self.direct) * max_bias + self.direct * half_step

    # Members of `Mechanism`.

    @cached_property
    def cuts(self) -> Rationals:
        """Return the cuts e_0 <= ... <= e_m-L-1."""
        return tuple((a + b) / 2 for a, b in zip(self.bins, self.bins[self.own :], strict=False))

    def step_index(self, x: Fraction) -> int:
        """Return the number of the step, 0..n-1, in which a number lies, clamped into the range.

        Args:
            x: A number in the range.
        """
        low, high = self.ends
        return max(0, min(int((x - low) * self.steps / (high - low)), self.steps - 1))

    @property
    def published_values(self) -> Rationals:
        """Return the outputs, and the middles of steps if these are published."""
        low, high = self.ends
        middles = (low + (high - low) * (2 * i + 1) / (2 * self.steps) for i in range(self.steps))
        if self.direct:
            return (*self.bins, *middles)
        return self.bins

    @cached_property
    def cells(self) -> list[tuple[int, Fraction, Fraction]]:
        """Return (i, start, end) of each cell: the answers x in [start, end) with i(x) = i."""
        low, high = self.ends
        cell_ends = (low, *self.cuts, high)
        return [
            (i, start, end) for i, (start, end) in enumerate(pairwise(cell_ends)) if start < end
        ]

    @property
    def inputs(self) -> list[Fraction]:
        """Return the middle of each cell.

        All answers of a cell have one law, up to the step that is published with probability d.
        """
        return [(a + b) / 2 for _, a, b in self.cells]

    @cached_property
    def outputs(self) -> Vector:
        """Return the published values: the outputs, and the middles of steps if d > 0.

        Shape (m,), or (m + n,).
        """
        bins = [float(value) for value in self.bins]
        if not self.direct:
            return np.array(bins)
        low, high = map(float, self.ends)
        middles = low + (high - low) * (2 * np.arange(self.steps) + 1) / (2 * self.steps)
        return np.append(bins, middles)

    @property
    def _weights(self) -> tuple[int, int, int]:
        """Return the integer weights of an own output, of another output, and of the step."""
        a, b = self.odds.as_integer_ratio()
        d, unit = self.direct.as_integer_ratio()
        total = self.own * a + (len(self.bins) - self.own) * b
        return (unit - d) * a, (unit - d) * b, d * total

    def law(self, x: Any) -> Distribution:
        """Return the exact law of a number in the range.

        Args:
            x: A number; a double is the rational that it is.

        Raises:
            InvalidRequest: If x is no finite number, or outside the range.
        """
        number = read_number(
            Fraction(x) if isinstance(x, float) and math.isfinite(x) else x, "answer"
        )
        low, high = self.ends
        if not low <= number <= high:
            must("answer", self.column_inputs.constraint, x)
        own_weight, other_weight, step_weight = self._weights
        first = bisect_right(self.cuts, number)
        weights = [other_weight] * len(self.bins)
        weights[first : first + self.own] = [own_weight] * self.own
        if self.direct:
            weights += [0] * self.steps
            weights[len(self.bins) + self.step_index(number)] = step_weight
        return Distribution.from_integers(weights)

    @cached_property
    def matrix(self) -> Vector:
        """Return the laws of the inputs. Shape (cells, outputs).

        Raises:
            InvalidRequest: If there are more than 4·10^6 masses.
        """
        size = len(self.cells) * self.outputs.size
        if size > _MAX_MASSES:
            must("the matrix", f"of at most {_MAX_MASSES} masses", size)
        return np.array([self.law(x).floats for x in self.inputs])

    @property
    def used_outputs(self) -> Positions:
        """Return the positions of different outputs: the first of equal ones.

        Every output has positive probability.
        """
        _, first_positions = np.unique(self.outputs, return_index=True)
        return first_positions

    @cached_property
    def is_rounded(self) -> bool:
        """Return whether some outputs, but not all, may be published as one double.

        Then one of them may exceed a ratio, and the merged output may exceed it with more mass.
        This only matters for notions that count this mass (PDP).
        """
        return self.direct > 0 or 1 < len(self.used_outputs) < len(self.bins)

    def comparisons(self) -> Iterator[Comparison]:
        """Yield the comparison of the answers at both ends, in both orders (see the lemma)."""
        a, b, step = self._weights
        m = len(self.bins)
        k = min(self.own, m - self.own)
        common_weight = (self.own - k) * a + (m - self.own - k) * b
        step_weights = [step, 0] if step else []
        laws = (
            Distribution([k * a, k * b, common_weight, *step_weights]),
            Distribution([k * b, k * a, common_weight, *step_weights[::-1]]),
        )

        def describe(outcome: int) -> tuple[str, str]:
            """Name the two probabilities of a merged outcome for a report."""
            return f"Pr[{_OUTCOMES[outcome]}|x]", f"Pr[{_OUTCOMES[outcome]}|x']"

        for i, p in enumerate(laws):
            yield Comparison((i, 1 - i), p, laws[1 - i], describe)

    def with_max_distance(self, distance: float) -> NearestOutputs:
        """Return itself: every two answers are neighbours.

        Args:
            distance: Not used.
        """
        return self

    def budgets(self, epsilon: Budget) -> dict[Label, Fraction]:
        """Return the budget of both orders.

        Args:
            epsilon: One number, or a mapping with the keys (0, 1) and (1, 0).

        Raises:
            InvalidRequest: If a budget is negative or no number, or if a mapping leaves out one of
                the orders or names another pair.
        """
        return assign_budgets([comparison.label for comparison in self.comparisons()], epsilon)

    @property
    def audit_size(self) -> AuditSize:
        """Return the size of an audit: two laws on three outcomes, or five."""
        return AuditSize.from_laws([comparison.p for comparison in self.comparisons()], 2)

    # Publishing.

    def _draw(self, x: Vector, exact_answers: NDArray[Any], source: Source) -> NDArray[np.float64]:
        """Draw outputs for the answers, by their position among the cuts."""
        # The law is a draw among the own outputs with probability L (a - 1)/N, else among all m.
        a = self.odds.numerator
        b = self.odds.denominator
        m = len(self.bins)
        own_count = self.own
        first_own = _count_cuts_below(self.cuts, x, exact_answers)
        is_own = source.draw_bernoulli(
            own_count * (a - b), own_count * a + (m - own_count) * b, x.size
        )
        positions = np.where(
            is_own,
            first_own + source.draw_integers(own_count, x.size),
            source.draw_integers(m, x.size),
        )
        if self.direct:
            direct_draws = np.flatnonzero(
                source.draw_bernoulli(*self.direct.as_integer_ratio(), x.size)
            )
            positions[direct_draws] = [
                m + self.step_index(read_exact_number(exact_answers[k]))
                for k in direct_draws.tolist()
            ]
        return np.asarray(self.outputs[positions])

    @property
    def column_cautions(self) -> tuple[str, ...]:
        """Return a caution if answers themselves are published."""
        if not self.direct:
            return ()
        return (
            f"With probability {float(self.direct):g} each number is published itself, "
            f"to 1/{self.steps} of the range.",
        )

    # Expected loss.

    def errors(
        self, loss: str, weights: Sequence[Fraction] = (ONE,)
    ) -> tuple[Fraction, Fraction, Fraction]:
        """Compute the mean and the largest expected loss exactly.

        Args:
            loss: The loss, "absolute" or "squared".
            weights: Weights of equal parts of the range, which sum to 1. The answer is uniform on
                each part.

        Returns:
            (The mean loss, the largest loss, an answer that has the largest loss).
        """
        own_weight, other_weight, step_weight = self._weights
        range_low, range_high = self.ends
        half_step = (range_high - range_low) / (2 * self.steps)
        values = [*self.ends, *self.bins, half_step]
        # In units of 1/unit all numbers, the ends of the parts of the prior, and the cuts (means of
        # two outputs) are integers.
        unit = 2 * math.lcm(len(weights), *{value.denominator for value in values}) * len(weights)
        low, high, *outputs, half = (int(value * unit) for value in values)
        points = np.array(outputs, dtype=object)
        power = 1 if loss == "absolute" else 2
        cuts = (points[: len(self.cuts)] + points[self.own :]) // 2
        other_count = len(outputs) - self.own
        mass = other_count * other_weight + self.own * own_weight + step_weight
        total = mass * unit**power

        # The largest loss is at an end of the range, a cut, or an end of the step around one.
        x = np.concatenate([[low, high], cuts])
        if step_weight:
            step_starts = x - (x - low) % (2 * half)
            x = np.concatenate([x, step_starts, np.minimum(step_starts + 2 * half, high)])
        x = np.sort(x)
        first = np.searchsorted(cuts, x)  # At a cut, both sides have the same loss.
        losses = other_weight * _power_sums(points, x, first=0, end=len(outputs), power=power)
        own_sums = _power_sums(points, x, first, end=first + self.own, power=power)
        losses += (own_weight - other_weight) * own_sums
        if step_weight:
            losses += step_weight * abs((x - low) % (2 * half) - half) ** power
        worst_index = int(losses.argmax())

        def step_integral(x: int) -> int:
            """Return 12 times the integral of the steps' losses from low to x."""
            # A complete step has the integral 2 half^(p+1) / (p+1), for p = power. The last step,
            # up to x, has (half^(p+1) - left |left|^p) / (p+1). The factor 12 makes them integers.
            complete_steps, remainder = divmod(x - low, 2 * half)
            left = half - remainder
            complete = (2 * complete_steps + 1) * half ** (power + 1)
            return int(12 // (power + 1) * (complete - left * abs(left) ** power))

        # Every output counts over the whole range, and an own output more between its cuts.
        range_starts = np.full_like(points, low)
        range_ends = np.full_like(points, high)
        own_starts = np.append(range_starts[: self.own], cuts)
        own_ends = np.append(cuts, range_ends[: self.own])
        groups = (
            (range_starts, range_ends, other_weight),
            (own_starts, own_ends, own_weight - other_weight),
        )
        mean = ZERO
        width = (high - low) // len(weights)
        for part, weight in enumerate(weights):
            a = low + part * width
            b = low + (part + 1) * width
            integral = step_weight * (step_integral(b) - step_integral(a))
            for starts, ends, factor in groups:
                left = np.clip(starts, a, b)
                right = np.clip(ends, a, b)
                integral += factor * int(_power_integrals(points, left, right, power).sum())
            mean += weight * Fraction(integral, 12 * width)
        max_loss = Fraction(int(losses[worst_index]), total)
        return mean / total, max_loss, Fraction(int(x[worst_index]), unit)

    # Files and words.

    def describe(self) -> str:
        """Describe the mechanism in one line."""
        name = "RR-on-Bins"
        if self.own > 1:
            name = f"NearestOutputs, {self.own} of them likelier,"
        answers = f"for all real answers {self.column_inputs.constraint}"
        text = f"{name} with {len(self.bins)} outputs, {answers}"
        if not self.direct:
            return text
        return (
            f"{text}, with probability {float(self.direct):g} "
            f"the answer itself in {self.steps} steps"
        )

    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `from_dict` reads."""
        return _FORM.write(self, outputs=self.bins)

    @classmethod
    def from_dict(cls, data: Any) -> NearestOutputs:
        """Return the mechanism written by `to_dict`, which claims no privacy: audit it.

        Args:
            data: The record, as parsed from JSON.

        Raises:
            CorruptFile: If the record has another form.
            InvalidRequest: If the numbers make no mechanism, for example outputs that fall or odds
                below 1.
        """
        return cls(*_FORM.read(data).values())

    def __repr__(self) -> str:
        return f"NearestOutputs({self.own} of {len(self.bins)} outputs, odds={float(self.odds):g})"


def _count_cuts_below(cuts: Rationals, x: Vector, exact_answers: NDArray[Any]) -> Positions:
    """Count the cuts that are <= x, exactly, for every x. Returns the shape of x.

    Doubles decide, except for an x that is the double of a cut.

    Args:
        cuts: The exact cuts, in increasing order.
        x: The answers as doubles, shape (n,).
        exact_answers: The same answers as the user gave them, shape (n,).
    """
    float_cuts = np.array([nearest_float(cut) for cut in cuts])
    counts = np.searchsorted(float_cuts, x, side="right")
    for k in np.flatnonzero(counts > np.searchsorted(float_cuts, x)).tolist():
        counts[k] = bisect_right(cuts, read_exact_number(exact_answers[k]))
    return counts


def _power_sums(
    points: NDArray[Any], x: NDArray[Any], first: Any, end: Any, power: int
) -> NDArray[Any]:
    """Compute Σ |points_j - x|^power over first <= j < end, exactly, for every x.

    Args:
        points: Increasing integers, as objects, shape (m,).
        x: Integers, as objects.
        first: The first position j, one for all x or one for each.
        end: The position after the last j, one for all x or one for each.
        power: 1 or 2.

    Returns:
        The sums, in the shape of x.
    """
    zero = np.zeros(1, dtype=object)
    sums, square_sums = (np.concatenate([zero, np.cumsum(points**power)]) for power in (1, 2))
    if power == 2:
        return np.asarray(
            square_sums[end]
            - square_sums[first]
            - 2 * x * (sums[end] - sums[first])
            + (end - first) * x * x
        )
    middle = np.clip(np.searchsorted(points, x), first, end)
    return np.asarray(x * (2 * middle - first - end) + sums[first] + sums[end] - 2 * sums[middle])


def _power_integrals(points: NDArray[Any], left: Any, right: Any, power: int) -> NDArray[Any]:
    """Compute 12 ∫ |point - x|^power dx from left to right, for every point (shape (m,)).

    With power 1 a point inside the interval splits the integral in two.
    """
    r = abs(2 * points - left - right)  # Twice the distance of the point from the middle.
    h = right - left
    if power == 2:
        return np.asarray(h * (3 * r * r + h * h))
    return np.asarray(np.where(r >= h, 6 * r * h, 3 * (r * r + h * h)))
