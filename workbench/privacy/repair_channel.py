"""Repair channels and quantizers by mixing them with a strictly private channel, the centre.

Every row M_y of the mechanism M is a law of the output o on m outputs, for one input y. It is mixed
with the row R_y of a centre R: M'_y = (1-θ) M_y + θ R_y, for the smallest share θ that the exact
audit accepts. E[o|y] is the mean of the output for the input y.

    no mean to preserve      R is the average row for every input: identical rows are perfectly
                             private
    unbiased, E[o|y] = y     R_y = (1-α) T_y + α r, with r the average row and T_y on the two
                             outermost outputs, its mean chosen so that R_y has mean y. This R is
                             exactly unbiased. It is strictly private for some α whenever the
                             outputs allow a strictly private unbiased mechanism. If the mass of the
                             average row would push T_y beyond the outputs, r is uniform over the
                             outputs and α is small.

Rows are first made exactly unbiased by moving mass between two outputs, so E[o|y] = y holds in
rational numbers before and after the repair. If no unbiased repair is found, an error is raised.
With allow_bias, the channel is mixed with the average row instead, and its bias is stated.
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

# A mixture that preserves means is tried for α = 2^-power with these powers.
_AVERAGE_POWERS = (1, 2, 3, 4, 6, 8, 12, 16)
_UNIFORM_POWERS = (12, 16, 20, 24, 28, 32, 40, 48)
_MAX_SHARE_EXPONENT = 96  # Shares of the centre above 2^-96 are tried.
_SHARE_HALVINGS = 6  # The share of the centre is then refined to 1/64 of itself.
_SUM_BITS = 96  # Masses are rounded to this many binary digits before they are averaged.
_MIN_CENTRE_UNITS = 1 << 44  # An output in use gets a mass of about 2^-20, in units of 2^-64.


class _HasRows(Protocol):
    """A mechanism given by rows, of which a copy with other rows can be made."""

    @property
    def rows(self) -> Sequence[Distribution]:
        """Return the laws of the rows."""

    def with_rows(self, rows: Sequence[Distribution]) -> Any:
        """Return a copy with other rows."""


# A channel, or a law affine in real inputs, whose rows are its end laws.
Rebuilt = TypeVar("Rebuilt", bound=_HasRows)


def repair_rows(
    mechanism: Rebuilt,
    is_private: Callable[[Rebuilt], bool],
    means: tuple[Sequence[Fraction], Sequence[Fraction]] | None,
    *,
    allow_bias: bool = False,
) -> tuple[Rebuilt, Fraction]:
    """Mix the rows of a mechanism with a private centre until it is private.

    Args:
        mechanism: A channel, or a law affine in real inputs.
        is_private: Decides whether a candidate is private, exactly.
        means: Values of the outputs (m,), and the mean that each row must have exactly. None if no
            means are preserved.
        allow_bias: Whether to give up the means if they cannot be preserved.

    Returns:
        The mechanism or the mixture, and the share θ of the centre.

    Raises:
        NotCertified: No mixture is accepted, or rows cannot be made exactly unbiased.
    """
    start = mechanism
    if means is not None:
        try:
            start = mechanism.with_rows(_correct_means(mechanism.rows, *means))
        except NotCertified:
            if not allow_bias:
                raise
            means = None
    if is_private(start):
        return start, Fraction(0)
    if means is not None:
        for centre in _iter_unbiased_centres(start.rows, *means):
            with suppress(NotCertified):
                return _mix_with_centre(mechanism, start.rows, centre, is_private)
        if not allow_bias:
            raise NotCertified(
                "The channel is not private, and no unbiased private mechanism was found that uses "
                "every one of these outputs."
            )
    centre = [_average_row(start.rows)] * len(start.rows)
    return _mix_with_centre(mechanism, start.rows, centre, is_private)


def _correct_means(
    rows: Sequence[Distribution], outputs: Sequence[Fraction], means: Sequence[Fraction]
) -> list[Distribution]:
    """Return rows with exactly these means. Raises NotCertified."""
    integer_outputs, scale = to_common_denominator(outputs)
    corrected = []
    for row, mean in zip(rows, means, strict=True):
        error = mean - row.mean_of_integers(integer_outputs, scale)
        corrected.append(_correct_mean(row, outputs, mean, error))
    return corrected


def _mix_with_centre(
    mechanism: Rebuilt,
    rows: Sequence[Distribution],
    centre: Rows,
    is_private: Callable[[Rebuilt], bool],
) -> tuple[Rebuilt, Fraction]:
    """Return the private mixture with the smallest share θ, to 1/64 of θ. Raises NotCertified."""
    row_pairs = [(row, Distribution(other)) for row, other in zip(rows, centre, strict=True)]

    def mix(share: Fraction) -> Rebuilt | None:
        """Return the mixture with a share of the centre, or None if it is not private."""
        mixtures = []
        for row, centre_row in row_pairs:
            # (1-θ) k/K + θ l/L is (1-θ) L k + θ K l up to a factor, in integers.
            row_factor = (share.denominator - share.numerator) * centre_row.total
            centre_factor = share.numerator * row.total
            weights = []
            for weight, centre_weight in zip(row.integers, centre_row.integers, strict=True):
                weights.append(row_factor * weight + centre_factor * centre_weight)
            mixtures.append(Distribution.from_integers(weights))
        candidate = mechanism.with_rows(mixtures)
        return candidate if is_private(candidate) else None

    return find_least_share(mix, _MAX_SHARE_EXPONENT, _SHARE_HALVINGS)


def _average_row(rows: Sequence[Distribution]) -> list[Fraction]:
    """Return the average row, with at least about 2^-20 on every output in use.

    It is rounded to 2^-64 so that mixtures stay short. A solver leaves masses such as 1e-17 on
    outputs that it does not use. A centre with equally small masses there would need a share near
    1, because the largest of these masses is e^ε times what a pure mechanism allows beside zero.
    """
    row_count = len(rows)
    width = len(rows[0])
    # Exact sums of fractions without a common denominator grow too long, and 2^-96 is finer than
    # the rounding of the result.
    units = []
    for column in range(width):
        total = sum((row.integers[column] << _SUM_BITS) // row.total for row in rows)
        is_used = any(row.integers[column] for row in rows)
        # The shift by 32 rounds the mean, in units of 2^-96, down to units of 2^-64.
        units.append(max(_MIN_CENTRE_UNITS, total // row_count >> 32) if is_used else 0)
    unit_total = sum(units)
    return [Fraction(unit, unit_total) for unit in units]


def _iter_unbiased_centres(
    rows: Sequence[Distribution], outputs: Sequence[Fraction], means: Sequence[Fraction]
) -> Iterator[Rows]:
    """Yield exactly unbiased channels that use every output.

    Each is a law on the two outermost outputs, mixed with a share α of the average row or of the
    uniform law.
    """
    lowest = min(outputs)
    highest = max(outputs)
    left = outputs.index(lowest)
    right = outputs.index(highest)
    if lowest == highest:
        return
    average = _average_row(rows)
    uniform = [Fraction(1, len(outputs))] * len(outputs)
    candidates = [(average, power) for power in _AVERAGE_POWERS]
    candidates += [(uniform, power) for power in _UNIFORM_POWERS]
    for common_row, power in candidates:
        common_mean = Distribution(common_row).mean(outputs)
        alpha = Fraction(1, 1 << power)
        upper_shares = []
        for mean in means:
            outer_mean = (mean - alpha * common_mean) / (1 - alpha)
            upper_shares.append((outer_mean - lowest) / (highest - lowest))
        if all(0 < share < 1 for share in upper_shares):
            centre = []
            for share in upper_shares:
                row = [alpha * mass for mass in common_row]
                row[left] += (1 - alpha) * (1 - share)
                row[right] += (1 - alpha) * share
                centre.append(row)
            yield centre


def _correct_mean(
    row: Distribution, outputs: Sequence[Fraction], mean: Fraction, error: Fraction
) -> Distribution:
    """Return the row with exactly the given mean, which it misses by `error`.

    Mass moves between the two heaviest outputs with different values. Raises NotCertified.
    """
    if not error:
        return row
    heaviest, *lighter = sorted(range(len(row)), key=lambda index: -row.integers[index])
    for partner in lighter:
        if outputs[partner] != outputs[heaviest]:
            moved_mass = error / (outputs[partner] - outputs[heaviest])
            masses = [*row]
            masses[heaviest] -= moved_mass
            masses[partner] += moved_mass
            if min(masses) >= 0:
                return Distribution(masses, "a row of the channel")
    raise NotCertified(
        f"A row cannot be given the mean {float(mean):g} exactly: "
        f"it misses it by {float(error):.3g}."
    )
