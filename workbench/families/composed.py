"""What every family says of designs for many runs: what may be asked, and the composition it proved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest
from workbench.privacy.notions import notion

if TYPE_CHECKING:
    from workbench.families.design import Design


def check_runs(request: Any) -> None:
    """Refuse what cannot be asked for more than one run. Raises InvalidRequest."""
    if not notion(request.notion).composes or request.minimise != "loss" or isinstance(request.epsilon, Mapping):
        InvalidRequest.must("runs", "1 but for notion dp, one epsilon, and minimise error", request.runs)
    if not request.certified and request.check != "audit":
        InvalidRequest.must("runs", f"1 where check is {request.check}", request.runs)


def composed_facts(design: Design) -> list[tuple[str, str]]:
    """The composition in a report; nothing of one run."""
    composed = design.details.get("composed")
    if composed is None:
        return []
    runs, epsilon, delta = composed["runs"], composed["epsilon"], composed["delta"]
    return [("composed", f"{runs} runs: delta at most {delta!r} at epsilon = {epsilon:g} (proven)")]


def composed_exact(design: Design) -> dict[str, Any]:
    """The exact audit of one run, with the composition, for JSON."""
    from workbench.exact.numbers import jsonable

    return {**{name: jsonable(value) for name, value in design.exact.items()}, "composed": design.details["composed"]}
