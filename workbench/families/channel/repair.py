"""Make a solver's channel exactly private, in integers.

Notation: K[y,o] is the mass of output o for input y, an integer; all rows of K have one sum. E is
e^ε rounded down. The repaired channel is close to the solver's channel. There are three steps:

    raise       replace K by the smallest K' >= K with K'[y,o] <= E K'[y',o] for all ordered pairs
                of neighbours (y, y'). Now the ratios hold, but some row sums have increased
    equalise    give all rows one sum S: row y gets S - Σ_o K'[y,o] more at one output, the same for
                all inputs (the best constant output). S is so large that the ratios hold there too
    mix         with δ > 0 only: return (1-θ) K + θ C instead, where C is the result of the first
                two steps, scaled to the row sum of K. Let h be the hockey stick of a pair under
                K. Hockey sticks are convex and those of C are 0, so that of the mixture is at most
                (1-θ) h. The smallest θ with (1-θ) h <= δ for all pairs is used

The exact audit of the result decides whether it is private, not this module. Unlike mixing with one
common row, the repair changes the loss only by the size of the solver's rounding: about 1e-12 of
the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from workbench.exact.distribution import Distribution
from workbench.exact.numbers import exp_bounds
from workbench.exact.objects import Pair
from workbench.exact.time_limit import ITEMS_PER_CLOCK_CHECK, check_time_limit
from workbench.mechanisms.channel import Channel
from workbench.pipeline.loss_tables import Integers, LossTable
from workbench.solvers.arrays import Flags, Vector

# The prior of the inputs. None: the worst-case loss counts.
Prior = Sequence[Fraction] | None

# Rows in integers have the sum 2^96.
_ROW_SUM_BITS = 96
# The share θ of a mixture is rounded up to a multiple of 2^-64.
_MIXTURE_BITS = 64
# Ratios e^ε are rounded down to multiples of 2^-112.
_RATIO_BITS = 112


@dataclass(frozen=True)
class Edges:
    """The ordered pairs of neighbours, and the ε of each pair.

    Attributes:
        pairs: ordered pairs (y, y') of inputs: K[y,o] <= e^ε K[y',o] for every output o. None: all
            ordered pairs.
        epsilons: one ε for each pair. If `pairs` is None, a single ε for all.
    """

    pairs: Sequence[Pair] | None
    epsilons: Sequence[Fraction]

    @classmethod
    def from_groups(
        cls,
        pairs: Sequence[Pair] | None,
        groups: Sequence[int],
        epsilons: Sequence[Fraction],
        is_directed: bool = False,
    ) -> Edges:
        """Order pairs as `workbench.models.channel.program` does: group by group, and then
        reversed.

        Args:
            pairs: pairs of neighbours, each in one order. None: all pairs.
            groups: for each pair, the position of its ε in `epsilons`.
            epsilons: the different values of ε.
            is_directed: whether the given order of each pair is the only one.
        """
        if pairs is None:
            return cls(None, epsilons)
        ordered_pairs: list[Pair] = []
        pair_epsilons: list[Fraction] = []
        for group, epsilon in enumerate(epsilons):
            members = [pair for pair, index in zip(pairs, groups, strict=True) if index == group]
            ordered_pairs += members
            if not is_directed:
                ordered_pairs += [(j, i) for i, j in members]
            pair_epsilons += [epsilon] * (len(ordered_pairs) - len(pair_epsilons))
        return cls(ordered_pairs, pair_epsilons)

    @cached_property
    def thresholds(self) -> list[int]:
        """Return the integer e^ε 2^112, rounded down, for every pair."""
        ratios = {}
        for epsilon in set(self.epsilons):
            ratios[epsilon], _ = exp_bounds(epsilon, _RATIO_BITS)
        return [ratios[epsilon] for epsilon in self.epsilons]

    def list_pairs(self, k: int) -> list[tuple[int, int, int]]:
        """List every ordered pair with its threshold, as (y, y', threshold).

        Args:
            k: number of inputs.
        """
        if self.pairs is None:
            threshold = self.thresholds[0]
            return [(i, j, threshold) for i in range(k) for j in range(k) if i != j]
        pairs_with_thresholds = zip(self.pairs, self.thresholds, strict=True)
        return [(i, j, threshold) for (i, j), threshold in pairs_with_thresholds]


def round_to_integers(rows: Vector) -> Integers:
    """Round a channel to integers over 2^96.

    Args:
        rows: masses in floats, shape (k, m). Negative ones count as 0.

    Returns:
        Integers of shape (k, m). Every row has the sum 2^96; the largest mass takes what rounding
        leaves.
    """
    unit = 1 << _ROW_SUM_BITS
    integers = np.empty(rows.shape, dtype=object)
    rows = np.maximum(rows, 0.0)
    for y, law in enumerate(Distribution.read_rows(rows, "a row of the channel")):
        integers[y] = [(value << _ROW_SUM_BITS) // law.total for value in law.integers]
        integers[y, int(np.argmax(rows[y]))] += unit - sum(integers[y])
    return integers


def _raise_ratios(K: Integers, edges: Edges, is_exempt: Flags | None = None) -> Integers:
    """Raise masses as little as possible until all ratios hold (step "raise" of the header).

    is_exempt: where the ratio may be violated, shape (pairs, m). None: nowhere.
    """
    K = K.copy()
    pairs = edges.pairs
    if pairs is None:
        # Every mass must be at least the largest mass of its output divided by E, rounded up.
        smallest_allowed = -((-K.max(axis=0) << _RATIO_BITS) // edges.thresholds[0])
        return np.asarray(np.maximum(K, smallest_allowed))
    order = sorted(range(len(pairs)), key=pairs.__getitem__)
    is_changed = True
    while is_changed:
        is_changed = False
        for index in order:
            i, j = pairs[index]
            minimum = -((-K[i] << _RATIO_BITS) // edges.thresholds[index])
            if is_exempt is not None:
                minimum = np.where(is_exempt[index], 0, minimum)
            raised_row = np.maximum(K[j], minimum)
            if (raised_row != K[j]).any():
                K[j] = raised_row
                is_changed = True
        # Alternating the direction propagates changes along a line in two passes.
        order.reverse()
    return K


def _equalise_rows(K: Integers, edges: Edges, output: int) -> Integers:
    """Add to one output of every row until all rows have one sum, so large that the ratios hold at
    this output (step "equalise" of the header).
    """
    sums = [int(row.sum()) for row in K]
    largest_sum = max(sums)
    smallest_sum = min(sums)
    common_sum = largest_sum
    if largest_sum > smallest_sum:
        comparisons = [(largest_sum, smallest_sum, edges.thresholds[0])]
        if edges.pairs is not None:
            comparisons = [
                (sums[j], sums[i], threshold) for i, j, threshold in edges.list_pairs(len(K))
            ]
        for other_sum, row_sum, threshold in comparisons:
            # The sum S satisfies S - row_sum <= E (S - other_sum), with E = threshold/2^112.
            # Solved for S and rounded up, with 1 more as a margin.
            numerator = threshold * other_sum - (row_sum << _RATIO_BITS)
            minimum = -(-numerator // (threshold - (1 << _RATIO_BITS))) + 1
            common_sum = max(common_sum, minimum)
    K = K.copy()
    for y, row_sum in enumerate(sums):
        K[y, output] += common_sum - row_sum
    return K


def repair_integer_rows(
    K: Integers, edges: Edges, delta: Fraction, output: int, is_exempt: Flags | None = None
) -> Integers:
    """Return a private channel near a given one.

    Args:
        K: channel in integers, all rows of one sum, shape (k, m).
        edges: ordered pairs of neighbours with their ε.
        delta: δ of the hockey sticks. If it is 0, all ratios hold. It is not used with `is_exempt`.
        output: output that is added to where rows need more mass.
        is_exempt: whether the ratio of a pair may be violated at an output, as PDP allows, shape
            (pairs, m). None: nowhere.

    Returns:
        Integers of shape (k, m), all rows of one sum.
    """
    if is_exempt is not None or not delta:
        return _equalise_rows(_raise_ratios(K, edges, is_exempt), edges, output)
    # The share θ of step "mix" of the header.
    total = int(K[0].sum())
    allowance = delta * total
    smallest_share = Fraction(0)
    for position, (i, j, threshold) in enumerate(edges.list_pairs(len(K))):
        if position % ITEMS_PER_CLOCK_CHECK == 0:
            check_time_limit()
        excess = (K[i] << _RATIO_BITS) - threshold * K[j]
        hockey_stick = Fraction(int(excess[excess > 0].sum()), 1 << _RATIO_BITS)
        if hockey_stick > allowance:
            smallest_share = max(smallest_share, 1 - allowance / hockey_stick)
    if not smallest_share:
        return K
    pure_rows = _equalise_rows(_raise_ratios(K, edges), edges, output)
    share = -(-(smallest_share.numerator << _MIXTURE_BITS) // smallest_share.denominator)
    # Each part is multiplied by the row sum of the other one, so that both have one sum.
    original_part = ((1 << _MIXTURE_BITS) - share) * K * int(pure_rows[0].sum())
    return np.asarray(original_part + share * pure_rows * total)


def compute_integer_loss(K: Integers, losses: LossTable, prior: Prior) -> Fraction:
    """Compute the exact loss of a channel in integers.

    Args:
        K: channel, shape (k, m). Every row is divided by its sum.
        losses: table of losses, shape (k, m).
        prior: prior of the inputs. None: the largest expected loss of an input is returned.
    """
    row_losses = []
    for row, loss in zip(K, losses.values, strict=True):
        row_losses.append(Fraction(int((row * loss).sum()), int(row.sum()) * losses.unit))
    if prior is None:
        return max(row_losses)
    return sum((p * value for p, value in zip(prior, row_losses, strict=True) if p), Fraction(0))


def compute_channel_loss(channel: Channel, losses: LossTable, prior: Prior) -> Fraction:
    """Compute the exact loss of a channel.

    Args:
        channel: channel with k inputs and m outputs.
        losses: table of losses, shape (k, m).
        prior: prior of the inputs. None: the largest expected loss of an input is returned.
    """
    rows = np.array([row.integers for row in channel.rows], dtype=object)
    return compute_integer_loss(rows, losses, prior)


def find_best_constant_output(losses: LossTable, prior: Prior) -> int:
    """Return the index of the output with the smallest loss if it is published for every input.

    Args:
        losses: table of losses, shape (k, m).
        prior: prior of the inputs. None: the worst-case loss counts.
    """
    if prior is None:
        return int(np.argmin(losses.floats.max(axis=0)))
    # A finite limit makes infinite losses count as 0 at inputs of prior 0.
    table = np.minimum(losses.floats, np.finfo(float).max / len(prior))
    return int(np.argmin(np.array([float(p) for p in prior]) @ table))


def mix_within_max_loss(
    K: Integers, losses: LossTable, prior: Prior, max_loss: Fraction
) -> Integers:
    """Mix a channel with the best output of every input, so that its loss is at most a limit.

    It is used instead of `repair_integer_rows` if a request limits the loss and asks for the
    smallest budget. The audit then computes the budget of the mixture.

    Args:
        K: channel in integers, all rows of one sum, shape (k, m).
        losses: table of losses, shape (k, m).
        prior: prior of the inputs. None: the worst-case loss counts.
        max_loss: largest loss allowed.

    Returns:
        K itself if its loss is small enough, else the mixture with the smallest share of the best
        outputs.
    """
    loss = compute_integer_loss(K, losses, prior)
    if loss <= max_loss:
        return K
    # This channel publishes the best output of every input, so no channel has a smaller loss.
    best_outputs = np.zeros(K.shape, dtype=object)
    best_outputs[np.arange(len(K)), losses.values.argmin(axis=1)] = int(K[0].sum())
    floor = compute_integer_loss(best_outputs, losses, prior)
    if floor >= max_loss:
        return best_outputs
    exact_share = min(Fraction(1), (loss - max_loss) / (loss - floor))
    share = -(-(exact_share.numerator << _MIXTURE_BITS) // exact_share.denominator)
    return np.asarray(((1 << _MIXTURE_BITS) - share) * K + share * best_outputs)
