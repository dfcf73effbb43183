"""Probabilistic DP: the mass P(V) of the outcomes V = {P > e^ε Q} is at most δ, a rational.

On real inputs the law is affine on segments, and the supremum over all pairs of inputs may lie inside a segment: P(V)
is not convex in the laws.

    δ(ε) = sup over inputs x, x' of Σ p_i(x) over {i : p_i(x) > e^ε p_i(x')}

On a pair of segments, p_i affine in s and q_i = p_i(x') affine in t, outcome i violates for t on one side of

    t_i(s) = (p_i(s)/E - q_i(0)) / q_i',      E = e^ε

The order of the t_i, 0 and 1 changes only at critical s where two of them meet, and all of those are numbers A + B E
with rational A, B. Between neighbouring critical s the sets of violations that some t produces do not change, and each
set's mass is affine in s: the supremum is attained, or approached, at critical s. Every comparison is decided exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

from workbench.exact.numbers import ONE, ZERO, ExpNumber, RationalPair, max_exp_number, sign_exp
from workbench.notions.dp import DeltaNotion
from workbench.notions.notion import MassAboveRatio, Requirement, Values

Lines = tuple[RationalPair, ...]  # value at 0, slope


class PDP(DeltaNotion):
    """Probabilistic differential privacy."""

    name = "pdp"
    title = "PDP"
    quantity = "pdp_delta"
    counts_excess = False

    def measure_segments(self, segments: Sequence[Any], budget: Values) -> Any:
        """The exact δ over every two real inputs. segments: each with the laws `left` and `right` at its ends."""
        pieces = [
            tuple((a, b - a) for a, b in zip(part.left, part.right, strict=True))
            for part in segments
        ]
        distinct = [*dict.fromkeys(pieces)]
        return max_exp_number(
            value
            for p in distinct
            for q in distinct
            for value in _on_pieces(p, q, budget["epsilon"])
        )

    def segment_work(self, segments: int, outputs: int, bits: int) -> int:
        """Critical inputs and the outcomes that violate between them, for every two segments."""
        return segments**2 * outputs**4 * (100 + 2 * (bits // 100) ** 2)

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """The mass above the ratio itself."""
        return (MassAboveRatio(budget["epsilon"], budget["delta"]),)


def _on_pieces(p: Lines, q: Lines, epsilon: Fraction) -> Iterable[ExpNumber]:
    """Distribution whose largest is the supremum over s, t in [0, 1]."""
    zero, certain = (
        ExpNumber.from_terms(ZERO, ZERO, epsilon),
        ExpNumber.from_terms(ONE, ZERO, epsilon),
    )
    yield zero
    inside = {s for s in _critical(p, q, epsilon) if zero < s < certain}
    for low, high in pairwise([zero, *sorted(inside), certain]):
        for held in _violations(p, q, _between(low, high), epsilon):
            mass, slope = (sum((p[i][part] for i in held), ZERO) for part in (0, 1))
            for s in (low, high):
                yield ExpNumber.from_terms(mass + slope * s.a, slope * s.b, epsilon)


def _critical(p: Lines, q: Lines, epsilon: Fraction) -> Iterable[ExpNumber]:
    """Every s where an outcome's t_i passes 0 or 1, or two of them meet."""
    for (a, da), (b, db) in zip(p, q, strict=True):
        if da:
            for end in (b, b + db):  # a + da s = E end
                yield ExpNumber.from_terms(-a / da, -end / da, epsilon)
    for ((a, da), (b, db)), ((c, dc), (d, dd)) in combinations(zip(p, q, strict=True), 2):
        slope = da * dd - dc * db  # (a + da s - E b) dd = (c + dc s - E d) db
        if db and dd and slope:
            yield ExpNumber.from_terms(
                (c * db - a * dd) / slope, -(b * dd - d * db) / slope, epsilon
            )


def _violations(p: Lines, q: Lines, s: Fraction, epsilon: Fraction) -> Iterable[tuple[int, ...]]:
    """The sets of violating outcomes at s that some open interval of t in [0, 1] produces."""
    zero = ExpNumber.from_terms(ZERO, ZERO, epsilon)
    growth = ExpNumber.from_terms(ZERO, Fraction(-1), epsilon)  # E t for t = 1
    always = []
    below: dict[int, ExpNumber] = {}
    above: dict[int, ExpNumber] = {}
    for i, ((a, da), (b, db)) in enumerate(zip(p, q, strict=True)):
        here = a + da * s
        if not db:
            if sign_exp(here, b, epsilon) > 0:
                always.append(i)
        else:
            (below if db > 0 else above)[i] = ExpNumber.from_terms(
                here / db, b / db, epsilon
            )  # E t_i
    ends = {t for t in (*below.values(), *above.values()) if zero < t < growth}
    for low, high in pairwise([zero, *sorted(ends), growth]):
        yield tuple(
            always
            + [i for i, t in below.items() if t >= high]
            + [i for i, t in above.items() if t <= low]
        )


def _between(low: ExpNumber, high: ExpNumber) -> Fraction:
    """A rational strictly between two different numbers."""
    bits = 64
    while True:
        top, bottom = low.enclosure(bits)[1], high.enclosure(bits)[0]
        if top < bottom:
            return (top + bottom) / 2
        bits *= 2
