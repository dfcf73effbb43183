"""Repair of channels and quantizers: mix them, as little as it takes, with a centre that is strictly private.

A row is a law on m outputs; every row is mixed with its own row of a centre R, M' = (1-θ) M + θ R, for the least
θ = 2^-j that the exact audit accepts.

    without a mean to keep   R = the average row for everybody: identical rows are perfectly private
    unbiased, E[o|y] = y     R_y = (1-α) T_y + α r with r the average row and T_y on the two outermost outputs, its mean
                             chosen so that R_y has mean y: exactly unbiased, and strictly private for some α whenever
                             an unbiased mechanism with room to spare exists on these outputs

Rows are first made exactly unbiased by moving mass between two outputs, so E[o|y] = y holds in rationals before and
after. What an unbiased repair cannot reach is refused, or (allow_bias) mixed with the average row, its bias stated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from workbench.errors import NotCertified
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.masses import Masses
from workbench.mechanisms.piecewise import mean

__all__ = ["repair_rows"]

Rows = list[list[Fraction]]


def repair_rows(
    channel: Channel,
    private: Callable[[Channel], bool],
    *,
    outputs: Sequence[Fraction] | None = None,
    means: Sequence[Fraction] | None = None,
    allow_bias: bool = False,
) -> tuple[Channel, Fraction]:
    """The channel, or the nearest mixture of it that `private` accepts, and the share θ that was mixed in.

    means: what every row's mean of `outputs` (m,) must be exactly. allow_bias: give that up rather than refuse.

    Raises:
        NotCertified: no mixture is accepted; with `means`, or rows cannot be made exactly unbiased.
    """
    start = channel
    why = "no mixture with a common row is private"
    if means is not None and outputs is not None:
        try:
            start = Channel(tuple(_with_mean(row, outputs, y) for row, y in zip(channel.rows, means, strict=True)))
        except NotCertified:
            if not allow_bias:
                raise
            means = None
    if private(start):
        return start, Fraction(0)
    rows = [[row[i] for i in range(len(row))] for row in start.rows]
    if means is not None and outputs is not None:
        for centre in _unbiased_centres(rows, outputs, means):
            if private(Channel.from_rows(centre)):
                return _mixed(rows, centre, private)
        why = "these outputs leave no room for an unbiased private mechanism with every output in use"
        if not allow_bias:
            raise NotCertified(f"The channel is not private, and {why}.")
    common = _average(rows)
    centre = [common] * len(rows)
    if not private(Channel.from_rows(centre)):
        raise NotCertified("The channel is not private, and neither is one that ignores its input.")
    return _mixed(rows, centre, private)


def _mixed(rows: Rows, centre: Rows, private: Callable[[Channel], bool]) -> tuple[Channel, Fraction]:
    """The mixture of least share θ that is private, to 1/64 of θ: its power of two first. θ = 1 is known to be."""

    def at(share: Fraction) -> Channel | None:
        made = Channel.from_rows(
            [
                [(1 - share) * a + share * b for a, b in zip(*both, strict=True)]
                for both in zip(rows, centre, strict=True)
            ]
        )
        return made if private(made) else None

    enough, less = 0, 96  # θ = 2^-enough is private, 2^-less is not
    while less - enough > 1:
        middle = (enough + less) // 2
        enough, less = (enough, middle) if at(Fraction(1, 1 << middle)) is None else (middle, less)
    high, low = Fraction(1, 1 << enough), Fraction(1, 2 << enough)
    for _ in range(6):
        middle_share = (low + high) / 2
        low, high = (middle_share, high) if at(middle_share) is None else (low, middle_share)
    best = at(high)
    if best is None:
        raise NotCertified("The exact audit refuses the repaired channel.")
    return best, high


def _average(rows: Rows) -> list[Fraction]:
    """The average row, rounded to 2^-64 so that mixtures stay short, with at least about 2^-20 on every output in use.

    A solver leaves specks of 1e-17 on outputs it does not use. A centre as small as they are there would have to be
    mixed in at a share near 1, as the largest of them is e^ε times what a pure mechanism allows beside nothing.
    """
    count, width = len(rows), len(rows[0])
    sums = [sum((row[i] for row in rows), Fraction(0)) / count for i in range(width)]
    units = [max(1 << 44, round(value * (1 << 64))) if value else 0 for value in sums]
    return [Fraction(unit, sum(units)) for unit in units]


def _unbiased_centres(rows: Rows, outputs: Sequence[Fraction], means: Sequence[Fraction]) -> Iterator[Rows]:
    """Exactly unbiased channels that use every output: two outermost outputs, and a share α of the average row."""
    lowest, highest = min(outputs), max(outputs)
    left, right = outputs.index(lowest), outputs.index(highest)
    if lowest == highest:
        return
    common = _average(rows)
    middle = sum((p * o for p, o in zip(common, outputs, strict=True)), Fraction(0))
    for power in (1, 2, 3, 4, 6, 8, 12, 16):
        alpha = Fraction(1, 1 << power)
        centre = []
        for y in means:
            up = ((y - alpha * middle) / (1 - alpha) - lowest) / (highest - lowest)
            if not 0 < up < 1:
                break
            row = [alpha * p for p in common]
            row[left] += (1 - alpha) * (1 - up)
            row[right] += (1 - alpha) * up
            centre.append(row)
        if len(centre) == len(means):
            yield centre


def _with_mean(row: Masses, outputs: Sequence[Fraction], y: Fraction) -> Masses:
    """The row with mean exactly y: mass moves between its two heaviest outputs of different value."""
    miss = y - mean(row, outputs)
    if not miss:
        return row
    heavy = sorted(range(len(row)), key=lambda i: -row.integers[i])
    a = heavy[0]
    for b in heavy[1:]:
        if outputs[b] != outputs[a]:
            move = miss / (outputs[b] - outputs[a])  # from a to b
            moved = [row[i] + (move if i == b else -move if i == a else 0) for i in range(len(row))]
            if min(moved) >= 0:
                return Masses(moved, "a row of the channel")
    raise NotCertified(f"A row cannot be given the mean {float(y):g} exactly: it misses it by {float(miss):.3g}.")
