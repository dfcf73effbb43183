"""The grid that channels are verified on: requests whose optimum a closed form knows (`channel.oracle_check`)."""

from __future__ import annotations

from workbench.families.verification import Group
from workbench.mechanisms.finite_query import FiniteQuery

__all__ = ["groups"]


def groups(small: bool) -> list[Group]:
    """Counts, everybody a neighbour, the worst prior, local channels; each at several ε."""
    points = [{"epsilon": epsilon} for epsilon in ((0.5, 1.5) if small else (0.2, 0.5, 1.0, 2.0))]
    count = FiniteQuery("0..6" if small else "0..20", max_shift=1)
    worst = FiniteQuery("0..4" if small else "0..8", max_shift=1, prior="worst")
    every = FiniteQuery("0..4", neighbours="all")
    return [
        Group(count, {"notion": "pure", "loss": "squared"}, points),
        Group(count, {"notion": "pure", "loss": "absolute"}, points),
        Group(count, {"notion": "pure", "loss": "error-rate"}, points),
        Group(worst, {"notion": "pure", "loss": "absolute"}, points),
        Group(every, {"notion": "pure", "loss": "error-rate"}, points),
    ]
