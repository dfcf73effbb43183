"""The scale of the losses of a request, in which programs are solved and gaps are judged, so that no unit matters.

    floor    the loss without privacy: every answer has its best output, and no mechanism costs less
    width    the loss of the best mechanism that ignores its answer (one output for every part of the neighbour
             relation), minus the floor: the optimum lies in [floor, floor + width]

A gap is relative to the objective minus the floor. Multiplying all losses by a number, or adding one to all of them,
changes no verdict. The largest loss is no such scale: a far answer of weight 1e-12 would spoil it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from workbench.exact.numbers import ZERO
from workbench.solvers.solution import relative_gap

Number = Fraction | float

OPTIMALITY_GAP = 1e-6  # Relative gap up to which a bound proves an objective optimal.
MAX_FLOOR_SHARE = (
    1e-10  # Share of the width, above the floor, up to which a loss may be that without privacy.
)
_ROUNDING = 1e-16  # Gap, as a share of the width, that exact sums of rounded multipliers leave.
_DOUBLE = 2.0**-51  # Relative rounding of a double and of a few sums of them.
_STEP = 12  # Binary digits between two units: ordinary losses, of a width between 1/4 and 1024, have the unit 1.


@dataclass(frozen=True)
class LossScale:
    """The floor of the losses, and the width above it that the optimum lies in. What is no loss has neither (None)."""

    floor: Fraction = ZERO
    width: float | None = None

    @property
    def unit(self) -> float:
        """A power of 2^12 below the width: programs are solved in losses divided by it, which loses no digit."""
        return (
            1.0
            if not self.width
            else math.ldexp(1.0, _STEP * math.floor((math.log2(self.width) + 2) / _STEP))
        )

    def proves(self, objective: Number, bound: Number, tolerance: float = OPTIMALITY_GAP) -> bool:
        """Whether a lower bound is within a relative gap of an objective."""
        above, excess = (
            float(_exact_difference(objective, bound)),
            float(_exact_difference(objective, self.floor)),
        )
        return above <= tolerance * abs(excess) + self._slack(objective, bound)

    def _slack(self, objective: Number, bound: Number) -> float:
        """The difference that rounding leaves between an objective and a bound."""
        slack = _ROUNDING * (1.0 if self.width is None else self.width)
        if not isinstance(objective, Fraction) or not isinstance(bound, Fraction):
            slack += _DOUBLE * abs(
                float(objective)
            )  # A double of a loss above a large floor has no further digits.
        return slack

    def settles(self, objective: Number, bound: Number, tolerance: float = OPTIMALITY_GAP) -> bool:
        """Whether a lower bound proves an objective optimal: within a relative gap, or where the objective is the floor
        as far as a solver can tell, and the bound no more. An optimum that is the floor has no relative gap."""
        width = 1.0 if self.width is None else self.width
        at_floor = float(_exact_difference(objective, self.floor)) <= MAX_FLOOR_SHARE * width
        none_better = (
            float(_exact_difference(bound, self.floor)) <= _ROUNDING * width
            and _exact_difference(bound, objective) <= 0
        )
        return self.proves(objective, bound, tolerance) or (at_floor and none_better)

    def gap(self, objective: Number | None, bound: Number | None) -> float | None:
        """|objective - bound| / (objective - floor), 0 where rounding is all that parts them; None where either is
        unknown."""
        if objective is None or bound is None or not self.width:
            return relative_gap(
                *(None if each is None else float(each) for each in (objective, bound))
            )
        above, excess = (
            abs(float(_exact_difference(objective, bound))),
            abs(float(_exact_difference(objective, self.floor))),
        )
        excess = max(excess, _ROUNDING * self.width)
        return (
            0.0
            if above <= self._slack(objective, bound) and excess <= MAX_FLOOR_SHARE * self.width
            else above / excess
        )


NO_LOSS = LossScale()
"""The scale of a δ or an ε that is minimised: absolute."""


def _exact_difference(left: Number, right: Number) -> Number:
    """left - right, exact where both are finite."""
    if math.isfinite(left) and math.isfinite(right):
        return Fraction(left) - Fraction(right)
    return float(left) - float(right)
