"""Estimate the work of a proof before it starts, so that a small file cannot demand endless work.

A unit of work takes about 10^-7 s, and a proof of more than 10^8 units is refused. The count
depends on these sizes:

    C     number of ordered comparisons: differences of noise, pairs of rows of a channel, or L² for
          a quantizer with L different end laws (`workbench.mechanisms.piecewise_affine`: the
          one-sided laws at the ends of each piece)
    n     number of outcomes of a law
    k     number of labels of the objective, 0 without one
    T     number of weights: n for each law (each row, each end law), and n for each of the k labels
    b     sum of three sizes in bits: the largest total of a law; the longest number of the claim
          except δ (numerator plus denominator); δ
    w     sum of four sizes in bits: b; the most factors 2 in a denominator; all different odd parts
          of denominators; the largest numerator. The last three are taken over the knots, the
          outputs, and the numbers of the objective and the bias.

The units of a proof are the sum of these terms:

    audit              C n (a (4 + ⌊b/256⌋²) + s) + 1000 C + (C + 8) ⌊b/64⌋²
    loss and bias      T (4 + ⌊w/256⌋²) + ⌊w/64⌋²
    PDP on K pieces    K² n⁴ (100 + 2 ⌊b/100⌋²), for the inputs of every two pieces at which the
                       set of outcomes above the ratio changes
    many runs          C n (300 + ⌊b/64⌋²), for the dominating pair

with

    a     1; the number of points of a curve; 16 times this number for a trade-off function
    s     0; `series_work` of a notion that takes logarithms, powers or quantiles of each outcome

The squares appear because integers of b bits are multiplied, divided and reduced to lowest terms.
The 8 in (C + 8) covers the few operations that need about 2b bits: the logarithm of a ratio near 1,
and a comparison with e^ε that is almost an equality.

Fewer comparisons decide pure ε with one budget (and dp and pdp with δ = 0) if every two rows of a
channel are neighbours, and on a quantizer: the largest and the smallest mass of each output. C is
at most n there. The same holds for metric privacy on a quantizer.

The other sizes are computed by the property `audit_size` of each mechanism, not here. For noise on
the integers and the reals it uses

    D     number of shifts (k of the reals count as k)
    N_w   number of weights, with the total W
    P     period of the tails, r = u/v their ratio from one period to the next
    t     ⌈D/P⌉ + 3, or 0 without tails

    C = 2D,  n = N_w + 2D + 2P (tails) + 2 (atom)
    In b, the largest total counts bits(W) + t (bits(u) + bits(v)) + bits(atom).
    Clamped to N answers: C = D (2N - D - 1), n = N, T = N², t = ⌈N/P⌉ + 2.

A joint release has these sizes (`workbench.mechanisms.joint_noise`):

    C     number of shift vectors
    n     largest number of different ratios P/Q of a shift vector

    For geometric noise a^|η| with the largest L1 norm N of a shift vector, n = N + 1 and the total
    counts (N + 2) (bits of a). One comparison of n = 2 outcomes decides pure ε with one budget.
    Other noise is convolved to find the sizes, within a limit of its own.

The convolution of many runs is counted when the dominating pair is known, by
`workbench.privacy.composition`.
Notions with series need an unknown number of bits and pieces. Each of their enclosures is counted
before it is computed, and one file may use the limit once (`workbench.notions.notion`).
`tools/check_certificate.py` counts by the same rule, so both checkers refuse the same files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from workbench.errors import CorruptFile
from workbench.exact.numbers import ZERO, count_bits
from workbench.exact.objects import Values
from workbench.mechanisms.mechanism import AuditSize, Mechanism
from workbench.notions import Notion

MAX_WORK_UNITS = 100_000_000  # A proof that needs more units is refused.
# A mechanism of another package states no sizes. A claim about many runs of it counts as this many
# times the claim about one run, which is more than the dominating pair needs in practice.
_COMPOSITION_FACTOR = 10
# Number of bits that is assumed for the laws at knots of such a mechanism.
_ASSUMED_SEGMENT_BITS = 64


def count_work_units(
    mechanism: Mechanism,
    notion: Notion | None = None,
    values: Values | None = None,
    numbers: Iterable[Fraction] = (),
    labels: int = 0,
    *,
    is_composed: bool = False,
) -> int:
    """Count the units of work of a proof by the rule of the module header.

    Args:
        mechanism: The audited mechanism. Its `audit_size` states the sizes of the module header.
            For a mechanism without this attribute, its comparisons are listed and counted.
        notion: Notion of the claim. None if no claim is decided.
        values: Parameters of the claim by name, such as epsilon and delta. None for no parameters.
        numbers: Numbers of the objective and the bias.
        labels: Number k of labels of the objective. 0 without an objective that has labels.
        is_composed: Whether a claim about many runs is decided as well.

    Returns:
        Units of work. One unit takes about 10^-7 s.
    """
    size: AuditSize | None = getattr(mechanism, "audit_size", None)
    if size is None:
        units = _count_listed_units(mechanism, notion)
        if is_composed:
            units *= _COMPOSITION_FACTOR
        return units
    comparisons = size.comparisons
    outcomes = size.outcomes
    values = values or {}
    has_one_epsilon = not isinstance(values.get("epsilon"), Mapping)
    if size.extremes is not None and notion is not None and has_one_epsilon:
        # Only the largest and the smallest mass of each output are compared.
        decides_by_distance = notion.is_per_distance and bool(mechanism.segments)
        if notion.is_decided_by_ratio(values) or decides_by_distance:
            comparisons = size.extremes
            if size.extreme_outcomes is not None:
                outcomes = size.extreme_outcomes
    budgets = dict(values)
    delta = budgets.pop("delta", None) or ZERO
    budget_bits = max(map(count_bits, _iter_fractions(budgets)), default=0)
    bits = size.bits + budget_bits + count_bits(delta)
    loss_bits = bits + _common_bits([*numbers, *size.numbers])
    outcome_factor = 1
    series_units = 0
    if notion is not None:
        outcome_factor = notion.work_per_outcome(values)
        series_units = notion.series_work

    # The constants are those of the formulas in the module header, where the sizes have the names
    # C (comparisons), n (outcomes), T (weights), b (bits), w (loss_bits), a (outcome_factor) and
    # s (series_units).
    outcome_units = outcome_factor * (4 + (bits // 256) ** 2) + series_units
    audit_units = comparisons * (outcomes * outcome_units + 1000)
    audit_units += (comparisons + 8) * (bits // 64) ** 2
    weights = outcomes * (size.laws + labels)
    loss_units = weights * (4 + (loss_bits // 256) ** 2) + (loss_bits // 64) ** 2
    units = audit_units + loss_units
    if is_composed:
        units += size.comparisons * outcomes * (300 + (bits // 64) ** 2)
    if notion is not None and mechanism.segments:
        units += notion.segment_work(len(mechanism.segments), outcomes, bits)
    return units


def _common_bits(numbers: Sequence[Fraction]) -> int:
    """Return an upper bound on the bits of any of the numbers over their common denominator.

    It adds the most factors 2, the bits of the different odd parts, and those of a numerator.
    """
    # `x & -x` is the largest power of 2 that divides x.
    twos = [(number.denominator & -number.denominator).bit_length() - 1 for number in numbers]
    odd_parts = {number.denominator >> two for number, two in zip(numbers, twos, strict=True)}
    numerator_bits = max((number.numerator.bit_length() for number in numbers), default=0)
    odd_bits = sum(part.bit_length() for part in odd_parts)
    return max(twos, default=0) + odd_bits + numerator_bits


def _count_listed_units(mechanism: Mechanism, notion: Notion | None) -> int:
    """Count the units of a mechanism from another package by listing its comparisons.

    The count stops as soon as it exceeds the limit.
    """
    series_units = 0
    if notion is not None:
        series_units = notion.series_work
    units = 0
    for comparison in mechanism.comparisons():
        bits = max(law.total.bit_length() for law in (comparison.p, comparison.q))
        outcome_units = 4 + (bits // 256) ** 2 + series_units
        units += len(comparison.p) * outcome_units + 1000 + (bits // 64) ** 2
        if units > MAX_WORK_UNITS:
            return units
    segments = mechanism.segments or ()
    if notion and segments:
        units += notion.segment_work(len(segments), len(mechanism.outputs), _ASSUMED_SEGMENT_BITS)
    return units


def check_work_units(units: int) -> None:
    """Raise CorruptFile if a proof needs more units of work than the limit."""
    if units > MAX_WORK_UNITS:
        raise CorruptFile(
            f"A proof of {units} units of work is refused as too large; {MAX_WORK_UNITS} are "
            "allowed."
        )


def _iter_fractions(value: Any) -> Iterable[Fraction]:
    """Yield every number in the parameters of a claim."""
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, (int, Fraction)):
        yield Fraction(value)
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for part in value:
            yield from _iter_fractions(part)
