"""The grid that quantizers are verified on: two outputs ±B with their only law, and the limit for many."""

from __future__ import annotations

from workbench.families.verification import Group
from workbench.mechanisms.quantization import Quantization

__all__ = ["groups"]


def groups(small: bool) -> list[Group]:
    """Two given outputs by every method that takes them; optimised outputs beside their limit."""
    two = [(2.5, (1.0, 2.0))] if small else [(1.5, (2.0, 3.0)), (2.5, (1.0, 2.0)), (4.0, (0.6, 1.0, 2.0))]
    given = [
        Group(Quantization([-reach, reach]), {"method": method}, [{"epsilon": epsilon} for epsilon in epsilons])
        for reach, epsilons in two
        for method in ("exact", "product")
    ]
    levels = (2,) if small else (2, 3, 4)
    points = [{"epsilon": epsilon} for epsilon in ((1.0,) if small else (0.5, 1.0, 2.0))]
    return [*given, *(Group(Quantization(levels=m), {"method": "exact", "starts": 1}, points) for m in levels)]
