"""A number in a range becomes one of m outputs, of which the L nearest to it are likelier:
RR-on-Bins for L = 1.

    o_0 <= ... <= o_m-1 in [low, high],  a >= 1,  i(x) = the number of cuts e_i = (o_i + o_i+L)/2 that are <= x
    Pr[o_j | x] = a/N for the own outputs j = i(x)..i(x) + L - 1, else 1/N,          N = m - L + a L

With probability d it is instead the middle of that of n equal steps of the range in which x lies:
at δ = d the answer itself, but for a rounding. The rest, what is above, then comes with probability
1 - d.

Any two answers are neighbours. Lemma: the answers at both ends, with k = min(L, m - L) own outputs
of each that are not the other's, decide every notion. Proof. Of x and x' with r <= k such outputs
each, outcomes of one ratio taken together (which leaves every notion as it is) give P = (r a, r, N
- r - r a)/N and Q with the first two exchanged. These are P, Q at r = k after the first two
outcomes are moved to the third, each with probability 1 - r/k, which makes no hockey stick larger;
and the mass r a/N of the one ratio above 1, where that counts (PDP), grows with r. The two steps
are two more outcomes, of masses d, 0 and 0, d; where they are one step, or one of the outputs,
outcomes are taken together. ∎

Losses c(o - x), c(r) = |r| or r², are exact: with F(x) = Σ_j c(o_j - x),

    at x              (F(x) + (a - 1) Σ_own c(o_j - x))/N, convex between cuts and continuous at them: an output that
                      comes is as far from the cut as the one that goes; so the largest is at a cut,
                      at low or at high,
                      or at an end of a step: the first or last between two cuts, as all cost as
                          much by their steps
    mean over x       (Σ_j E c(o_j - x) + (a - 1) Σ_j E[c(o_j - x); e_j-L <= x < e_j])/N, of parts of uniform answers
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

_MASSES = 4_000_000  # of a matrix
_FORM = RecordForm(
    "The nearest outputs", {"kind": "nearest-outputs"}, ends=RATIOS, outputs=RATIOS, own=INTEGER, odds=RATIO,
    direct=RATIO, steps=INTEGER,
)  # fmt: skip
_OUTCOMES = (
    "own outputs",
    "the other's own outputs",
    "other outputs",
    "the own step",
    "the other's step",
)


@dataclass(frozen=True, repr=False)
class NearestOutputs(RangePublisher, ShownMechanism):
    """See the module's text. ends: (low, high); bins: (m,) the outputs; own: L; odds: a; direct: d;
    steps: n. Raises InvalidRequest."""

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
        """An upper end of |E M(x) - x| over all x of the range: between cuts the mean does not
        change."""
        m = len(self.bins)
        own = self.own
        cuts = [(self.bins[i] + self.bins[i + own]) / 2 for i in range(m - own)]
        edges = [self.ends[0], *cuts, self.ends[1]]
        total = m - own + own * self.odds
        every = sum(self.bins, ZERO)
        near = sum(self.bins[:own], ZERO)
        worst = ZERO
        for i, (low, high) in enumerate(pairwise(edges)):
            mean = (every + (self.odds - 1) * near) / total
            if low <= high:
                worst = max(worst, abs(mean - low), abs(mean - high))
            if i < m - own:
                near += self.bins[i + own] - self.bins[i]
        step = (self.ends[1] - self.ends[0]) / self.steps / 2
        return (1 - self.direct) * worst + self.direct * step

    # What a mechanism is.

    @cached_property
    def cuts(self) -> Rationals:
        """e_0 <= ... <= e_m-L-1."""
        return tuple((a + b) / 2 for a, b in zip(self.bins, self.bins[self.own :], strict=False))

    def step_index(self, x: Fraction) -> int:
        """Of the n steps of the range, counted from 0, the one in which a number lies, clamped into
        it."""
        low, high = self.ends
        return max(0, min(int((x - low) * self.steps / (high - low)), self.steps - 1))

    @property
    def published_values(self) -> Rationals:
        """The outputs, and the middles of steps where these are published."""
        low, high = self.ends
        middles = (low + (high - low) * (2 * i + 1) / (2 * self.steps) for i in range(self.steps))
        if self.direct:
            return (*self.bins, *middles)
        return self.bins

    @cached_property
    def cells(self) -> list[tuple[int, Fraction, Fraction]]:
        """(i, a, b) of all answers in [a, b) with i(x) = i, from left to right."""
        ends = (self.ends[0], *self.cuts, self.ends[1])
        return [(i, a, b) for i, (a, b) in enumerate(pairwise(ends)) if a < b]

    @property
    def inputs(self) -> list[Fraction]:
        """The middles of the cells."""
        return [(a + b) / 2 for _, a, b in self.cells]

    @cached_property
    def outputs(self) -> Vector:
        """What is published. Shape (m,), or (m + n,)."""
        low, high = map(float, self.ends)
        middles = low + (high - low) * (2 * np.arange(self.steps if self.direct else 0) + 1) / (
            2 * self.steps
        )
        return np.append([float(value) for value in self.bins], middles)

    @property
    def _weights(self) -> tuple[int, int, int]:
        """Of an own output, of another, and of the step, in integers that add up over them."""
        (a, b) = self.odds.as_integer_ratio()
        (d, unit) = self.direct.as_integer_ratio()
        return (unit - d) * a, (unit - d) * b, d * (self.own * a + (len(self.bins) - self.own) * b)

    def law(self, x: Any) -> Distribution:
        """The exact law of a number in the range; a double is the rational it is.

        Raises InvalidRequest.
        """
        at = read_number(Fraction(x) if isinstance(x, float) and math.isfinite(x) else x, "answer")
        if not self.ends[0] <= at <= self.ends[1]:
            must("answer", self.column_inputs.constraint, x)
        (own, other, step) = self._weights
        first = bisect_right(self.cuts, at)
        weights = [other] * len(self.bins)
        weights[first : first + self.own] = [own] * self.own
        if self.direct:
            weights += [0] * self.steps
            weights[len(self.bins) + self.step_index(at)] = step
        return Distribution.from_integers(weights)

    @cached_property
    def matrix(self) -> Vector:
        """The laws of the inputs.

        Shape (cells, outputs). Raises InvalidRequest beyond 4·10^6 masses.
        """
        if (size := len(self.cells) * self.outputs.size) > _MASSES:
            must("the matrix", f"of at most {_MASSES} masses", size)
        return np.array([self.law(x).floats for x in self.inputs])

    @property
    def used_outputs(self) -> Positions:
        """The first of equal outputs, each of which has positive probability."""
        return np.unique(self.outputs, return_index=True)[1]

    @cached_property
    def is_rounded(self) -> bool:
        """Whether some outputs, not all, may be published as one double: together they may exceed a
        ratio that one of them exceeds alone, with more mass.

        It only matters where such mass counts (PDP).
        """
        return self.direct > 0 or 1 < len(self.used_outputs) < len(self.bins)

    def comparisons(self) -> Iterator[Comparison]:
        """The answers at both ends, in both orders."""
        (a, b, step) = self._weights
        m = len(self.bins)
        k = min(self.own, m - self.own)
        rest = (self.own - k) * a + (m - self.own - k) * b
        steps = [step, 0] if step else []
        laws = (
            Distribution([k * a, k * b, rest, *steps]),
            Distribution([k * b, k * a, rest, *steps[::-1]]),
        )

        def describe(outcome: int) -> tuple[str, str]:
            return f"Pr[{_OUTCOMES[outcome]}|x]", f"Pr[{_OUTCOMES[outcome]}|x']"

        for i, p in enumerate(laws):
            yield Comparison((i, 1 - i), p, laws[1 - i], describe)

    def with_max_distance(self, distance: float) -> NearestOutputs:
        """Itself."""
        return self

    def budgets(self, epsilon: Budget) -> dict[Label, Fraction]:
        """One for both orders. Raises InvalidRequest."""
        return assign_budgets([each.label for each in self.comparisons()], epsilon)

    @property
    def audit_size(self) -> AuditSize:
        """Two laws on three outcomes, or five."""
        return AuditSize.from_laws([each.p for each in self.comparisons()], 2)

    # What it publishes.

    def _draw(self, x: Vector, given: NDArray[Any], source: Source) -> NDArray[np.float64]:
        # an own output with probability L (a - 1)/N, else any of the m alike, is the law above
        a = self.odds.numerator
        b = self.odds.denominator
        m = len(self.bins)
        own = self.own
        first = _below(self.cuts, x, given)
        kept = source.draw_bernoulli(own * (a - b), own * a + (m - own) * b, x.size)
        at = np.where(
            kept, first + source.draw_integers(own, x.size), source.draw_integers(m, x.size)
        )
        if self.direct:
            whole = np.flatnonzero(source.draw_bernoulli(*self.direct.as_integer_ratio(), x.size))
            at[whole] = [m + self.step_index(read_exact_number(given[k])) for k in whole.tolist()]
        return np.asarray(self.outputs[at])

    @property
    def column_cautions(self) -> tuple[str, ...]:
        """That answers themselves are published."""
        words = f"With probability {float(self.direct):g} each number is published itself, to 1/{self.steps} of the range."
        if self.direct:
            return (words,)
        return ()

    # What it costs.

    def errors(
        self, loss: str, weights: Sequence[Fraction] = (ONE,)
    ) -> tuple[Fraction, Fraction, Fraction]:
        """(mean loss, the largest, where), exact. loss: absolute or squared; weights: of equal
        parts of the range, with uniform answers on each.
        """
        steps = self.steps
        (owned, other, step) = self._weights
        values = [*self.ends, *self.bins, (self.ends[1] - self.ends[0]) / (2 * steps)]
        unit = 2 * math.lcm(len(weights), *{value.denominator for value in values}) * len(weights)
        low, high, *o, half = (int(value * unit) for value in values)
        at = np.array(o, dtype=object)
        size = 1 if loss == "absolute" else 2
        cuts = (at[: len(self.cuts)] + at[self.own :]) // 2
        total = ((len(o) - self.own) * other + self.own * owned + step) * unit**size
        x = np.concatenate([[low, high], cuts])
        if step:
            before = x - (x - low) % (2 * half)
            x = np.concatenate([x, before, np.minimum(before + 2 * half, high)])
        x = np.sort(x)
        first = np.searchsorted(cuts, x)
        each = other * _sums(at, x, 0, len(o), size) + (owned - other) * _sums(
            at, x, first, first + self.own, size
        )
        if step:
            each += step * abs((x - low) % (2 * half) - half) ** size
        worst = int(each.argmax())
        before = np.full_like(at, low)
        after = np.full_like(at, high)
        groups = [
            (at, before, after, other),
            (
                at,
                np.append(before[: self.own], cuts),
                np.append(cuts, after[: self.own]),
                owned - other,
            ),
        ]

        def of_steps(x: int) -> int:  # 12 times the integral from low to x
            whole, rest = divmod(x - low, 2 * half)
            left = half - rest
            return int(
                12 // (size + 1) * ((2 * whole + 1) * half ** (size + 1) - left * abs(left) ** size)
            )

        mean = ZERO
        width = (high - low) // len(weights)
        for part, weight in enumerate(weights):
            a = low + part * width
            b = low + (part + 1) * width
            sums = (factor * _integrals(points, np.clip(left, a, b), np.clip(right, a, b), size).sum()
                    for points, left, right, factor in groups if factor)  # fmt: skip
            mean += weight * Fraction(
                int(sum(sums)) + step * (of_steps(b) - of_steps(a)), 12 * width
            )
        return mean / total, Fraction(int(each[worst]), total), Fraction(int(x[worst]), unit)

    # Files and words.

    def describe(self) -> str:
        """One line."""
        name = "RR-on-Bins" if self.own == 1 else f"NearestOutputs, {self.own} of them likelier,"
        words = f"{name} with {len(self.bins)} outputs, for all real answers {self.column_inputs.constraint}"
        direct = (
            f", with probability {float(self.direct):g} the answer itself in {self.steps} steps"
        )
        return words + direct * (self.direct > 0)

    def to_dict(self) -> Record:
        """JSON-ready, read back by `from_dict`."""
        return _FORM.write(self, outputs=self.bins)

    @classmethod
    def from_dict(cls, data: Any) -> NearestOutputs:
        """The mechanism written by `to_dict`, which claims no privacy: audit it.

        Raises CorruptFile, InvalidRequest.
        """
        return cls(*_FORM.read(data).values())

    def __repr__(self) -> str:
        return f"NearestOutputs({self.own} of {len(self.bins)} outputs, odds={float(self.odds):g})"


def _below(cuts: Rationals, x: Vector, given: NDArray[Any]) -> Positions:
    """How many cuts are <= x, exactly: a double decides where it is no cut's."""
    rounded = np.array([nearest_float(cut) for cut in cuts])
    first = np.searchsorted(rounded, x, side="right")
    for k in np.flatnonzero(first > np.searchsorted(rounded, x)).tolist():
        first[k] = bisect_right(cuts, read_exact_number(given[k]))
    return first


def _sums(at: NDArray[Any], x: NDArray[Any], first: Any, end: Any, size: int) -> NDArray[Any]:
    """Σ |at_j - x|^size over first <= j < end, for every x; exact.

    at: (m,) in order. Shape of x.
    """
    zero = np.zeros(1, dtype=object)
    ones, twos = (np.concatenate([zero, np.cumsum(at**power)]) for power in (1, 2))
    if size == 2:
        return np.asarray(
            twos[end] - twos[first] - 2 * x * (ones[end] - ones[first]) + (end - first) * x * x
        )
    middle = np.clip(np.searchsorted(at, x), first, end)
    return np.asarray(x * (2 * middle - first - end) + ones[first] + ones[end] - 2 * ones[middle])


def _integrals(at: NDArray[Any], left: Any, right: Any, size: int) -> NDArray[Any]:
    """12 ∫ |at - x|^size dx from left to right, with r, h twice the distance from the middle, and
    the width."""
    r = abs(2 * at - left - right)
    h = right - left
    if size == 2:
        return np.asarray(h * (3 * r * r + h * h))
    return np.asarray(np.where(r >= h, 6 * r * h, 3 * (r * r + h * h)))
