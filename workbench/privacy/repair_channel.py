"""Repair of channels and quantizers: mix them, as little as it takes, with a centre that is strictly private.

A row is a law on m outputs; every row is mixed with its own row of a centre R, M' = (1-θ) M + θ R, for the least
θ = 2^-j that the exact audit accepts.

    without a mean to keep   R = the average row for everybody: identical rows are perfectly private
    unbiased, E[o|y] = y     R_y = (1-α) T_y + α r with r the average row and T_y on the two outermost outputs, its mean
                             chosen so that R_y has mean y: exactly unbiased, and strictly private for some α whenever
                             an unbiased mechanism with room to spare exists on these outputs; where the average row's
                             mass would push T_y beyond them, r is uniform over the outputs and α small

Rows are first made exactly unbiased by moving mass between two outputs, so E[o|y] = y holds in rationals before and
after. What an unbiased repair cannot reach is refused, or (allow_bias) mixed with the average row, its bias stated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from workbench.errors import NotCertified
from workbench.exact.distribution import Distribution, to_common_denominator
from workbench.privacy.repair import find_least_share

Rows = list[list[Fraction]]


class _HasRows(Protocol):
    @property
    def rows(self) -> Sequence[Distribution]: ...

    def with_rows(self, rows: Sequence[Distribution]) -> Any: ...


Rebuilt = TypeVar(
    "Rebuilt", bound=_HasRows
)  # a channel, or a law affine in real inputs, whose rows are its end laws


def repair_rows(
    mechanism: Rebuilt,
    private: Callable[[Rebuilt], bool],
    unbiased: tuple[Sequence[Fraction], Sequence[Fraction]] | None,
    *,
    allow_bias: bool = False,
) -> tuple[Rebuilt, Fraction]:
    """The mechanism, or the nearest mixture of it that `private` accepts, and the share θ that was mixed in.

    unbiased: (values of the outputs (m,), what every row's mean of them must be exactly), where that is to be kept;
    allow_bias: give it up rather than refuse.

    Raises:
        NotCertified: no mixture is accepted; where means are kept, or rows cannot be made exactly unbiased.
    """
    start = mechanism
    if unbiased is not None:
        try:
            whole, scale = to_common_denominator(unbiased[0])
            start = mechanism.with_rows([
                _correct_mean(row, unbiased[0], y, y - row.mean_of_integers(whole, scale))
                for row, y in zip(mechanism.rows, unbiased[1], strict=True)
            ])  # fmt: skip
        except NotCertified:
            if not allow_bias:
                raise
            unbiased = None
    if private(start):
        return start, Fraction(0)
    if unbiased is not None:
        for centre in _iter_unbiased_centres(start.rows, *unbiased):
            with suppress(NotCertified):
                return _mix_with_centre(mechanism, start.rows, centre, private)
        if not allow_bias:
            raise NotCertified(
                "The channel is not private, and these outputs leave no room for an unbiased private mechanism with "
                "every output in use."
            )
    return _mix_with_centre(
        mechanism, start.rows, [_average_row(start.rows)] * len(start.rows), private
    )


def _mix_with_centre(
    mechanism: Rebuilt,
    rows: Sequence[Distribution],
    centre: Rows,
    private: Callable[[Rebuilt], bool],
) -> tuple[Rebuilt, Fraction]:
    """The mixture of least share θ that is private, to 1/64 of θ. Raises NotCertified."""
    ends = [(row, Distribution(other)) for row, other in zip(rows, centre, strict=True)]

    def at(share: Fraction) -> Rebuilt | None:
        top, whole = share.numerator, share.denominator
        mixtures = []
        for a, b in ends:  # in integers: (1-θ) k/K + θ l/L is (1-θ) L k + θ K l, up to a factor
            left, right = (whole - top) * b.total, top * a.total
            weights = [left * k + right * l for k, l in zip(a.integers, b.integers, strict=True)]
            mixtures.append(Distribution.from_integers(weights))
        mixed = mechanism.with_rows(mixtures)
        return mixed if private(mixed) else None

    return find_least_share(at, 96, 6)


def _average_row(rows: Sequence[Distribution]) -> list[Fraction]:
    """The average row, rounded to 2^-64 so that mixtures stay short, with at least about 2^-20 on every output in use.

    A solver leaves specks of 1e-17 on outputs it does not use. A centre as small as they are there would have to be
    mixed in at a share near 1, as the largest of them is e^ε times what a pure mechanism allows beside nothing.
    """
    count, width = len(rows), len(rows[0])
    # exact sums of fractions without a common denominator grow too long; 2^-96 is finer than what is kept
    sums = [sum((row.integers[i] << 96) // row.total for row in rows) for i in range(width)]
    used = [any(row.integers[i] for row in rows) for i in range(width)]
    units = [
        max(1 << 44, value // count >> 32) if use else 0
        for value, use in zip(sums, used, strict=True)
    ]
    return [Fraction(unit, sum(units)) for unit in units]


def _iter_unbiased_centres(
    rows: Sequence[Distribution], outputs: Sequence[Fraction], means: Sequence[Fraction]
) -> Iterator[Rows]:
    """Exactly unbiased channels that use every output: two outermost outputs, and a share α of the average row."""
    lowest, highest = min(outputs), max(outputs)
    left, right = outputs.index(lowest), outputs.index(highest)
    if lowest == highest:
        return
    average = _average_row(rows)
    uniform = [Fraction(1, len(outputs))] * len(outputs)
    tries = [(average, power) for power in (1, 2, 3, 4, 6, 8, 12, 16)]
    for common, power in tries + [(uniform, power) for power in (12, 16, 20, 24, 28, 32, 40, 48)]:
        middle = Distribution(common).mean(outputs)
        alpha = Fraction(1, 1 << power)
        ups = [((y - alpha * middle) / (1 - alpha) - lowest) / (highest - lowest) for y in means]
        if all(0 < up < 1 for up in ups):
            centre = [[alpha * p for p in common] for _ in ups]
            for row, up in zip(centre, ups, strict=True):
                row[left] += (1 - alpha) * (1 - up)
                row[right] += (1 - alpha) * up
            yield centre


def _correct_mean(
    row: Distribution, outputs: Sequence[Fraction], y: Fraction, miss: Fraction
) -> Distribution:
    """The row with mean exactly y, which it misses: mass moves between its two heaviest outputs of different value."""
    if not miss:
        return row
    a, *lighter = sorted(range(len(row)), key=lambda i: -row.integers[i])
    for b in lighter:
        if outputs[b] != outputs[a]:
            move = miss / (outputs[b] - outputs[a])  # from a to b
            moved = [*row]
            moved[a], moved[b] = moved[a] - move, moved[b] + move
            if min(moved) >= 0:
                return Distribution(moved, "a row of the channel")
    raise NotCertified(
        f"A row cannot be given the mean {float(y):g} exactly: it misses it by {float(miss):.3g}."
    )
