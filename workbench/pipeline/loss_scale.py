"""Measure the scale of the losses of a request, so that results do not depend on their unit.

    floor    the loss without privacy: every answer publishes its best output. No mechanism has a
             smaller loss
    width    the loss of the best mechanism that publishes one constant for each connected part of
             the neighbour relation, minus the floor. This mechanism is private at any budget, so
             the optimum lies in [floor, floor + width]

For example, the answers 0 and 1 are neighbours, the loss is absolute, and both have the prior 1/2.
Publishing the answer has the loss 0, so the floor is 0. Publishing 0 always has the expected loss
1/2, so the width is 1/2.

Programs are solved in units of the width. A gap is relative to the objective minus the floor.
Multiplying all losses by a number, or adding a number to all of them, changes no verdict. The
largest loss is not used as a scale, because a far answer of weight 1e-12 would determine it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from workbench.exact.numbers import ZERO
from workbench.solvers.solution import relative_gap

Number = Fraction | float

# A bound within this relative gap proves that an objective is optimal.
OPTIMALITY_GAP = 1e-6
# A loss above the floor by at most this share of the width counts as equal to the floor.
MAX_FLOOR_SHARE = 1e-10
# A gap up to this share of the width is the rounding of dual values, and counts as 0.
_ROUNDING_SHARE = 1e-16
# The relative rounding error of a sum of a few doubles is at most this.
_DOUBLE_ROUNDING = 2.0**-51
# Units are powers of 2^12, so that losses of a width between 1/4 and 1024 have the unit 1.
_UNIT_STEP_BITS = 12


@dataclass(frozen=True)
class LossScale:
    """The floor of the losses, and the width above it in which the optimum lies.

    Attributes:
        floor: The loss without privacy.
        width: The width. None for an objective that is no loss.
    """

    floor: Fraction = ZERO
    width: float | None = None

    @property
    def unit(self) -> float:
        """Return the power of 2^12 by which the losses of a program are divided.

        Losses of a width between 1/4 and 1024 are not changed. Dividing by a power of 2 is exact.
        """
        if not self.width:
            return 1.0
        # With the 2, the exponent is 0 for log2(width) from -2 up to 10.
        exponent = math.floor((math.log2(self.width) + 2) / _UNIT_STEP_BITS)
        return math.ldexp(1.0, _UNIT_STEP_BITS * exponent)

    def proves(self, objective: Number, bound: Number, tolerance: float = OPTIMALITY_GAP) -> bool:
        """Return whether a lower bound is within a relative gap of an objective.

        Args:
            objective: The loss of a mechanism, or an ε or δ.
            bound: The lower bound.
            tolerance: The relative gap.
        """
        difference = float(_exact_difference(objective, bound))
        excess = float(_exact_difference(objective, self.floor))
        return difference <= tolerance * abs(excess) + self._rounding_slack(objective, bound)

    def _rounding_slack(self, objective: Number, bound: Number) -> float:
        """Return the difference between an objective and a bound that rounding may leave."""
        slack = _ROUNDING_SHARE * (1.0 if self.width is None else self.width)
        if not isinstance(objective, Fraction) or not isinstance(bound, Fraction):
            # A double of a loss above a large floor has no further digits.
            slack += _DOUBLE_ROUNDING * abs(float(objective))
        return slack

    def settles(self, objective: Number, bound: Number, tolerance: float = OPTIMALITY_GAP) -> bool:
        """Return whether a lower bound proves an objective optimal.

        An optimum that equals the floor has no relative gap. It is proven if the objective is at
        the floor to the precision of a solver, and the bound is not above the objective.

        Args:
            objective: The loss of a mechanism, or an ε or δ.
            bound: The lower bound.
            tolerance: The relative gap.
        """
        if self.proves(objective, bound, tolerance):
            return True
        width = 1.0 if self.width is None else self.width
        excess = float(_exact_difference(objective, self.floor))
        bound_excess = float(_exact_difference(bound, self.floor))
        if excess > MAX_FLOOR_SHARE * width or bound_excess > _ROUNDING_SHARE * width:
            return False
        return _exact_difference(bound, objective) <= 0

    def gap(self, objective: Number | None, bound: Number | None) -> float | None:
        """Return |objective - bound| / (objective - floor).

        Args:
            objective: The loss of a mechanism, or an ε or δ. None: it is unknown.
            bound: The lower bound. None: it is unknown.

        Returns:
            The gap: 0 if only rounding separates the two, None if either is unknown.
        """
        if objective is None or bound is None or not self.width:
            float_objective = None if objective is None else float(objective)
            float_bound = None if bound is None else float(bound)
            return relative_gap(float_objective, float_bound)
        difference = abs(float(_exact_difference(objective, bound)))
        excess = abs(float(_exact_difference(objective, self.floor)))
        excess = max(excess, _ROUNDING_SHARE * self.width)
        is_at_floor = excess <= MAX_FLOOR_SHARE * self.width
        if is_at_floor and difference <= self._rounding_slack(objective, bound):
            return 0.0
        return difference / excess


NO_LOSS = LossScale()
"""The scale of a δ or an ε that is minimised: absolute."""


def _exact_difference(left: Number, right: Number) -> Number:
    """Return left - right, exactly if both are finite."""
    if math.isfinite(left) and math.isfinite(right):
        return Fraction(left) - Fraction(right)
    return float(left) - float(right)
