"""Join the proven regions of a program into the pieces of a formula, which the user sees.

The optimum of a piece is (numerator + δ numerator_delta)/denominator, with polynomials in
x = e^(ε/steps). There are three kinds of intervals of x, from the finest to the coarsest:

* A `Region` of `workbench.solvers.exact.regions` is an interval of x in which the same bases are
  proven to be optimal. It has one formula for each interval of δ.
* A `Part` is one formula of one region. It has one optimal mechanism.
* A `Piece` joins consecutive parts that have the same optimum and the same interval of δ.

For example, the regions 1 < x < 1.5 and 1.5 < x < 2 may have the same optimum (x + 1)/(2x) but
different optimal mechanisms. They become one piece from 1 to 2 with two parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from workbench.exact.objects import FloatPair, Record
from workbench.formulas.text import PLAIN, Style, write_affine
from workbench.pipeline.formula_program import FormulaProgram
from workbench.solvers.exact.polynomials import Affine, Poly, Root
from workbench.solvers.exact.regions import Ends, Region
from workbench.solvers.exact.regions import Formula as RegionFormula

_BREAKPOINT_WIDTH = Fraction(1, 1 << 64)  # A breakpoint is written as an interval of this width.


def finite_or_none(value: float) -> float | None:
    """Return a number, or None for infinity, which JSON does not have.

    Args:
        value: A finite number or infinity.
    """
    return None if math.isinf(value) else value


def to_epsilon_interval(ends: Ends, steps: int) -> FloatPair:
    """Convert an interval of x to an interval of ε in floats.

    Args:
        ends: The ends of x = e^(ε/steps); None for an end at infinity.
        steps: The number of steps into which ε is divided.
    """
    low, high = (math.inf if end is None else steps * math.log(float(end)) for end in ends)
    return low, high


@dataclass(frozen=True)
class Part:
    """An interval of x with one optimal solution of the program, hence one optimal mechanism.

    Attributes:
        low: The lower end of x.
        high: The upper end of x; None if there is none.
        solution: The optimal solution on the interval.
        columns: For each probability of the mechanism, by name, the columns of the program whose
            sum it is.
    """

    low: Root
    high: Root | None
    solution: RegionFormula
    columns: Mapping[str, tuple[int, ...]]

    @cached_property
    def masses(self) -> dict[str, Affine]:
        """Return the probabilities of the mechanism by name; none if there is no mechanism."""
        if self.solution.value is None:
            return {}
        zero = Affine.from_number(0)
        return {
            name: sum(map(self.solution.point, indices), zero)
            for name, indices in self.columns.items()
        }


@dataclass(frozen=True)
class Piece:
    """One formula for the optimum, and the intervals of x and δ in which it holds.

    The ends of x are algebraic numbers, and the ends of δ are functions of x.

    Attributes:
        low: The lower end of x = e^(ε/steps).
        high: The upper end of x; None if there is none.
        delta: The two ends of δ, as functions of x.
        value: The optimum as a function of x and δ; None if there is no mechanism.
        parts: Intervals of x that join from low to high, each with an optimal mechanism.
        steps: The number of steps into which ε is divided.
        pattern: The pairs that the optimal noise breaks, such as "1: 0,3; 2: 0" (difference 1 at
            the noise values 0 and 3, difference 2 at 0). "" unless the notion is PDP.
    """

    low: Root
    high: Root | None
    delta: tuple[Affine, Affine]
    value: Affine | None
    parts: tuple[Part, ...]
    steps: int = 1
    pattern: str = ""

    @property
    def masses(self) -> Mapping[str, Affine]:
        """Return the probabilities of an optimal mechanism in the first part, by name.

        The mechanism is optimal in the first of `parts`. A name is, for example, "P(0|1)".
        """
        first_part, *_ = self.parts
        return first_part.masses

    @property
    def epsilon(self) -> FloatPair:
        """Return the interval of ε in floats."""
        return to_epsilon_interval((self.low, self.high), self.steps)

    @property
    def has_delta_interval(self) -> bool:
        """Return whether the ends of δ differ."""
        low, high = self.delta
        return low != high

    @property
    def shadow_prices(self) -> tuple[Affine, Affine] | None:
        """Return (dV/dε, dV/dδ), the change of the optimum for one unit of ε and of δ."""
        if self.value is None:
            return None
        return self.value.derivative(self.steps), self.value.delta_derivative()

    def to_text(self, style: Style = PLAIN) -> str:
        """Write the formula.

        Args:
            style: PLAIN, LATEX or PYTHON of `workbench.formulas.text`.
        """
        if self.value is None:
            return "infeasible"
        return write_affine(self.value, style, self.steps)

    def delta_limit_texts(self, style: Style = PLAIN) -> tuple[str, str]:
        """Write the two ends of δ.

        Args:
            style: PLAIN, LATEX or PYTHON of `workbench.formulas.text`.
        """
        low, high = (write_affine(end, style, self.steps) for end in self.delta)
        return low, high

    def delta_limits_at(self, epsilon: Fraction) -> FloatPair:
        """Return the two ends of δ in floats.

        Args:
            epsilon: The value of ε.
        """
        x = Fraction(math.exp(epsilon / self.steps))
        low, high = (float(end(x)) for end in self.delta)
        return low, high

    def to_dict(self) -> Record:
        """Return JSON-ready values; a polynomial is a list of integers by rising power of x."""
        low, high = self.epsilon
        record: Record = {"epsilon": [low, finite_or_none(high)]}
        if self.value is not None:
            record["numerator"] = _list_coefficients(self.value.constant)
            record["denominator"] = _list_coefficients(self.value.denominator)
            if self.value.slope:
                record["numerator_delta"] = _list_coefficients(self.value.slope)
        record["delta"] = [_delta_limit_record(end) for end in self.delta]
        if self.has_delta_interval:
            record["delta_formula"] = [*self.delta_limit_texts()]
        if self.pattern:
            record["broken"] = self.pattern
        elif self.high is not None:
            root = self.high.refine_to(_BREAKPOINT_WIDTH)
            record["breakpoint"] = {
                "polynomial": _list_coefficients(root.polynomial),
                "value": [float(root.low), float(root.high)],
            }
        return record | {"formula": self.to_text(), "proven": True}


def merge_regions(program: FormulaProgram, regions: Sequence[Region]) -> tuple[Piece, ...]:
    """Merge the formulas of regions into pieces.

    Consecutive intervals of x with the same formula and the same ends of δ become one piece.

    Args:
        program: The program whose regions they are.
        regions: The regions by rising x.

    Returns:
        The pieces by rising x, and within one interval of x by rising δ.
    """
    pieces: list[Piece] = []
    for region in regions:
        for solution in region.formulas:
            part = Part(region.low, region.high, solution, program.masses)
            delta = (solution.low, solution.high)
            piece = Piece(region.low, region.high, delta, solution.value, (part,), program.steps)
            for index, earlier_piece in enumerate(pieces):
                if _continues(earlier_piece, piece):
                    parts = (*earlier_piece.parts, part)
                    pieces[index] = replace(earlier_piece, high=piece.high, parts=parts)
                    break
            else:
                pieces.append(piece)
    return tuple(pieces)


def _continues(piece: Piece, following: Piece) -> bool:
    """Return whether a piece has the formula of another one and starts where that one ends."""
    if (piece.value, piece.delta) != (following.value, following.delta):
        return False
    return piece.high is not None and piece.high.compare(following.low) == 0


def _list_coefficients(polynomial: Poly) -> list[int]:
    """Return the coefficients of a polynomial by rising power."""
    return [int(value) for value in polynomial.coeffs()] or [0]


def _delta_limit_record(end: Affine) -> Any:
    """Return an end of δ as a number, or as its numerator and its denominator."""
    if end.constant.degree() <= 0 and end.denominator.degree() == 0:
        return float(Fraction(int(end.constant[0]), int(end.denominator[0])))
    return {
        "numerator": _list_coefficients(end.constant),
        "denominator": _list_coefficients(end.denominator),
    }
