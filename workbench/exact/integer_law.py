"""Store a distribution on all integers exactly, as finitely many weights with geometric tails.

The law is f, its m weights are w_0, ..., w_{m-1}, and f need not be normalised:

    f(first + i) = w_i,  0 <= i < m;     f(η + period) = ratio f(η) to the right of the weights,
                                         f(η - period) = ratio f(η) to the left;
    ratio = 0: no tails

Two laws P = f and Q = f(· + s) are compared on finitely many outcomes. In the tails P/Q depends
only on η modulo the period. Outcomes with the same ratio P/Q may be merged, because every measure
of privacy depends only on the law of this ratio.
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
    weights: list[Any], floors_of: Callable[[int, Any], Iterable[tuple[int, Any]]]
) -> list[Any]:
    """Raise weights as little as possible, so that each is at least the floors that others set.

    For example, let each weight demand half of itself from its neighbours in the list. Then
    [8, 0, 0] becomes [8, 4, 2].

    The weights are visited from the largest one down. A floor is at most the weight that sets it,
    so a weight is final when it is visited.

    Args:
        weights: Weights w_i >= 0.
        floors_of: Maps (i, w_i) to pairs (j, floor), which demand w_j >= floor.

    Returns:
        The raised weights, in the same order.
    """
    raised = [*weights]
    queue = [(-weight, i) for i, weight in enumerate(raised) if weight]
    heapq.heapify(queue)
    visited_count = 0
    while queue:
        if visited_count % ITEMS_PER_CLOCK_CHECK == 0:
            check_time_limit()
        visited_count += 1
        negative_weight, i = heapq.heappop(queue)
        # A weight that was raised later has a second entry in the queue.
        is_outdated = -negative_weight < raised[i]
        if is_outdated:
            continue
        for j, floor in floors_of(i, raised[i]):
            if raised[j] < floor:
                raised[j] = floor
                heapq.heappush(queue, (-floor, j))
    return raised


def raise_law_to_ratio(
    first: int, weights: Sequence[int], reach: int, ratio: Fraction
) -> IntegerLaw:
    """Return the smallest law above some weights that is private for shifts within a reach.

    Its weights satisfy f(η) <= f(η + s) / ratio wherever |s| <= reach. Its tails fall by the ratio
    every reach.

    Args:
        first: The integer of the first weight.
        weights: Integers >= 0, not all 0.
        reach: The largest shift, >= 1.
        ratio: The smallest allowed ratio of two masses within the reach, in (0, 1). It is e^-ε for
            pure ε-DP.

    Returns:
        The law, which starts at first - reach.
    """
    # The padding becomes the first period of each tail. Its raised weights do not rise outwards, so
    # the repeated periods satisfy the ratios as well.
    padding = [0] * reach
    padded = [*padding, *weights, *padding]

    def floors_of(i: int, weight: int) -> Iterator[tuple[int, int]]:
        """Yield (j, floor) of every j within the reach of i: weight j must be >= weight · ratio."""
        # -(-a // b) is a / b, rounded up.
        floor = -(-weight * ratio.numerator // ratio.denominator)
        return ((j, floor) for j in range(max(0, i - reach), min(len(padded), i + reach + 1)))

    raised = raise_to_floors(padded, floors_of)
    return IntegerLaw(first - reach, raised, period=reach, ratio=ratio)


class IntegerLaw:
    """A law on all integers, as in the module header. Its weights need not add up to 1.

    It is immutable. Two laws are equal if their weights are proportional.

    Args:
        first: The integer of the first weight, less than 2^40 in size.
        weights: Non-negative ints or Fractions, not all 0, or a Distribution.
        period: The period of the tails, 1..m.
        ratio: The ratio of the tails, in [0, 1).

    Raises:
        InvalidRequest: If a weight is negative, if all are 0, if period is not in 1..m, if ratio is
            outside [0, 1), or if first is 2^40 or larger in size.
    """

    def __init__(
        self, first: int, weights: Iterable[Any] | Distribution, period: int = 1, ratio: Any = 0
    ) -> None:
        check_time_limit()
        if not isinstance(weights, Distribution):
            weights = Distribution(weights)
        self.weight_law = weights
        self.weights = self.weight_law.integers
        self.ratio = read_number_where(
            ratio, "ratio", "a number in [0, 1)", lambda number: 0 <= number < 1
        )
        self.first = read_integer(first, "first", -MAX_FILE_INTEGER, MAX_FILE_INTEGER)
        self.period = read_integer(period, "period", 1, len(self.weights))

    @property
    def last(self) -> int:
        """Return the integer of the last weight."""
        return self.first + len(self.weights) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IntegerLaw) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        """Return the parts by which laws are compared and hashed."""
        return self.first, self.weights, self.period, self.ratio

    @cached_property
    def end_sums(self) -> Pair:
        """Return the sums of the first and of the last `period` weights."""
        return sum(self.weights[: self.period]), sum(self.weights[-self.period :])

    @cached_property
    def total(self) -> Fraction:
        """Return the sum of all weights, the tails included."""
        return sum(self.weights) + self.ratio / (1 - self.ratio) * sum(self.end_sums)

    @cached_property
    def is_even_and_falling(self) -> bool:
        """Return whether f is even and never rises with |η|.

        The result is also False if the period is so long that it begins left of 0.
        """
        weights = self.weights
        is_period_right_of_0 = self.period <= self.last + 1
        if self.first != -self.last or not is_period_right_of_0 or weights != weights[::-1]:
            return False
        right_half = weights[self.last :]  # As first = -last, this begins at η = 0.
        if any(inner < outer for inner, outer in pairwise(right_half)):
            return False
        # The tail begins with the weight ratio · weights[-period], and repeats a falling period.
        return self.ratio * weights[-self.period] <= weights[-1]

    def weight(self, eta: int, with_repeats: bool = False) -> Fraction:
        """Return f(η), not normalised.

        Args:
            eta: The value η of the noise, any integer.
            with_repeats: Whether to add all weights of the same tail that are one or more periods
                farther out.
        """
        distance_outside = max(eta - self.last, self.first - eta, 0)
        # `base` is η moved by whole periods towards 0, until it has an explicit weight.
        period_count = -(-distance_outside // self.period)
        offset = period_count * self.period
        base = eta - offset if eta > self.last else eta + offset
        base_weight = 0
        if self.ratio or period_count == 0:
            base_weight = self.weights[base - self.first]
        key = base_weight, period_count, with_repeats
        # The comparisons of all shifts read the same weights many times.
        if key not in self._weight_cache:
            # With repeats: 1 + ratio + ratio² + ... = 1 / (1 - ratio).
            divisor = 1 - self.ratio if with_repeats else 1
            self._weight_cache[key] = base_weight * self.ratio**period_count / divisor
        return self._weight_cache[key]

    @cached_property
    def _weight_cache(self) -> dict[tuple[int, int, bool], Fraction]:
        """Return the cache of `weight`, keyed by (explicit weight, periods, with_repeats)."""
        return {}

    def weights_between(self, low: int, high: int) -> list[Fraction | int]:
        """Return f(low..high), not normalised.

        Args:
            low, high: The first and the last value of η, low <= high.
        """
        if self.ratio:
            weights: list[Fraction | int] = []
            for eta in range(low, high + 1):
                if (eta - low) % ITEMS_PER_CLOCK_CHECK == 0:
                    check_time_limit()
                weights.append(self.weight(eta))
            return weights
        start = max(low, self.first)
        end = min(high, self.last)
        inner: Sequence[int] = ()
        if start <= end:
            inner = self.weights[start - self.first : end + 1 - self.first]
        # The whole range may lie on one side of the weights.
        zeros_left = min(max(0, self.first - low), high + 1 - low)
        zeros_right = high + 1 - low - zeros_left - len(inner)
        return [*[0] * zeros_left, *inner, *[0] * zeros_right]

    def compare_with_shift(
        self, shift: int
    ) -> tuple[list[Fraction | int], list[Fraction | int], int]:
        """Return the weights of f and of f(· + shift) on the same outcomes.

        The outcomes are first the integers low, low + 1, ..., high. For each tail, `period` further
        outcomes follow, first for the right tail. Each of them merges all integers of the tail that
        are equal modulo the period.

        Args:
            shift: The shift of the law, an integer other than 0.

        Returns:
            (P, Q, low): weights of f, weights of f(· + shift), and the smallest outcome that is not
            merged.
        """
        low = self.first - abs(shift)
        high = self.last + abs(shift)
        p = self.weights_between(low, high)
        q = self.weights_between(low + shift, high + shift)
        if self.ratio:
            right_tail = range(high + 1, high + 1 + self.period)
            left_tail = range(low - self.period, low)
            for eta in (*right_tail, *left_tail):
                p.append(self.weight(eta, with_repeats=True))
                q.append(self.weight(eta + shift, with_repeats=True))
        return p, q, low

    def clamp(self, low: int, high: int) -> Distribution:
        """Return the law of min(high, max(low, η)) on low..high.

        Args:
            low, high: The smallest and the largest output, integers with low < high.
        """
        weights = self.weights_between(low, high)
        weights[0] = self.weight_below(low + 1)
        weights[-1] = self.total - self.weight_below(high)
        if self.ratio:
            return Distribution(weights)
        return Distribution.from_integers([*map(int, weights)])

    def weight_below(self, eta: int) -> Fraction:
        """Return Σ_{x < η} f(x), not normalised.

        Args:
            eta: The value η of the noise, any integer.
        """
        if eta > self.last:
            last_block = self.weights[-self.period :]
            return self.total - self._tail_weight(last_block, eta - 1 - self.last)
        inner_sum = sum(self.weights[: max(0, eta - self.first)])
        first_block = self.weights[: self.period][::-1]
        return inner_sum + self._tail_weight(first_block, max(0, self.first - eta))

    def _tail_weight(self, block: Sequence[int], skipped_count: int) -> Fraction:
        """Return the weight of a tail without the outcomes that are nearest to 0.

        Args:
            block: The weights that the tail repeats, in outward order. Length `period`.
            skipped_count: The number of outcomes that are left out.
        """
        # The tail is ratio^b times the block, for b = 1, 2, ... Whole periods and the beginning of
        # another one are left out.
        period_count, remainder = divmod(skipped_count, self.period)
        weight_before_scaling = sum(block) / (1 - self.ratio) - sum(block[:remainder])
        return self.ratio ** (period_count + 1) * weight_before_scaling

    def mean(
        self,
        loss: Callable[[int], Fraction | int],
        tail_terms: Rationals = (),
        left_tail_terms: Rationals = (),
    ) -> Fraction:
        """Compute the expected loss, the mean of loss(η), exactly.

        Args:
            loss: Maps an integer η to its loss. It is called for the explicit weights only.
            tail_terms: Coefficients of 1, |η|, |η|² of the loss in the tails; empty for a law
                without tails.
            left_tail_terms: The coefficients in the left tail; empty where they are those of the
                right tail.

        Returns:
            The mean.

        Raises:
            InvalidRequest: If the law has tails and no tail terms are given, or if a tail reaches
                0.
        """
        total: Fraction | int = ZERO
        for i, weight in enumerate(self.weights):
            if i % ITEMS_PER_CLOCK_CHECK == 0:
                check_time_limit()
            if weight:
                total += weight * loss(self.first + i)
        if self.ratio:
            if not tail_terms:
                must("loss", "known beyond the weights of a law with tails", "a list")
            last_block = self.weights[: -self.period - 1 : -1]  # From the last weight inwards.
            first_block = self.weights[: self.period]
            right_block = [(weight, self.last - k) for k, weight in enumerate(last_block)]
            left_block = [(weight, -self.first - k) for k, weight in enumerate(first_block)]
            tails = ((right_block, tail_terms), (left_block, left_tail_terms or tail_terms))
            for block, terms in tails:
                # In the first repetition every distance grows by one period. It must then be > 0,
                # or the tail would contain 0 and its distance would not be |η|.
                if min(distance for _, distance in block) < 1 - self.period:
                    must("first", "far enough from 0 for its tails", self.first)
                total += self._sum_tail_losses(block, terms)
        return total / self.total

    def _sum_tail_losses(self, block: Sequence[Pair], terms: Rationals) -> Fraction:
        """Return Σ f(η) loss(η) over one tail, not normalised.

        It is Σ_{b >= 1} ratio^b Σ_{k <= 2} terms_k Σ w (a + b period)^k, where the innermost sum is
        over the pairs (w, a) of one period.

        Args:
            block: Pairs (w, a) of a weight that the tail repeats and its distance from 0.
            terms: The coefficients of 1, |η|, |η|² of the loss.
        """
        r = self.ratio
        period = self.period
        # The sums over the periods b >= 1 of r^b, b period r^b and (b period)² r^b.
        constant = r / (1 - r)
        linear = period * r / (1 - r) ** 2
        square = period * period * r * (1 + r) / (1 - r) ** 3
        s0, s1, s2 = (sum(w * a**k for w, a in block) for k in range(3))
        moments = (
            s0 * constant,
            s1 * constant + s0 * linear,
            s2 * constant + 2 * s1 * linear + s0 * square,
        )
        return sum((c * moment for c, moment in zip(terms, moments, strict=False)), ZERO)

    def draw(self, count: int, source: Source) -> Integers:
        """Draw independent η, exactly distributed. Shape (count,).

        First each draw selects an explicit weight or a tail. In a tail, the number of periods from
        the last weights is then drawn by trials that continue with probability `ratio`.

        Args:
            count: The number of draws, >= 0.
            source: The source of randomness.
        """
        left_sum, right_sum = self.end_sums
        tail_factor = self.ratio / (1 - self.ratio)
        weights = [tail_factor * left_sum, *self.weights, tail_factor * right_sum]
        outcomes = Sampler(Distribution(weights), source).draw(count)
        draws = outcomes + (self.first - 1)
        left_tail_outcome = 0
        right_tail_outcome = len(self.weights) + 1
        # Outcome, first integer of the repeated period, and direction of each tail.
        tails = (
            (left_tail_outcome, self.first, -1),
            (right_tail_outcome, self.last + 1 - self.period, 1),
        )
        for tail_outcome, block_start, direction in tails:
            in_tail = np.flatnonzero(outcomes == tail_outcome)
            if not in_tail.size:
                continue
            steps = np.ones(in_tail.size, dtype=np.int64)  # A tail begins one period outwards.
            running = np.arange(in_tail.size)
            while running.size:
                goes_on = source.draw_bernoulli(
                    self.ratio.numerator, self.ratio.denominator, running.size
                )
                running = running[goes_on]
                steps[running] += 1
            block = self.weights[block_start - self.first :][: self.period]
            place = Sampler(Distribution(block), source).draw(in_tail.size)
            draws[in_tail] = block_start + place + direction * steps * self.period
        return draws

    def cover(self, low: int, high: int) -> IntegerLaw:
        """Return the same law with explicit weights that reach at least from low to high.

        Args:
            low, high: Integers.
        """
        periods_left = -(-max(0, self.first - low) // self.period)
        periods_right = -(-max(0, high - self.last) // self.period)
        first = self.first - periods_left * self.period
        last = self.last + periods_right * self.period
        weights = self.weights_between(first, last)
        return IntegerLaw(first, weights, period=self.period, ratio=self.ratio)

    @property
    def floats(self) -> Vector:
        """Return f(first..last) as floats. Shape (m,)."""
        return np.array([float(weight / self.total) for weight in map(Fraction, self.weights)])

    def floats_with_tails(self, share: float, max_count: int) -> tuple[int, Vector]:
        """Return f as floats together with its tails, for a picture.

        Args:
            share: A tail ends where a period of it has fallen to this share of the last period of
                the weights.
            max_count: The largest number of values of one tail.

        Returns:
            The first integer, and the masses from there on, shape (m + 2 tail values,).
        """
        masses = self.floats
        ratio = float(self.ratio)
        if not ratio:
            return self.first, masses
        visible_periods = math.ceil(math.log(share) / math.log(ratio))
        count = min(max_count, self.period * visible_periods)
        distance = np.arange(count)
        # A tail repeats the period beside it outwards, on the left in reverse order.
        fall = ratio ** (1 + distance // self.period)
        right = masses[-self.period :][distance % self.period] * fall
        left = masses[: self.period][::-1][distance % self.period] * fall
        return self.first - count, np.concatenate([left[::-1], masses, right])
