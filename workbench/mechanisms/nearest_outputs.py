"""A number in a range becomes one of m outputs, of which the L nearest to it are likelier: RR-on-Bins for L = 1.

    o_0 <= ... <= o_m-1 in [low, high],  a >= 1,  i(x) = the number of cuts e_i = (o_i + o_i+L)/2 that are <= x
    Pr[o_j | x] = a/N for the own outputs j = i(x)..i(x) + L - 1, else 1/N,          N = m - L + a L

Any two answers are neighbours. Lemma: the answers at both ends, with k = min(L, m - L) own outputs of each that are not
the other's, decide every notion. Proof. Of x and x' with r <= k such outputs each, outcomes of one ratio taken together
(which leaves every notion as it is) give P = (r a, r, N - r - r a)/N and Q with the first two exchanged. These are P, Q
at r = k after the first two outcomes are moved to the third, each with probability 1 - r/k, which makes no hockey stick
larger; and the mass r a/N of the one ratio above 1, where that counts (PDP), grows with r. ∎

Losses c(o - x), c(r) = |r| or r², are exact: with F(x) = Σ_j c(o_j - x),

    at x              (F(x) + (a - 1) Σ_own c(o_j - x))/N, convex between cuts and continuous at them: an output that
                      comes is as far from the cut as the one that goes; so the largest is at a cut, at low or at high
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
from numpy.typing import ArrayLike, NDArray

from workbench.errors import InvalidRequest
from workbench.exact.arrays import Positions, Vector
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import Rationals, exact, nearest_float
from workbench.exact.objects import Record
from workbench.exact.random_source import Source
from workbench.io.records import RATIO, RATIOS, WHOLE, RecordForm
from workbench.mechanisms.mechanism import (
    AuditSize,
    Budget,
    ColumnInputs,
    Comparison,
    Label,
    Segment,
    label_budgets,
)
from workbench.mechanisms.shown_mechanism import ShownMechanism

_MASSES = 4_000_000  # of a matrix
_FORM = RecordForm(
    "The nearest outputs", {"kind": "nearest-outputs"}, ends=RATIOS, outputs=RATIOS, own=WHOLE, odds=RATIO
)
_OUTCOMES = ("own outputs", "the other's own outputs", "other outputs")


@dataclass(frozen=True, repr=False)
class NearestOutputs(ShownMechanism):
    """See the module's text. ends: (low, high); bins: (m,) the outputs; own: L; odds: a. Raises InvalidRequest."""

    ends: Rationals
    bins: Rationals
    own: int
    odds: Fraction

    one_sided: ClassVar[bool] = False
    for_reals: ClassVar[bool] = True
    segments: ClassVar[tuple[Segment, ...]] = ()
    column_cautions: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if len(self.ends) != 2 or self.ends[0] >= self.ends[1]:
            InvalidRequest.must("ends", "two increasing numbers", self.ends)
        if any(a > b for a, b in pairwise((self.ends[0], *self.bins, self.ends[1]))):
            InvalidRequest.must("outputs", "numbers in the range that do not fall", f"{len(self.bins)} others")
        if not 1 <= self.own < len(self.bins):
            InvalidRequest.must("own", f"1 to {len(self.bins) - 1} of {len(self.bins)} outputs", self.own)
        if self.odds < 1:
            InvalidRequest.must("odds", "at least 1", self.odds)

    # What a mechanism is.

    @cached_property
    def cuts(self) -> Rationals:
        """e_0 <= ... <= e_m-L-1."""
        return tuple((a + b) / 2 for a, b in zip(self.bins, self.bins[self.own :], strict=False))

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
        """What is published. Shape (m,)."""
        return np.array([float(value) for value in self.bins])

    def _row(self, first: int) -> Distribution:
        a, b, rest = self.odds.numerator, self.odds.denominator, len(self.bins) - self.own - first
        return Distribution.from_integers([b] * first + [a] * self.own + [b] * rest)

    def law(self, x: Any) -> Distribution:
        """The exact law of a number in the range; a double is the rational it is. Raises InvalidRequest."""
        at = exact(Fraction(x) if isinstance(x, float) and math.isfinite(x) else x, "answer")
        if not self.ends[0] <= at <= self.ends[1]:
            InvalidRequest.must("answer", self.column_inputs.constraint, x)
        return self._row(bisect_right(self.cuts, at))

    @cached_property
    def matrix(self) -> Vector:
        """The laws of the inputs. Shape (cells, m). Raises InvalidRequest beyond 4·10^6 masses."""
        if len(self.cells) * len(self.bins) > _MASSES:
            size = len(self.cells) * len(self.bins)
            InvalidRequest.must("the matrix", f"of at most {_MASSES} masses", size)
        return np.array([self._row(i).floats for i, _, _ in self.cells])

    @property
    def used(self) -> Positions:
        """The first of equal outputs, each of which has positive probability."""
        return np.unique(self.outputs, return_index=True)[1]

    @cached_property
    def rounded(self) -> bool:
        """Whether some outputs, not all, are published as one double: together they may exceed a ratio that one of them
        exceeds alone, with more mass. It only matters where such mass counts (PDP)."""
        return 1 < len(self.used) < len(self.bins)

    def comparisons(self) -> Iterator[Comparison]:
        """The answers at both ends, in both orders."""
        a, b, m = self.odds.numerator, self.odds.denominator, len(self.bins)
        k = min(self.own, m - self.own)
        rest = (self.own - k) * a + (m - self.own - k) * b
        laws = Distribution([k * a, k * b, rest]), Distribution([k * b, k * a, rest])

        def describe(outcome: int) -> tuple[str, str]:
            return f"Pr[{_OUTCOMES[outcome]}|x]", f"Pr[{_OUTCOMES[outcome]}|x']"

        for i, p in enumerate(laws):
            yield Comparison((i, 1 - i), p, laws[1 - i], describe)

    def within(self, distance: float) -> NearestOutputs:
        """Itself."""
        return self

    def budgets(self, epsilon: Budget) -> dict[Label, Fraction]:
        """One for both orders. Raises InvalidRequest."""
        return label_budgets([each.label for each in self.comparisons()], epsilon)

    @property
    def audit_size(self) -> AuditSize:
        """Two laws on three outcomes."""
        return AuditSize.of([each.p for each in self.comparisons()], 2)

    # What it publishes.

    def publish(self, answers: ArrayLike, *, insecure_seed: int | None = None) -> NDArray[np.float64]:
        """One draw for each of many answers, clamped into the range, independently. answers: (n,) finite doubles or
        Fractions. Shape (n,). Raises InvalidRequest."""
        return self.sample(answers, Source(insecure_seed))

    def sample(self, values: ArrayLike, source: Source | None = None) -> NDArray[np.float64]:
        """The same. source: of randomness, the system's by default."""
        given, source = np.asarray(values), source or Source()
        x = given.astype(float)
        if given.ndim != 1 or not np.isfinite(x).all():
            InvalidRequest.must("answers", "finite numbers, one for each row", repr(values))
        cuts = np.array([nearest_float(cut) for cut in self.cuts])
        first = np.searchsorted(cuts, x, side="right")
        for k in np.flatnonzero(first > np.searchsorted(cuts, x)).tolist():  # a float decides where it is no cut's
            first[k] = bisect_right(self.cuts, Fraction(given[k]))
        # an own output with probability L (a - 1)/N, else any of the m alike, is the law above
        a, b, m, own = self.odds.numerator, self.odds.denominator, len(self.bins), self.own
        kept = source.bernoulli(own * (a - b), own * a + (m - own) * b, x.size)
        return self.outputs[np.where(kept, first + source.below(own, x.size), source.below(m, x.size))]

    @property
    def column_inputs(self) -> ColumnInputs:
        """The numbers of the range."""
        low, high = map(float, self.ends)
        return ColumnInputs("channel", low, high, f"in [{low:g}, {high:g}]", False, exact=True)

    def published_error(self) -> None:
        """None: it depends on the answer."""

    # What it costs.

    def errors(self, loss: str, weights: Sequence[Fraction] = (Fraction(1),)) -> tuple[Fraction, Fraction, Fraction]:
        """(mean loss, the largest, where), exact. loss: absolute or squared; weights: of equal parts of the range, with
        uniform answers on each."""
        values = [*self.ends, *self.bins]
        unit = 2 * math.lcm(len(weights), *{value.denominator for value in values}) * len(weights)
        low, high, *o = (int(value * unit) for value in values)
        at, size = np.array(o, dtype=object), 1 if loss == "absolute" else 2
        cuts = (at[: len(self.cuts)] + at[self.own :]) // 2
        whole, extra = self.odds.denominator, self.odds.numerator - self.odds.denominator
        total = (len(o) * whole + self.own * extra) * unit**size
        x = np.array([low, *cuts, high], dtype=object)
        first = np.minimum(np.arange(x.size), len(cuts))
        first[-1] = len(cuts)
        first[1:-1] -= 1
        each = whole * _sums(at, x, 0, len(o), size) + extra * _sums(at, x, first, first + self.own, size)
        worst = int(each.argmax())
        begins = np.array([low] * self.own + [*cuts], dtype=object)
        closes = np.array([*cuts] + [high] * self.own, dtype=object)
        mean, width = Fraction(0), (high - low) // len(weights)
        for part, weight in enumerate(weights):
            a, b = low + part * width, low + (part + 1) * width
            left, right = np.minimum(np.maximum(begins, a), b), np.minimum(np.maximum(closes, a), b)
            own = _integrals(at, left, right, size).sum()
            mean += weight * Fraction(int(whole * _integrals(at, a, b, size).sum() + extra * own), 12 * width)
        return mean / total, Fraction(int(each[worst]), total), Fraction(int(x[worst]), unit)

    # Files and words.

    def describe(self) -> str:
        """One line."""
        name = "RR-on-Bins" if self.own == 1 else f"NearestOutputs, {self.own} of them likelier,"
        return f"{name} with {len(self.bins)} outputs, for all real answers {self.column_inputs.constraint}"

    def to_dict(self) -> Record:
        """JSON-ready, read back by `from_dict`."""
        return _FORM.write(self, outputs=self.bins)

    @classmethod
    def from_dict(cls, data: Any) -> NearestOutputs:
        """The mechanism written by `to_dict`, which claims no privacy: audit it. Raises CorruptFile, InvalidRequest."""
        return cls(*_FORM.read(data).values())

    def __repr__(self) -> str:
        return f"NearestOutputs({self.own} of {len(self.bins)} outputs, odds={float(self.odds):g})"


def _sums(at: NDArray[Any], x: NDArray[Any], first: Any, end: Any, size: int) -> NDArray[Any]:
    """Σ |at_j - x|^size over first <= j < end, for every x; exact. at: (m,) in order. Shape of x."""
    zero = np.zeros(1, dtype=object)
    ones, twos = (np.concatenate([zero, np.cumsum(at**power)]) for power in (1, 2))
    if size == 2:
        return np.asarray(twos[end] - twos[first] - 2 * x * (ones[end] - ones[first]) + (end - first) * x * x)
    middle = np.clip(np.searchsorted(at, x), first, end)
    return np.asarray(x * (2 * middle - first - end) + ones[first] + ones[end] - 2 * ones[middle])


def _integrals(at: NDArray[Any], left: Any, right: Any, size: int) -> NDArray[Any]:
    """12 ∫ |at - x|^size dx from left to right, with r, h twice the distance from the middle, and the width."""
    r, h = abs(2 * at - left - right), right - left
    if size == 2:
        return np.asarray(h * (3 * r * r + h * h))
    return np.asarray(np.where(r >= h, 6 * r * h, 3 * (r * r + h * h)))
