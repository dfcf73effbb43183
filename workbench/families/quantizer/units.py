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

LEAST, LARGEST = Fraction(1, 10**9), 30  # e^epsilon is a coefficient of the program


@dataclass(frozen=True)
class Units:
    """The scale of a question, and of the numbers that come back."""

    c: Fraction

    def question(self, given: Quantization) -> Quantization:
        """The same question on [-1, 1]."""
        bins = None if given.bins is None else [b / self.c for b in given.bins]
        levels = given.levels if bins is None else None
        return Quantization(bins, levels=levels, density=given.density.scaled(1.0))

    def epsilon(self, given: Fraction, metric: str | None) -> Fraction:
        """The budget on [-1, 1]. Raises InvalidRequest outside [1e-9, 30] there."""
        scale = self.c ** {None: 0, "absolute": 1, "squared": 2}[metric]
        if given * scale < LEAST:
            InvalidRequest.must("epsilon", f"at least {float(LEAST / scale):g}", given)
        if given * scale > LARGEST:
            InvalidRequest.must("epsilon", f"at most {LARGEST / float(scale):g} (a program has e^epsilon)", given)
        return given * scale

    def loss(self, given: Any) -> tuple[Any, float]:
        """The loss on [-1, 1], and what its values are to be multiplied by."""
        if given in ("absolute", "squared"):
            return given, float(self.c if given == "absolute" else self.c**2)
        share = exact(given, "loss")
        absolute, squared = share * self.c, (1 - share) * self.c**2
        return absolute / (absolute + squared), float(absolute + squared)

    def back(self, mechanism: Quantizer) -> Quantizer:
        """A quantizer on [-1, 1] as one on [-c, c]."""
        bins, knots = tuple(b * self.c for b in mechanism.bins), tuple(k * self.c for k in mechanism.knots)
        return Quantizer(knots, bins, mechanism.ends, mechanism.name)
