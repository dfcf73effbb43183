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
from workbench.formulas.text import WORDS, Style, written
from workbench.pipeline.stated import Stated
from workbench.solvers.exact.polynomials import Affine, Poly, Root
from workbench.solvers.exact.regions import Ends, Region
from workbench.solvers.exact.regions import Formula as Solved


def epsilons(ends: Ends, steps: int) -> FloatPair:
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
        nothing = Affine.number(0)
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
    value: Affine | None
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
        return epsilons((self.low, self.high), self.steps)

    @property
    def free(self) -> bool:
        """Whether δ lies between two different ends."""
        return self.delta[0] != self.delta[1]

    @property
    def shadow_prices(self) -> tuple[Affine, Affine] | None:
        """(dV/dε, dV/dδ): what one unit of a budget changes; None where there is no mechanism."""
        value = self.value
        return None if value is None else (value.derivative(self.steps), value.slope_alone())

    def text(self, style: Style = WORDS) -> str:
        """The formula in words, LaTeX or Python."""
        return "infeasible" if self.value is None else written(self.value, style, self.steps)

    def delta_text(self, style: Style = WORDS) -> tuple[str, str]:
        """The ends of δ."""
        low, high = (written(end, style, self.steps) for end in self.delta)
        return low, high

    def delta_at(self, epsilon: Fraction) -> FloatPair:
        """The ends of δ at an ε."""
        x = Fraction(math.exp(epsilon / self.steps))
        low, high = (float(end(x)) for end in self.delta)
        return low, high

    def to_dict(self) -> Record:
        """Polynomials as integers by rising power of x."""
        low, high = self.epsilon
        known: Record = {"epsilon": [low, None if math.isinf(high) else high]}
        if self.value is not None:
            known |= {
                "numerator": _integers(self.value.constant),
                "denominator": _integers(self.value.over),
            }
            if self.value.slope:
                known["numerator_delta"] = _integers(self.value.slope)
        known["delta"] = [_end(value) for value in self.delta]
        if self.free:
            known["delta_formula"] = [*self.delta_text()]
        if self.pattern:
            known["broken"] = self.pattern
        elif self.high is not None:
            root = self.high.within(Fraction(1, 1 << 64))
            value = [float(root.low), float(root.high)]
            known["breakpoint"] = {"polynomial": _integers(root.polynomial), "value": value}
        return known | {"formula": self.text(), "proven": True}


def pieces_of(stated: Stated, regions: Sequence[Region]) -> tuple[Piece, ...]:
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
                same = (before.value, before.delta) == (piece.value, piece.delta)
                if same and before.high is not None and before.high.against(piece.low) == 0:
                    kept[k] = replace(before, high=piece.high, parts=(*before.parts, part))
                    break
            else:
                kept.append(piece)
    return tuple(kept)


def _integers(polynomial: Poly) -> list[int]:
    return [int(value) for value in polynomial.coeffs()] or [0]


def _end(value: Affine) -> Any:
    """A number, or numerator and denominator."""
    if value.constant.degree() <= 0 and value.over.degree() == 0:
        return float(Fraction(int(value.constant[0]), int(value.over[0])))
    return {"numerator": _integers(value.constant), "denominator": _integers(value.over)}
