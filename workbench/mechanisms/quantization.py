"""The question of a quantizer: which outputs, for which inputs, distributed how."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest
from workbench.exact.numbers import Real
from workbench.mechanisms.density import Density, spelled
from workbench.mechanisms.real_inputs import half_width, read_bins

__all__ = ["Quantization"]


@dataclass(frozen=True, init=False)
class Quantization:
    """Publish x in [-c, c] as one of m outputs, without bias.

    Args:
        bins: the outputs B_1 < ... < B_m with B_1 <= -c and B_m >= c: numbers, or a string "-3,-0.5,0.5,3".
        levels: m >= 2 instead, when the outputs are to be optimised.
        c: half the width of the input domain.
        density: of the inputs: "uniform", "normal:MU,SIGMA" (clipped to [-c, c]) or a `Density`.

    Raises:
        InvalidRequest.
    """

    bins: tuple[Fraction, ...] | None
    levels: int
    c: Fraction
    density: Density

    def __init__(self, bins: Any = None, *, levels: int | None = None, c: Real = 1, density: Any = "uniform") -> None:
        if (bins is None) == (levels is None):
            raise InvalidRequest("bins or levels must be given, and not both.")
        half = half_width(c)
        if bins is None and (not isinstance(levels, int) or isinstance(levels, bool) or not 2 <= levels <= 64):
            InvalidRequest.must("levels", "an integer in 2..64", levels)
        outputs = None if bins is None else read_bins(bins, half)
        object.__setattr__(self, "bins", outputs)
        object.__setattr__(self, "levels", len(outputs) if outputs is not None else levels)
        object.__setattr__(self, "c", half)
        object.__setattr__(self, "density", spelled(density, float(half)))

    @property
    def symmetric(self) -> bool:
        """Whether the bins (if any) and the density are symmetric around 0."""
        even = self.bins is None or all(a == -b for a, b in zip(self.bins, reversed(self.bins), strict=True))
        return even and self.density.symmetric

    def __repr__(self) -> str:
        what = (
            f"levels={self.levels}"
            if self.bins is None
            else "bins=[" + ", ".join(f"{b:g}" for b in map(float, self.bins)) + "]"
        )
        return f"Quantization({what}, c={float(self.c):g}, density={self.density.name})"
