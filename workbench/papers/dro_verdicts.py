"""What a printed cell of Selvi, Liu and Wiesemann's tables implies, and what is proven of it.

    letter                       here
    T4, T5, T1 in percent        100 (BUB - O)/max(O, 1), 100 (O - BLB)/max(O, 1), 100 (BUB - BLB)/max(O, 1)
    BUB, BLB                     `models.oracles.line_noise.truncated_laplace`, `geng_formula`
    O                            the middle of their two bounds, said to be less than 1 % of max(O, 1) apart
    [L, U]                       our proven interval: no noise costs less than L, a certified mechanism costs U

BUB has a closed form, so a cell of Table 4, known to half a unit of its second decimal, gives an interval of O:

    O = BUB/(1 + T4/100) where that is >= 1, else BUB - T4/100            BLB = O - T5/100 max(O, 1)

and with Table 5 one of BLB. That tells how many terms their BLB has: the closed form sums a b^i until it reaches 1/2,
the code they publish (data_independent.cpp) while the sum stays up to 1/2, which is one term fewer; where the sum is
exactly 1/2, at δ = 1/2, rounding decides and there is one more.

In that code both bounds are costs of the same masses on cells of width β with an end at 0, one by the cells' middles,
one by their ends nearest to 0: they are β/2 apart, and O is the mechanism's cost less β/4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from models.oracles.line_noise import geng_formula, truncated_laplace

__all__ = ["Verdict", "implied_bound", "implied_optimum", "terms_fewer", "verdict_of"]

Interval = tuple[float, float]

_HALF = 0.005  # of a unit of the last printed digit, in percent
_USUAL = "their O is the midpoint of bounds up to 1 % of max(O, 1) apart; ours is proven"
_TERMS = {
    1: "their lower bound is the closed form with one term fewer: its sum stays up to 1/2, as in the code they publish",
    -1: "their lower bound is the closed form with one term more, where its sum is exactly 1/2 and rounding decides",
}


@dataclass(frozen=True)
class Verdict:
    """tolerance: in percent; reasons: what is proven of a cell that differs, empty where none is needed."""

    tolerance: float
    reasons: tuple[str, ...]

    @property
    def remark(self) -> str:
        """In words."""
        return "; ".join(self.reasons) if self.reasons else _USUAL


def implied_optimum(bub: float, t4: float) -> Interval:
    """The interval of O that a cell of Table 4 leaves."""

    def optimum(share: float) -> float:
        large = bub / (1 + share)
        return large if large >= 1 else bub - share

    return optimum((t4 + _HALF) / 100), optimum((t4 - _HALF) / 100)


def implied_bound(o: Interval, t5: float) -> Interval:
    """The interval of BLB that O and a cell of Table 5 leave."""
    return o[0] - (t5 + _HALF) / 100 * max(o[0], 1.0), o[1] - (t5 - _HALF) / 100 * max(o[1], 1.0)


def terms_fewer(place: tuple[float, float], t4: float, t5: float) -> int | None:
    """How many terms fewer than the closed form their BLB has at (ε, δ): 0, 1 or -1; None where none of these fits."""
    epsilon, delta = place
    low, high = implied_bound(implied_optimum(truncated_laplace(epsilon, delta, 1, "absolute"), t4), t5)
    return next((fewer for fewer in (0, 1, -1) if low <= geng_formula(epsilon, delta, 1, fewer) <= high), None)


def verdict_of(
    name: str,
    cells: Mapping[str, float],
    ours: float,
    place: tuple[float, float],
    proven: Interval,
    gap: float,
    *,
    squared: bool = False,
) -> Verdict:
    """What is proven of the cell of table `name`, beside which ours is `ours`, in percent.

    cells: the printed percentages of this (ε, δ) by table: "table4", and for |η| "table1" and "table5"; proven: (L, U);
    gap: of their bounds, percent; squared: of a table for η².
    """
    value = cells[name]
    tolerance = gap / 2 * (value / 100 if name == "table1" else 1) * 1.02 + 0.01
    if abs(value - ours) <= tolerance:
        return Verdict(tolerance, ())
    bub = truncated_laplace(*place, 1, "squared" if squared else "absolute")
    reasons = []
    if name != "table4" and (fewer := terms_fewer(place, cells["table4"], cells["table5"])):
        reasons.append(_TERMS[fewer])
    reasons += _outside(implied_optimum(bub, cells["table4"]), proven, "" if name == "table4" else "with Table 4 ")
    return Verdict(tolerance, tuple(reasons))


def _outside(implied: Interval, proven: Interval, by: str) -> list[str]:
    """One sentence where no O that is implied lies in what is proven."""
    (first, last), (least, loss) = implied, proven
    middle, unit = f"{by}it implies O in [{first:.5g}, {last:.5g}]", 100 / max(least, 1.0)
    if last < least:
        below = f"{unit * (least - last):.2f} % of max(O, 1) below {least:.5g}"
        return [f"{middle}, {below}, than which no private noise costs less"]
    if first > loss:
        above = f"{unit * (first - loss):.2f} % of max(O, 1) above the {loss:.5g}"
        return [f"{middle}, {above} of a certified mechanism"]
    return []
