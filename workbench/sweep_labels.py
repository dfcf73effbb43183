"""Sweeps over label randomizers: every point is a design of its own, audited exactly (no hot start); check = "certify"
proves each randomizer."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from workbench import rooms

# isort: split
from models.channel import CONSTRAINTS
from models.losses import loss_named
from workbench.design_labels import METHODS, NOTIONS, design, validate
from workbench.mechanisms.labels import Labels
from workbench.numbers import positive
from workbench.sweep_models import (
    SECONDS,
    Answer,
    Parameter,
    Path,
    SweepModel,
    chosen,
    designed,
    listed,
    one,
    optional,
    share,
    solver,
    text,
)

__all__ = ["MODEL"]


def _labels(value: Any, name: str) -> dict[str, list[float]]:
    """ "0..20", or a CSV of labels and weights: their content, since files change."""
    return Labels.parse(text(value, name)).to_dict()


def _outputs(value: Any, name: str) -> list[float]:
    """ "0..20", or a CSV."""
    return [float(v) for v in Labels.parse(text(value, name)).values]


def _loss(value: Any, name: str) -> str:
    with rooms.speaking_our_errors():
        return loss_named(text(value, name)).name


class _LabelSweep(SweepModel):
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "labels": Parameter(_labels, required=True),
        "loss": Parameter(_loss, "squared"),
        "method": Parameter(chosen(*METHODS), "bins"),
        "outputs": Parameter(_outputs),
        "neighbours": Parameter(chosen("all", "consecutive"), "all"),
        "notion": Parameter(chosen(*NOTIONS), "pure"),
        "constraints": Parameter(listed(chosen(*CONSTRAINTS)), []),
        "check": Parameter(chosen("audit", "certify"), "audit"),
        "solver": Parameter(solver, "highs"),
        "time_limit": SECONDS,
        "delta": Parameter(share, "0", hot=True),
        "epsilon": Parameter(one(positive), required=True, hot=True),
    }

    def content(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """The labels and weights themselves."""
        return dict(fixed)

    def backend(self, fixed: Mapping[str, Any]) -> str | None:
        """Bins are found without a solver."""
        return None if fixed["method"] in ("bins", "printed") else str(fixed["solver"])

    def open(self, fixed: Mapping[str, Any]) -> Path:
        return _LabelPath(fixed)


class _LabelPath(Path):
    def __init__(self, fixed: Mapping[str, Any]) -> None:
        self._question = Labels(fixed["labels"]["values"], fixed["labels"]["prior"])
        names = ("loss", "method", "outputs", "neighbours", "notion", "solver")
        self._request = {name: fixed[name] for name in names}
        self._request["certify"] = fixed["check"] == "certify"
        self._request["constraints"] = tuple(fixed["constraints"])
        self._request["time_limit"] = optional(fixed["time_limit"], lambda s: float(Fraction(s)))

    def admit(self, point: Mapping[str, Any]) -> None:
        validate(self._question, epsilon=point["epsilon"], delta=point["delta"], **self._request)

    def solve(self, point: Mapping[str, Any], *, cold: bool) -> Answer:
        made = design(self._question, epsilon=point["epsilon"], delta=point["delta"], **self._request)
        return designed(made) | {"outputs_used": made.d}


MODEL = _LabelSweep()
