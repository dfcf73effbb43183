"""The pieces of a formula: each with where it holds, in x = e^(ε/steps) and δ, and a mechanism that attains it.

The optimum of a piece is (numerator + δ numerator_delta)/denominator, polynomials in x.
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
from workbench.pipeline.stated import FormulaProgram
from workbench.solvers.exact.polynomials import Affine, Poly, Root
from workbench.solvers.exact.regions import Ends, Region
from workbench.solvers.exact.regions import Formula as Solved


def to_epsilon_interval(ends: Ends, steps: int) -> FloatPair:
    """An interval of x as one of ε, in floats."""
    low, high = (math.inf if end is None else steps * math.log(float(end)) for end in ends)
    return low, high


@dataclass(frozen=True)
class Part:
    """An interval of x with a solution there. columns: those whose sum a mass of the mechanism is, by its name."""

    low: Root
    high: Root | None
    solution: Solved
    columns: Mapping[str, tuple[int, ...]]

    @cached_property
    def masses(self) -> dict[str, Affine]:
        """The probabilities of the mechanism, by name; none where there is no mechanism."""
        if self.solution.value is None:
            return {}
        nothing = Affine.from_number(0)
        return {
            name: sum(map(self.solution.point, at), nothing) for name, at in self.columns.items()
        }


@dataclass(frozen=True)
class Piece:
    """One formula and where it holds: ε between logarithms of algebraic numbers, δ between two functions of ε.

    low, high: of x = e^(ε/steps), None without an end; delta: its ends; value: the optimum, None where there is no
    mechanism; parts: intervals of x, from low to high, each with a mechanism that attains it; pattern: of PDP, the
    pairs that it breaks.
    """

    low: Root
    high: Root | None
    delta: tuple[Affine, Affine]
    value_at: Affine | None
    parts: tuple[Part, ...]
    steps: int = 1
    pattern: str = ""

    @property
    def masses(self) -> Mapping[str, Affine]:
        """The probabilities of a mechanism that attains the optimum in the first part, by name."""
        return self.parts[0].masses

    @property
    def epsilon(self) -> FloatPair:
        """The interval of ε, in floats."""
        return to_epsilon_interval((self.low, self.high), self.steps)

    @property
    def has_delta_interval(self) -> bool:
        """Whether δ lies between two different ends."""
        return self.delta[0] != self.delta[1]

    @property
    def shadow_prices(self) -> tuple[Affine, Affine] | None:
        """(dV/dε, dV/dδ): what one unit of a budget changes; None where there is no mechanism."""
        value = self.value_at
        return None if value is None else (value.derivative(self.steps), value.delta_derivative())

    def to_text(self, style: Style = PLAIN) -> str:
        """The formula in words, LaTeX or Python."""
        return (
            "infeasible"
            if self.value_at is None
            else write_affine(self.value_at, style, self.steps)
        )

    def delta_limit_texts(self, style: Style = PLAIN) -> tuple[str, str]:
        """The ends of δ."""
        low, high = (write_affine(end, style, self.steps) for end in self.delta)
        return low, high

    def delta_limits_at(self, epsilon: Fraction) -> FloatPair:
        """The ends of δ at an ε."""
        x = Fraction(math.exp(epsilon / self.steps))
        low, high = (float(end(x)) for end in self.delta)
        return low, high

    def to_dict(self) -> Record:
        """Polynomials as integers by rising power of x."""
        low, high = self.epsilon
        known: Record = {"epsilon": [low, None if math.isinf(high) else high]}
        if self.value_at is not None:
            known |= {
                "numerator": _list_coefficients(self.value_at.constant),
                "denominator": _list_coefficients(self.value_at.denominator),
            }
            if self.value_at.slope:
                known["numerator_delta"] = _list_coefficients(self.value_at.slope)
        known["delta"] = [_delta_limit_record(value) for value in self.delta]
        if self.has_delta_interval:
            known["delta_formula"] = [*self.delta_limit_texts()]
        if self.pattern:
            known["broken"] = self.pattern
        elif self.high is not None:
            root = self.high.refine_to(Fraction(1, 1 << 64))
            value = [float(root.low), float(root.high)]
            known["breakpoint"] = {
                "polynomial": _list_coefficients(root.polynomial),
                "value": value,
            }
        return known | {"formula": self.to_text(), "proven": True}


def merge_regions(stated: FormulaProgram, regions: Sequence[Region]) -> tuple[Piece, ...]:
    """The formulas of regions by rising x: neighbouring intervals of one formula, and of the same ends of δ, as one."""
    kept: list[Piece] = []
    for region in regions:
        for solved in region.formulas:
            part = Part(region.low, region.high, solved, stated.masses)
            piece = Piece(
                region.low,
                region.high,
                (solved.low, solved.high),
                solved.value,
                (part,),
                stated.steps,
            )
            for k, before in enumerate(kept):
                same = (before.value_at, before.delta) == (piece.value_at, piece.delta)
                if same and before.high is not None and before.high.compare(piece.low) == 0:
                    kept[k] = replace(before, high=piece.high, parts=(*before.parts, part))
                    break
            else:
                kept.append(piece)
    return tuple(kept)


def _list_coefficients(polynomial: Poly) -> list[int]:
    return [int(value) for value in polynomial.coeffs()] or [0]


def _delta_limit_record(value: Affine) -> Any:
    """A number, or numerator and denominator."""
    if value.constant.degree() <= 0 and value.denominator.degree() == 0:
        return float(Fraction(int(value.constant[0]), int(value.denominator[0])))
    return {
        "numerator": _list_coefficients(value.constant),
        "denominator": _list_coefficients(value.denominator),
    }
