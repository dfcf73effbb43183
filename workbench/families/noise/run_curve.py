"""One run of noise within a privacy curve, for many runs (`workbench.families.many_runs`)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from workbench.families.convex_request import design
from workbench.families.design import Design
from workbench.families.noise.notion_design import NoiseNotionRequest
from workbench.families.noise.request import NoiseRequest

__all__ = ["within_curve"]


def within_curve(request: NoiseRequest, curve: Sequence[tuple[Fraction, Fraction]]) -> Design:
    """The least-cost noise of one run that is (ε, δ)-private for all points of a curve. Raises as its session."""
    curve_request = NoiseNotionRequest(
        question=request.question, notion="curve", values={"curve": curve}, cost=request.cost, prior=request.prior,
        constraints=request.constraints, solver=request.solver, options=request.options, check=request.check,
    )  # fmt: skip
    object.__setattr__(curve_request, "family", request.family)
    return design(curve_request)
