"""Additive noise on a group under several convex bounds at once (`models.convex_bounds`).

    min E loss   s.t.  f a distribution on the group; every bound of a difference μ holds of (f, f(· + μ))

Bounds are numbers here, not parameters: notions that amount to infinitely many add those that an answer breaks, and the
optimum over the ones that are stated is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from models.convex_bounds import bound_rows, check_kinds, is_conic
from models.modulo import MASS_SCALE, shifted
from models.modulo_constraints import UserConstraints
from models.requirements import Bound
from solvers.arrays import Vector
from solvers.canonical import compile
from solvers.program import Program, stating

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["ModuloNotionModel"]

Shift = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ModuloNotionModel:
    """sizes: of the group; bounds: of every difference; loss: (N,), or (answers, N) for the worst answer; constraints:
    more linear ones on f (N,)."""

    sizes: tuple[int, ...]
    bounds: Mapping[Shift, Sequence[Bound]]
    loss: Vector
    constraints: UserConstraints | None = None

    def __post_init__(self) -> None:
        check_kinds(chain(*self.bounds.values()))

    @stating
    def problem(self) -> cp.Problem:
        """The model in CVXPY."""
        import cvxpy as cp

        f = cp.Variable(math.prod(self.sizes), name="f", bounds=[0, 1])
        rows: list[Any] = [cp.sum(f) == 1]
        for mu, several in self.bounds.items():
            for k, bound in enumerate(several):
                rows += bound_rows(f, f[shifted(self.sizes, mu)], bound, f"{'_'.join(map(str, mu))}_{k}")
        rows += self.constraints(f) if self.constraints else []
        distortion = cp.max(self.loss @ f) if self.loss.ndim == 2 else self.loss @ f
        return cp.Problem(cp.Minimize(distortion), rows)

    @cached_property
    def program(self) -> Program:
        """The compiled model."""
        conic, count = is_conic(chain(*self.bounds.values())), sum(map(len, self.bounds.values()))
        name = f"noise on {'x'.join(map(str, self.sizes))} under {count} bounds"
        return compile(self.problem(), name, scale=1.0 if conic else MASS_SCALE, conic=conic)
