"""From a solver's channel to an exactly private one near it, in integers.

    raised      the least K' >= K with K'[y,o] <= E K'[y',o] for all neighbours: ratios hold, rows grow by what lacked
    equalised   rows of one sum: what a row lacks, S - Σ_o K'[y,o], goes to the one output that costs least for all,
                where S is large enough that these amounts keep the ratios as well
    mixed       with δ > 0: (1-θ) M + θ C with C the raised and equalised M, for the least θ: hockey sticks are convex,
                and those of C are 0, so θ = max over pairs of 1 - δ/h is enough

E is e^ε rounded down; the exact audit of the result decides, not this module. Unlike mixing with one common row, this
costs what the solver's own rounding is worth: about 1e-12 of the loss.
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

Prior = Sequence[Fraction] | None  # of the inputs; None for the worst one

_ROW_SUM_BITS = 96  # of a row's sum
_MIXTURE_BITS = 64  # bits of θ
_RATIO_BITS = 112  # Ratios e^ε are rounded down to multiples of 2^-112.


@dataclass(frozen=True)
class Edges:
    """Ordered pairs y -> y' and the ε of each; pairs None: all pairs, under one ε."""

    pairs: Sequence[Pair] | None
    epsilons: Sequence[Fraction]

    @classmethod
    def from_groups(
        cls,
        pairs: Sequence[Pair] | None,
        groups: Sequence[int],
        epsilons: Sequence[Fraction],
        directed: bool = False,
    ) -> Edges:
        """Both orders of pairs, unless directed, group by group, as `workbench.models.channel.program` states them.
        groups: of the pairs, which of the epsilons each takes."""
        if pairs is None:
            return cls(None, epsilons)
        each: list[Pair] = []
        of: list[Fraction] = []
        for group, epsilon in enumerate(epsilons):
            own = [pair for pair, at in zip(pairs, groups, strict=True) if at == group]
            each += own if directed else [*own, *((j, i) for i, j in own)]
            of += [epsilon] * (len(each) - len(of))
        return cls(each, of)

    @cached_property
    def thresholds(self) -> list[int]:
        """e^ε over 2^112 of every pair, rounded down."""
        known = {epsilon: exp_bounds(epsilon, _RATIO_BITS)[0] for epsilon in set(self.epsilons)}
        return [known[epsilon] for epsilon in self.epsilons]

    def list_pairs(self, k: int) -> list[tuple[int, int, int]]:
        """Every ordered pair of k inputs with its threshold."""
        if self.pairs is None:
            return [(i, j, self.thresholds[0]) for i in range(k) for j in range(k) if i != j]
        return [(i, j, e) for (i, j), e in zip(self.pairs, self.thresholds, strict=True)]


def round_to_integers(rows: Vector) -> Integers:
    """Rows over 2^96, each of that sum: what rounding leaves goes to the heaviest output. Shape (k, m)."""
    unit = 1 << _ROW_SUM_BITS
    integers = np.empty(rows.shape, dtype=object)
    rows = np.maximum(rows, 0.0)
    for y, law in enumerate(Distribution.read_rows(rows, "a row of the channel")):
        integers[y] = [(value << _ROW_SUM_BITS) // law.total for value in law.integers]
        integers[y, int(np.argmax(rows[y]))] += unit - sum(integers[y])
    return integers


def _raise_ratios(K: Integers, edges: Edges, free: Flags | None = None) -> Integers:
    """free: (pairs, m) where the ratio may be broken."""
    K = K.copy()
    pairs = edges.pairs
    if pairs is None:
        return np.asarray(np.maximum(K, -((-K.max(axis=0) << _RATIO_BITS) // edges.thresholds[0])))
    order = sorted(range(len(pairs)), key=pairs.__getitem__)
    changed, back = True, False
    while changed:
        changed = False
        for p in reversed(order) if back else order:
            i, j = pairs[p]
            least = -((-K[i] << _RATIO_BITS) // edges.thresholds[p])
            if free is not None:
                least = np.where(free[p], 0, least)
            up = np.maximum(K[j], least)
            if (up != K[j]).any():
                K[j], changed = up, True
        back = not back
    return K


def _equalise_rows(K: Integers, edges: Edges, output: int) -> Integers:
    sums = [int(row.sum()) for row in K]
    top, low = max(sums), min(sums)
    whole = top
    if top > low:
        every = (
            [(top, low, edges.thresholds[0])]
            if edges.pairs is None
            else [(sums[j], sums[i], e) for i, j, e in edges.list_pairs(len(K))]
        )
        for there, here, e in every:  # S - here <= E (S - there)
            whole = max(
                whole, -(-(e * there - (here << _RATIO_BITS)) // (e - (1 << _RATIO_BITS))) + 1
            )
    K = K.copy()
    for y, total in enumerate(sums):
        K[y, output] += whole - total
    return K


def repair_integer_rows(
    K: Integers, edges: Edges, delta: Fraction, output: int, free: Flags | None = None
) -> Integers:
    """Rows of one sum that meet the ratios, or the hockey sticks with δ > 0, near K (rows of one sum).

    free: (pairs, m) with the mass above the ratio bounded by δ: where it may be broken.
    """
    if free is not None or not delta:
        return _equalise_rows(_raise_ratios(K, edges, free), edges, output)
    total = int(K[0].sum())
    allowed, most = delta * total, Fraction(0)
    for position, (i, j, e) in enumerate(edges.list_pairs(len(K))):
        if position % ITEMS_PER_CLOCK_CHECK == 0:
            check_time_limit()
        over = (K[i] << _RATIO_BITS) - e * K[j]
        stick = Fraction(int(over[over > 0].sum()), 1 << _RATIO_BITS)
        if stick > allowed:
            most = max(most, 1 - allowed / stick)
    if not most:
        return K
    centre = _equalise_rows(_raise_ratios(K, edges), edges, output)
    share = -(-(most.numerator << _MIXTURE_BITS) // most.denominator)
    return np.asarray(
        ((1 << _MIXTURE_BITS) - share) * K * int(centre[0].sum()) + share * centre * total
    )


def compute_integer_loss(K: Integers, losses: LossTable, prior: Prior) -> Fraction:
    """Σ p ℓ K, or the largest Σ_o ℓ K where prior is None, of rows of one sum; exact."""
    each = [
        Fraction(int((row * loss).sum()), int(row.sum()) * losses.unit)
        for row, loss in zip(K, losses.values, strict=True)
    ]
    return (
        max(each)
        if prior is None
        else sum((p * v for p, v in zip(prior, each, strict=True) if p), Fraction(0))
    )


def compute_channel_loss(channel: Channel, losses: LossTable, prior: Prior) -> Fraction:
    """`loss_of` the rows of a channel."""
    return compute_integer_loss(
        np.array([row.integers for row in channel.rows], dtype=object), losses, prior
    )


def find_best_constant_output(losses: LossTable, prior: Prior) -> int:
    """The one output to publish for every input that costs least."""
    if prior is None:
        return int(np.argmin(losses.floats.max(axis=0)))
    table = np.minimum(
        losses.floats, np.finfo(float).max / len(prior)
    )  # where infinite, prior 0 counts as 0
    return int(np.argmin(np.array([float(p) for p in prior]) @ table))


def mix_within_max_loss(K: Integers, losses: LossTable, prior: Prior, budget: Fraction) -> Integers:
    """K, or the least mixture of it with every input's own best output that costs no more than max_loss."""
    loss = compute_integer_loss(K, losses, prior)
    if loss <= budget:
        return K
    best = np.zeros(K.shape, dtype=object)
    best[np.arange(len(K)), losses.values.argmin(axis=1)] = int(K[0].sum())
    floor = compute_integer_loss(best, losses, prior)
    if floor >= budget:
        return best
    share = min(Fraction(1), (loss - budget) / (loss - floor))
    top = -(-(share.numerator << _MIXTURE_BITS) // share.denominator)
    return np.asarray(((1 << _MIXTURE_BITS) - top) * K + top * best)
