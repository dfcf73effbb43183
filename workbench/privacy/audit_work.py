"""Count the work of a proof before it starts, because a small file may demand endless work.

With   C  ordered comparisons: the differences of noise, the pairs of a channel, L² for L different
          end laws
       n  outcomes of a law
       T  weights in all: n, or n for every row or end law; + k n for k labels
       b  bits of the largest total, + the most bits (numerator and denominator) of ε and of every
          other number of the claim, + those of δ
       w  b + the most factors 2 in a denominator, + the bits of every different odd part of one,
          + those of the largest numerator, among the other numbers: knots, outputs, and the numbers
          of the objective and the bias

    Noise on the integers and the reals, weights w over W with tails of ratio r = u/v every P
    (else t = 0), D shifts (k of the reals), n_w weights:
                C = 2D, n = n_w + 2D + 2P (tails) + 2 (atom), b counts bits of W, of u and v t
                times, t = ⌈D/P⌉ + 3, and of the atom.
                Clamped to N answers: C = D (2N - D - 1), n = N, T = N², t = ⌈N/P⌉ + 2.

    audit       C n (a (4 + ⌊b/256⌋²) + s) + 1000 C + (C + 8) ⌊b/64⌋²
                a: 1; the points of a curve; 16 times those of a trade-off function
                s: 0; `series_work` of notions that take logarithms, powers or quantiles of each
                outcome
                If every two rows of a channel are neighbours, and on a quantizer, pure ε with one
                budget (dp and pdp with δ = 0) is decided by the largest and the smallest mass of
                each output: C is at most n there, and for metric on a quantizer.
    loss, bias  T (4 + ⌊w/256⌋²) + ⌊w/64⌋²
    PDP on K pieces       K² n⁴ (100 + 2 ⌊b/100⌋²) as well: critical inputs, and the outcomes that
                exceed the ratio between them
    composed    C n (300 + ⌊b/64⌋²) as well. The convolution is counted separately, when the a atoms
                of the dominating pair are known: a (500 + 10 d) + 7 N (20 + 3 d), for T runs at
                (ε, δ) on a grid on which the finite losses span m points, with
                d = 30 + the digits of T and of ⌊1/δ⌋ + ⌊ε/2⌋ (at most 1300),
                N = m min(T, 4 ⌊√(T d)⌋ + 4)

A unit takes about 10^-7 s, and the limit is 10^8 units. The squares appear because integers of b
bits are multiplied, divided and reduced to lowest terms. The logarithm of a ratio near 1, and a
comparison with e^ε that is nearly an equality, take about 2b bits. They cause the 8. Notions with
series need an unknown number of bits and pieces. Each of their enclosures is counted before it is
computed, and one file may use the limit once (`workbench.notions.notion`).
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
        mechanism: The mechanism.
        notion: Notion of the claim. None if no claim is decided.
        values: Parameters of the claim by name.
        numbers: Numbers of the objective and the bias.
        labels: Number of labels of the objective.
        is_composed: Whether a claim about many runs is decided as well.
    """
    size: AuditSize | None = getattr(mechanism, "audit_size", None)
    if size is None:
        return _count_listed_units(mechanism, notion) * (10 if is_composed else 1)
    comparisons = size.comparisons
    outcomes = size.outcomes
    values = values or {}
    has_one_epsilon = not isinstance(values.get("epsilon"), Mapping)
    if size.extremes is not None and notion is not None and has_one_epsilon:
        decides_by_distance = notion.is_per_distance and bool(mechanism.segments)
        if notion.is_decided_by_ratio(values) or decides_by_distance:
            comparisons = size.extremes
    budgets = dict(values)
    delta = budgets.pop("delta", None) or ZERO
    budget_bits = max(map(count_bits, _iter_fractions(budgets)), default=0)
    bits = size.bits + budget_bits + count_bits(delta)
    loss_bits = bits + _common_bits([*numbers, *size.numbers])
    outcome_factor = 1
    if notion is not None:
        outcome_factor = notion.work_per_outcome(values)
    series_units = 0
    if notion is not None:
        series_units = notion.series_work
    outcome_units = outcome_factor * (4 + (bits // 256) ** 2) + series_units
    units = comparisons * (outcomes * outcome_units + 1000)
    units += (comparisons + 8) * (bits // 64) ** 2
    if is_composed:
        units += size.comparisons * outcomes * (300 + (bits // 64) ** 2)
    weights = outcomes * (size.laws + labels)
    units += weights * (4 + (loss_bits // 256) ** 2) + (loss_bits // 64) ** 2
    if notion is not None and mechanism.segments:
        units += notion.segment_work(len(mechanism.segments), outcomes, bits)
    return units


def _common_bits(numbers: Sequence[Fraction]) -> int:
    """Return an upper bound on the bits of any of the numbers over their common denominator.

    It adds the most factors 2, the bits of the different odd parts, and those of a numerator.
    """
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
        units += notion.segment_work(len(segments), len(mechanism.outputs), 64)
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
