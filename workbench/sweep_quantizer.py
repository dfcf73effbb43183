"""Sweeps over quantizers: every point is a design of its own (no hot start); check = "certify" proves each law."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from workbench import rooms
from workbench.design_quantizer import METHODS, design, validate
from workbench.mechanisms.quantization import Quantization
from workbench.mechanisms.quantizer import error_function
from workbench.numbers import exact, positive
from workbench.privacy.quantizer import METRICS
from workbench.sweep_models import (
    SECONDS,
    Answer,
    Parameter,
    Path,
    SweepModel,
    chosen,
    count,
    designed,
    listed,
    one,
    optional,
    solver,
    text,
)

__all__ = ["MODEL"]


def _cost(value: Any, name: str) -> str:
    """mae, mse, or a share of mae."""
    error_function(value)
    return value if value in ("mae", "mse") else one(exact)(value, name)  # type: ignore[no-any-return]


class _Quantizer(SweepModel):
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "bins": Parameter(listed(one(exact))),
        "levels": Parameter(count(2, 64)),
        "c": Parameter(one(positive), "1"),
        "density": Parameter(text, "uniform"),
        "method": Parameter(chosen(*METHODS), "exact"),
        "knots": Parameter(count(0, 2001)),
        "cost": Parameter(_cost),
        "metric": Parameter(chosen(*METRICS)),
        "reach": Parameter(one(positive)),
        "inputs": Parameter(count(2, 1000)),
        "starts": Parameter(count(1, 7), 4),
        "check": Parameter(chosen("audit", "certify"), "audit"),
        "solver": Parameter(solver, "highs"),
        "time_limit": SECONDS,
        "epsilon": Parameter(one(positive), required=True, hot=True),
    }

    def content(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """As given: bins and densities have one spelling."""
        return dict(fixed)

    def open(self, fixed: Mapping[str, Any]) -> Path:
        return _QuantizerPath(fixed)


class _QuantizerPath(Path):
    def __init__(self, fixed: Mapping[str, Any]) -> None:
        self._question = Quantization(fixed["bins"], levels=fixed["levels"], c=fixed["c"], density=fixed["density"])
        names = ("method", "knots", "cost", "metric", "reach", "inputs")
        self._request = {name: fixed[name] for name in names}
        self._request["time_limit"] = optional(fixed["time_limit"], lambda s: float(Fraction(s)))
        self._more = {"starts": fixed["starts"], "solver": fixed["solver"], "certify": fixed["check"] == "certify"}

    def admit(self, point: Mapping[str, Any]) -> None:
        validate(self._question, epsilon=point["epsilon"], **self._request)

    def solve(self, point: Mapping[str, Any], *, cold: bool) -> Answer:
        made = design(self._question, epsilon=point["epsilon"], **self._request, **self._more)
        found = made.to_dict()
        bins = ",".join(map(repr, found["bins"]))
        return designed(made) | {"mae": found["mae"], "mse": found["mse"], "bins_used": bins}


rooms.check()
MODEL = _Quantizer()
