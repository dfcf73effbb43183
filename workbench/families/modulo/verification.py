"""The grid that noise is verified on: every kind of neighbour relation that some closed form covers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from workbench.families.verification import Group
from workbench.mechanisms.modulo import ModuloNoise
from workbench.privacy.notions import notion as named

__all__ = ["groups"]


def _questions(sizes: Sequence[int]) -> list[ModuloNoise]:
    relations = ({"shifts": [1]}, {"shifts": [3]}, {"max_shift": 2}, {"max_shift": 3}, {"shifts": [1, 3]})
    scalars = [
        ModuloNoise(n=n, directed=directed, **relation)
        for n in sizes
        for directed in (True, False)
        for relation in relations
    ]
    vectors = [
        ModuloNoise(sizes=orders, shifts=shifts, directed=directed)
        for directed in (True, False)
        for orders, shifts in (((3, 3), [(0, 1), (1, 0)]), ((2, 5), [(1, 2), (0, 1)]))
    ]
    return scalars + vectors


def groups(small: bool) -> list[Group]:
    """Questions x notions, each at every ε and δ (δ > 0 where the notion has one)."""
    epsilons, deltas = ((0.5, 1.5), (0.0, 0.1)) if small else ((0.5, 1.0, 1.5), (0.0, 0.01, 0.1, 0.3))
    return [
        Group(
            question,
            {"notion": notion},
            [
                {"epsilon": epsilon, "delta": delta}
                for epsilon, delta in itertools.product(epsilons, deltas)
                if delta == 0 or named(notion).has_delta
            ],
        )
        for question, notion in itertools.product(_questions((5,) if small else (4, 6, 8)), ("pure", "dp", "pdp"))
    ]
