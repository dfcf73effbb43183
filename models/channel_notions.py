"""A finite channel under several convex bounds at once: `models.channel` with the rows of `models.convex_bounds`.

min Σ_y p_y Σ_o M[y,o] ℓ(o,y)   s.t.  rows are distributions; every bound of an ordered pair holds of (M[y], M[y'])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from models.channel import ChannelModel, Pairs
from models.convex_bounds import bound_rows, check_kinds, is_conic
from models.modulo import MASS_SCALE
from models.requirements import Bound
from solvers.canonical import compile
from solvers.program import Program

__all__ = ["ChannelNotionModel"]


@dataclass(frozen=True, eq=False)
class ChannelNotionModel(ChannelModel):
    """bounds: of every ordered pair of label positions; the rest as in `ChannelModel`, `pairs` being ()."""

    bounds: Mapping[tuple[int, int], Sequence[Bound]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kinds(chain(*self.bounds.values()))

    def _graph(self, M: Any, exp_epsilon: Any, pairs: Pairs, delta: Any) -> list[Any]:
        return [
            row
            for (i, j), several in self.bounds.items()
            for k, bound in enumerate(several)
            for row in bound_rows(M[i, :], M[j, :], bound, f"{i}_{j}_{k}")
        ]

    @cached_property
    def program(self) -> Program:
        """The compiled model."""
        k, m = self.loss.shape
        count = sum(map(len, self.bounds.values()))
        conic = is_conic(chain(*self.bounds.values()))
        name = f"channel from {k} labels to {m} outputs under {count} bounds"
        return compile(self.problem(), name, scale=1.0 if conic else MASS_SCALE, conic=conic)
