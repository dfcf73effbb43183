"""Quantizers in units of c: solvers' tolerances are absolute, so every program is stated on [-1, 1].

With y = x/c, a law on bins B/c is ε-private when it is on bins B; a budget by distance becomes εc (absolute) or εc²
(squared), and a|e| + b e² becomes ac|e/c| + bc² (e/c)².
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest
from workbench.exact.numbers import exact
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization import Quantization

__all__ = ["Units"]

LARGEST = 30  # e^epsilon is a coefficient of the program


@dataclass(frozen=True)
class Units:
    """The scale of a question, and of the numbers that come back."""

    c: Fraction

    def question(self, asked: Quantization) -> Quantization:
        """The same question on [-1, 1]."""
        bins = None if asked.bins is None else [b / self.c for b in asked.bins]
        levels = asked.levels if bins is None else None
        return Quantization(bins, levels=levels, density=asked.density.scaled(1.0))

    def epsilon(self, asked: Fraction, metric: str | None) -> Fraction:
        """The budget on [-1, 1]. Raises InvalidRequest above 30 there."""
        scale = self.c ** {None: 0, "absolute": 1, "squared": 2}[metric]
        if asked * scale > LARGEST:
            InvalidRequest.must("epsilon", f"at most {LARGEST / float(scale):g} (a program has e^epsilon)", asked)
        return asked * scale

    def cost(self, asked: Any) -> tuple[Any, float]:
        """The cost on [-1, 1], and what its values are to be multiplied by."""
        if asked in ("mae", "mse"):
            return asked, float(self.c if asked == "mae" else self.c**2)
        share = exact(asked, "cost")
        one, two = share * self.c, (1 - share) * self.c**2
        return one / (one + two), float(one + two)

    def back(self, made: Quantizer) -> Quantizer:
        """A quantizer on [-1, 1] as one on [-c, c]."""
        bins, knots = tuple(b * self.c for b in made.bins), tuple(k * self.c for k in made.knots)
        return Quantizer(knots, bins, made.ends, made.name)
