"""What a notion requires, handed to a model: one bound on ratios for every neighbour, of one kind and one δ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from models.requirements import HOCKEY_STICK, MASS_ABOVE_RATIO, RATIO_BOUNDS, RatioBound
from workbench.errors import InvalidRequest
from workbench.privacy.notions import HockeyStick, MassAboveRatio, Notion, known, notion

__all__ = ["HOCKEY_STICK", "MASS_ABOVE_RATIO", "Bounds", "ratio_bounds", "ratio_kind", "ratio_notion", "ratio_notions"]

_KINDS: dict[type, RatioBound] = {HockeyStick: HOCKEY_STICK, MassAboveRatio: MASS_ABOVE_RATIO}


@dataclass(frozen=True)
class Bounds:
    """kind: of `models.requirements`; epsilons: ε of every neighbour; delta: one for all."""

    kind: RatioBound
    epsilons: Mapping[Any, Fraction]
    delta: Fraction

    @property
    def mass(self) -> bool:
        """Whether the mass above a ratio is bounded, by binaries, and not the hockey stick."""
        return self.kind == MASS_ABOVE_RATIO and bool(self.delta)


def ratio_bounds(named: str | Notion, epsilons: Mapping[Any, Fraction], delta: Fraction | None = None) -> Bounds:
    """What a notion requires at budgets ε, neighbour by neighbour, and δ (None: one that is to be minimised).

    Raises InvalidRequest where it is anything but one bound on the ratio P/Q.
    """
    measure = notion(named)
    allowed = Fraction(1 if measure.has_delta else 0) if delta is None else delta
    stated = {}
    for label, epsilon in epsilons.items():
        required = measure.requires({"epsilon": epsilon, "delta": allowed})
        if len(required) != 1 or not isinstance(required[0], (HockeyStick, MassAboveRatio)):
            kinds = " and ".join(part.kind for part in required)
            InvalidRequest.must("notion", f"one that requires {' or '.join(RATIO_BOUNDS)}", f"{measure.name} ({kinds})")
        stated[label] = required[0]
    (kind,), (share,) = (
        {type(part) for part in stated.values()},
        {part.delta for part in stated.values()},
    )
    return Bounds(_KINDS[kind], {label: part.epsilon for label, part in stated.items()}, share)


@lru_cache(maxsize=64)
def ratio_kind(named: str | Notion) -> RatioBound:
    """The kind of bound a notion puts on ratios. Raises InvalidRequest."""
    return ratio_bounds(named, {(): Fraction(1)}).kind


def ratio_notions() -> tuple[str, ...]:
    """The notions with budgets (ε, δ) that require one bound on ratios: what linear models can be asked for."""
    return tuple(name for name in known() if _bounds_ratio(name))


def _bounds_ratio(name: str) -> bool:
    if set(notion(name).parameters) != {"epsilon", "delta"}:
        return False
    try:
        ratio_kind(name)
    except InvalidRequest:
        return False
    return True


def ratio_notion(value: Any, name: str) -> str:
    """Reader of an option: the name of one of `ratio_notions`. Raises InvalidRequest."""
    try:
        if isinstance(value, str) and _bounds_ratio(value):
            return value
    except InvalidRequest:  # there is none of that name
        pass
    return InvalidRequest.must(name, f"one of {', '.join(ratio_notions())}", repr(value))
