"""What a proof would cost, counted from a file's numbers before it starts: a small hostile file may take for ever.

With   C  ordered comparisons: the differences of noise, the pairs of a channel, L² for L different end laws
       n  outcomes of a law        T  weights in all: n, or n for every row or end law; + k n for k labels
       b  bits of the largest total, + the most bits (numerator and denominator) of ε and of every other number of the
          claim, + those of δ
       w  b + the most factors 2 in a denominator, + the bits of every different odd part of one, + those of the largest
          numerator, among the other numbers: knots, outputs, and what the objective and the bias hold

    Noise on the integers and the reals, weights w over W with tails of ratio r = u/v every P (else t = 0), D shifts
    (k of the reals), n_w weights:  C = 2D, n = n_w + 2D + 2P (tails) + 2 (atom), b counts bits of W, of u and v t
    times, t = ⌈D/P⌉ + 3, and of the atom. Clamped to N answers: C = D (2N - D - 1), n = N, T = N², t = ⌈N/P⌉ + 2.

    audit       C n (a (4 + ⌊b/256⌋²) + s) + 1000 C + (C + 8) ⌊b/64⌋²
                a: 1; the points of a curve; 16 times those of a trade-off function
                s: 0; `series_work` of notions that take logarithms, powers or quantiles of each outcome
                where every two rows of a channel are neighbours, and on a quantizer, pure ε with one budget (dp and
                pdp with δ = 0) is decided by each output's largest and least mass: C is at most n there, and for metric
                on a quantizer
    loss, bias  T (4 + ⌊w/256⌋²) + ⌊w/64⌋²
    PDP on K pieces       K² n⁴ (100 + 2 ⌊b/100⌋²) as well: critical inputs, the outcomes that violate between them
    composed    C n (300 + ⌊b/64⌋²) as well, and, counted when the a atoms of the dominating pair are known, and by
                itself: a (500 + 10 d) + 7 N (20 + 3 d), for T runs at (ε, δ) on a grid on which the finite losses
                span m points: d = 30 + the digits of T and of ⌊1/δ⌋ + ⌊ε/2⌋ (at most 1300),
                N = m min(T, 4 ⌊√(T d)⌋ + 4)

units of about 10^-7 s; the limit is 10^8. Squares, since integers of b bits are multiplied, divided and reduced to
lowest terms; ln of a ratio near 1, and a comparison with e^ε that is nearly equal, take about 2b bits and are the 8.
How many bits and pieces a claim of the notions with series needs is seen when it is decided: every enclosure is counted
before it is computed, and a file may take what one limit allows (`workbench.notions.notion`).
`tools/check_certificate.py` counts by the same rule: what one of them refuses as too large, the other does too.
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

MAX_WORK_UNITS = 100_000_000


def count_work_units(
    mechanism: Mechanism,
    notion: Notion | None = None,
    values: Values | None = None,
    numbers: Iterable[Fraction] = (),
    labels: int = 0,
    *,
    is_composed: bool = False,
) -> int:
    """The units of the module's rule. notion and values (its parameters): of a claim, where one is to be decided;
    numbers: of the objective and the bias; labels: of the objective; runs: whether many are composed."""
    size: AuditSize | None = getattr(mechanism, "audit_size", None)
    if size is None:
        return _count_listed_units(mechanism, notion) * (10 if is_composed else 1)
    comparisons, outcomes = size.comparisons, size.outcomes
    values = values or {}
    plain = not isinstance(values.get("epsilon"), Mapping)
    if size.extremes is not None and notion is not None and plain:
        few = notion.is_decided_by_ratio(values) or (
            notion.is_per_distance and bool(mechanism.segments)
        )
        comparisons = size.extremes if few else comparisons
    budgets = dict(values)
    delta = budgets.pop("delta", None) or ZERO
    bits = size.bits + max(map(count_bits, _iter_fractions(budgets)), default=0) + count_bits(delta)
    wide = bits + _common_bits([*numbers, *size.numbers])
    each = 1 if notion is None else notion.work_per_outcome(values)
    series = 0 if notion is None else notion.series_work
    units = comparisons * (outcomes * (each * (4 + (bits // 256) ** 2) + series) + 1000)
    units += (comparisons + 8) * (bits // 64) ** 2
    units += size.comparisons * outcomes * (300 + (bits // 64) ** 2) if is_composed else 0
    units += outcomes * (size.laws + labels) * (4 + (wide // 256) ** 2) + (wide // 64) ** 2
    if notion is not None and mechanism.segments:
        units += notion.segment_work(len(mechanism.segments), outcomes, bits)
    return units


def _common_bits(numbers: Sequence[Fraction]) -> int:
    """Of numbers over one denominator, at most: by factors 2, by different odd parts, by numerators."""
    twos = [(number.denominator & -number.denominator).bit_length() - 1 for number in numbers]
    odd = {number.denominator >> two for number, two in zip(numbers, twos, strict=True)}
    largest = max((number.numerator.bit_length() for number in numbers), default=0)
    return max(twos, default=0) + sum(part.bit_length() for part in odd) + largest


def _count_listed_units(mechanism: Mechanism, notion: Notion | None) -> int:
    """Of a mechanism of another package: its comparisons one by one, as many as are allowed."""
    series, units = 0 if notion is None else notion.series_work, 0
    for comparison in mechanism.comparisons():
        bits = max(law.total.bit_length() for law in (comparison.p, comparison.q))
        units += len(comparison.p) * (4 + (bits // 256) ** 2 + series) + 1000 + (bits // 64) ** 2
        if units > MAX_WORK_UNITS:
            return units
    segments = mechanism.segments or ()
    return units + (
        notion.segment_work(len(segments), len(mechanism.outputs), 64) if notion and segments else 0
    )


def check_work_units(units: int) -> None:
    """Raise CorruptFile for a proof of more units of `work` than the limit."""
    if units > MAX_WORK_UNITS:
        raise CorruptFile(
            f"A proof of {units} comparisons is refused as too large; {MAX_WORK_UNITS} are allowed."
        )


def _iter_fractions(value: Any) -> Iterable[Fraction]:
    """Every number in the parameters of a claim."""
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, (int, Fraction)):
        yield Fraction(value)
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for part in value:
            yield from _iter_fractions(part)
