"""Sweeps over the dyadic quantized Laplace mechanism: the best decoder privacy within a bit budget. No solver takes
part: objective is the decoder's ε, found by search over an exact mean length, and nothing bounds it from below."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from workbench.mechanisms.dyadic_bits import DataLaw
from workbench.mechanisms.dyadic_design import design_laplace
from workbench.mechanisms.elias import CODES, Code
from workbench.mechanisms.piecewise_linear import positive_float
from workbench.numbers import exact, positive
from workbench.sweep_models import Answer, Parameter, Path, SweepModel, chosen, one

__all__ = ["MODEL"]


class _Laplace(SweepModel):
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "code": Parameter(chosen(*CODES), "gamma"),
        "low": Parameter(one(exact), "-1"),
        "high": Parameter(one(exact), "1"),
        "bits": Parameter(one(positive), required=True, hot=True),
        "epsilon": Parameter(one(positive), required=True, hot=True),
    }
    chunk: ClassVar[int] = 4

    def content(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """As given."""
        return dict(fixed)

    def backend(self, fixed: Mapping[str, Any]) -> str | None:
        """There is none."""
        return None

    def open(self, fixed: Mapping[str, Any]) -> Path:
        return _LaplacePath(fixed)


class _LaplacePath(Path):
    def __init__(self, fixed: Mapping[str, Any]) -> None:
        self._code: Code = fixed["code"]
        self._data = DataLaw.uniform(*(float(Fraction(fixed[name])) for name in ("low", "high")))

    def admit(self, point: Mapping[str, Any]) -> None:
        self._numbers(point)

    def _numbers(self, point: Mapping[str, Any]) -> tuple[float, float]:
        epsilon, bits = (positive_float(float(Fraction(point[name])), name) for name in ("epsilon", "bits"))
        return epsilon, bits

    def solve(self, point: Mapping[str, Any], *, cold: bool) -> Answer:
        made = design_laplace(*self._numbers(point), self._code, self._data)
        reason = None if made.reachable else f"no ell brings the mean length to {made.bits:g} bits"
        return {
            "status": "found" if made.reachable else "infeasible", "reason": reason, "objective": made.decoder_epsilon,
            "bound": None, "start": "cold", "audited": False, "ell": made.ell, "mse": made.mse,
            "mean_bits": made.mean_bits, "least_bits": made.least_bits,
        }  # fmt: skip


MODEL = _Laplace()
