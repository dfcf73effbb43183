"""A distribution on all integers, held exactly: finitely many weights, and geometric tails beyond them.

    f(first + i) = w_i,  0 <= i < m;     f(η + period) = ratio f(η) to the right of the weights,
                                         f(η - period) = ratio f(η) to the left;     ratio = 0: no tails

Two laws P = f and Q = f(· + s) are compared on finitely many outcomes: far out P/Q depends on η modulo the period,
and outcomes of one ratio P/Q may be merged, as every measure of privacy is a function of the law of that ratio.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.data.plain import MAX_FILE_INTEGER, read_integer
from workbench.errors import must
from workbench.exact.arrays import Integers, Vector
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import ZERO, Rationals, read_number_where
from workbench.exact.objects import Pair
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler
from workbench.exact.time_limit import ITEMS_PER_CLOCK_CHECK, check_time_limit


def raise_to_floors(
    weights: list[Any], least: Callable[[int, Any], Iterable[tuple[int, Any]]]
) -> list[Any]:
    """The least weights >= these with w_j >= the floor of every (j, floor) that `least` gives for an i and its w_i.

    A floor is at most the weight that sets it: so the largest is final when it comes.
    """
    raised = [*weights]
    queue = [(-weight, i) for i, weight in enumerate(raised) if weight]
    heapq.heapify(queue)
    taken = 0
    while queue:
        if taken % ITEMS_PER_CLOCK_CHECK == 0:
            check_time_limit()
        taken += 1
        negative, i = heapq.heappop(queue)
        if -negative < raised[i]:
            continue  # it has been raised since
        for j, floor in least(i, raised[i]):
            if raised[j] < floor:
                raised[j] = floor
                heapq.heappush(queue, (-floor, j))
    return raised


def raise_law_to_ratio(
    first: int, weights: Sequence[int], reach: int, ratio: Fraction
) -> IntegerLaw:
    """The least law of integers above some from `first` on with f(η) <= f(η + s) / ratio wherever |s| <= reach; its
    tails fall by the ratio every reach."""
    padded = [
        *[0] * reach,
        *weights,
        *[0] * reach,
    ]  # there it does not rise outwards: its repetition keeps the ratios

    def least(i: int, weight: int) -> Iterator[tuple[int, int]]:
        floor = -(-weight * ratio.numerator // ratio.denominator)
        return ((j, floor) for j in range(max(0, i - reach), min(len(padded), i + reach + 1)))

    return IntegerLaw(first - reach, raise_to_floors(padded, least), reach, ratio)


class IntegerLaw:
    """The law of the module's docstring; its weights need no total. Immutable, equal to its multiples.

    first: of the weights, less than 2^40 in size; weights: non-negative ints or Fractions, not all 0; period: 1..m;
    ratio: in [0, 1). Raises InvalidRequest.
    """

    def __init__(
        self, first: int, weights: Iterable[Any] | Distribution, period: int = 1, ratio: Any = 0
    ) -> None:
        check_time_limit()
        self.weight_law = weights if isinstance(weights, Distribution) else Distribution(weights)
        self.weights = self.weight_law.integers
        self.ratio = read_number_where(
            ratio, "ratio", "a number in [0, 1)", lambda number: 0 <= number < 1
        )
        self.first = read_integer(first, "first", -MAX_FILE_INTEGER, MAX_FILE_INTEGER)
        self.period = read_integer(period, "period", 1, len(self.weights))

    @property
    def last(self) -> int:
        """Of the weights."""
        return self.first + len(self.weights) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IntegerLaw) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.first, self.weights, self.period, self.ratio

    @cached_property
    def end_sums(self) -> Pair:
        """The sums of the first and of the last `period` weights."""
        return sum(self.weights[: self.period]), sum(self.weights[-self.period :])

    @cached_property
    def total(self) -> Fraction:
        """Of all weights, the tails included."""
        return sum(self.weights) + self.ratio / (1 - self.ratio) * sum(self.end_sums)

    @cached_property
    def is_even_and_falling(self) -> bool:
        """Whether f is even and never rises with |η|, as it is seen where the last period lies on one side of 0."""
        weights, one_side = self.weights, self.period <= self.last + 1
        even = self.first == -self.last and one_side and weights == weights[::-1]
        inside = even and all(near >= far for near, far in pairwise(weights[self.last :]))
        return inside and self.ratio * weights[-self.period] <= weights[-1]

    def weight(self, eta: int, with_repeats: bool = False) -> Fraction:
        """f(η), not normalised; whole: with all that repeat it, period by period, farther out."""
        blocks = -(-max(eta - self.last, self.first - eta, 0) // self.period)
        near = eta - blocks * self.period if eta > self.last else eta + blocks * self.period
        inside = self.weights[near - self.first] if self.ratio or not blocks else 0
        key = inside, blocks, with_repeats
        if (
            key not in self._known
        ):  # comparisons of all shifts ask for it, and many weights are the same
            self._known[key] = inside * self.ratio**blocks / (1 - self.ratio if with_repeats else 1)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[int, int, bool], Fraction]:
        return {}

    def weights_between(self, low: int, high: int) -> list[Fraction | int]:
        """f(low..high), not normalised."""
        if self.ratio:
            weights: list[Fraction | int] = []
            for eta in range(low, high + 1):
                if (eta - low) % ITEMS_PER_CLOCK_CHECK == 0:
                    check_time_limit()
                weights.append(self.weight(eta))
            return weights
        start, end = max(low, self.first), min(high, self.last)
        inside = self.weights[start - self.first : end + 1 - self.first] if start <= end else ()
        before = min(max(0, self.first - low), high + 1 - low)
        return [*[0] * before, *inside, *[0] * (high + 1 - low - before - len(inside))]

    def compare_with_shift(
        self, shift: int
    ) -> tuple[list[Fraction | int], list[Fraction | int], int]:
        """(P, Q, low): f and f(· + shift) on low, low + 1, ..., and then on the merged outcomes of the tails, those of
        the right tail first."""
        low, high = self.first - abs(shift), self.last + abs(shift)
        p, q = self.weights_between(low, high), self.weights_between(low + shift, high + shift)
        if self.ratio:
            for eta in (*range(high + 1, high + 1 + self.period), *range(low - self.period, low)):
                p.append(self.weight(eta, with_repeats=True))
                q.append(self.weight(eta + shift, with_repeats=True))
        return p, q, low

    def clamp(self, low: int, high: int) -> Distribution:
        """The law of min(high, max(low, η)) on low..high."""
        inside = self.weights_between(low, high)
        inside[0] = self.weight_below(low + 1)
        inside[-1] = self.total - self.weight_below(high)
        return (
            Distribution(inside) if self.ratio else Distribution.from_integers([*map(int, inside)])
        )

    def weight_below(self, eta: int) -> Fraction:
        """Σ_{x < eta} f(x), not normalised."""
        if eta > self.last:
            return self.total - self._tail(self.weights[-self.period :], eta - 1 - self.last)
        inside = sum(self.weights[: max(0, eta - self.first)])
        return inside + self._tail(self.weights[: self.period][::-1], max(0, self.first - eta))

    def _tail(self, block: Sequence[int], beyond: int) -> Fraction:
        """The mass of a tail but for so many of its first outcomes; block: the weights that it repeats, outwards."""
        blocks, rest = divmod(beyond, self.period)
        return self.ratio**blocks * self.ratio * (sum(block) / (1 - self.ratio) - sum(block[:rest]))

    def mean(
        self,
        loss: Callable[[int], Fraction | int],
        tail_terms: Rationals = (),
        left_tail_terms: Rationals = (),
    ) -> Fraction:
        """E loss(η). beyond: coefficients of 1, |η|, |η|² of the loss in the tails, none for a law without tails;
        below: those of the left tail, where they are others."""
        total: Fraction | int = ZERO
        for i, w in enumerate(self.weights):
            if i % ITEMS_PER_CLOCK_CHECK == 0:
                check_time_limit()
            if w:
                total += w * loss(self.first + i)
        if self.ratio:
            if not tail_terms:
                must("loss", "known beyond the weights of a law with tails", "a list")
            right = [
                (w, self.last - k) for k, w in enumerate(self.weights[: -self.period - 1 : -1])
            ]
            left = [(w, -self.first - k) for k, w in enumerate(self.weights[: self.period])]
            for side, terms in (
                (right, tail_terms),
                (left, left_tail_terms or tail_terms),
            ):  # |η| = outwards + b period in block b
                if min(outwards for _, outwards in side) < 1 - self.period:
                    must("first", "far enough from 0 for its tails", self.first)
                total += self._tail_mean(side, terms)
        return total / self.total

    def _tail_mean(self, side: Sequence[Pair], beyond: Rationals) -> Fraction:
        """Σ_{b >= 1} ratio^b Σ_k beyond_k Σ w (a + b period)^k, k <= 2, over the weights w of a period and their a."""
        r, step = self.ratio, self.period
        constant, linear = r / (1 - r), step * r / (1 - r) ** 2  # Σ r^b, Σ b period r^b
        square = step * step * r * (1 + r) / (1 - r) ** 3  # Σ (b period)² r^b
        s0, s1, s2 = (sum(w * a**k for w, a in side) for k in range(3))
        powers = (
            s0 * constant,
            s1 * constant + s0 * linear,
            s2 * constant + 2 * s1 * linear + s0 * square,
        )
        return sum((c * power for c, power in zip(beyond, powers, strict=False)), ZERO)

    def draw(self, count: int, source: Source) -> Integers:
        """Independent η, exactly distributed: the number of blocks into a tail by Bernoulli(ratio) trials."""
        left, right = (self.ratio / (1 - self.ratio) * end for end in self.end_sums)
        which = Sampler(Distribution([left, *self.weights, right]), source).draw(count)
        drawn = which + (self.first - 1)
        for end, start, sign in (
            (0, self.first, -1),
            (len(self.weights) + 1, self.last + 1 - self.period, 1),
        ):
            outside = np.flatnonzero(which == end)
            if not outside.size:
                continue
            steps = np.ones(outside.size, dtype=np.int64)
            going = np.arange(outside.size)
            while going.size:
                going = going[
                    source.draw_bernoulli(self.ratio.numerator, self.ratio.denominator, going.size)
                ]
                steps[going] += 1
            block = self.weights[start - self.first :][: self.period]
            place = Sampler(Distribution(block), source).draw(outside.size)
            drawn[outside] = start + place + sign * steps * self.period
        return drawn

    def cover(self, low: int, high: int) -> IntegerLaw:
        """The same law, its weights from low to high at least."""
        before, after = (
            -(-max(0, beyond) // self.period) for beyond in (self.first - low, high - self.last)
        )
        first, last = self.first - before * self.period, self.last + after * self.period
        return IntegerLaw(first, self.weights_between(first, last), self.period, self.ratio)

    @property
    def floats(self) -> Vector:
        """f(first..last) as floats. Shape (m,)."""
        return np.array([float(w / self.total) for w in map(Fraction, self.weights)])

    def floats_with_tails(self, share: float, max_count: int) -> tuple[int, Vector]:
        """f as floats with its tails, for a picture.

        Args:
            share: a tail ends where a period of it has fallen to this share of the last period of the weights.
            most: values of one tail at most.

        Returns:
            The first value, and the masses from there on.
        """
        masses, ratio = self.floats, float(self.ratio)
        if not ratio:
            return self.first, masses
        count = min(max_count, self.period * math.ceil(math.log(share) / math.log(ratio)))
        at = np.arange(count)
        fall = ratio ** (1 + at // self.period)
        right = masses[-self.period :][at % self.period] * fall
        left = masses[: self.period][::-1][at % self.period] * fall
        return self.first - count, np.concatenate([left[::-1], masses, right])
