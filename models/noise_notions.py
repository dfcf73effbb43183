"""Additive noise on a group under several bounds at once: hockey sticks, Rényi moments, relative entropies.

    min E cost   s.t.  f a distribution on the group, and for every difference μ, with g(η) = f(η + μ),

    hockey-stick (m, δ)     Σ max(0, f - m g) <= δ           y >= f - m g, y >= 0, Σ y <= δ; with δ = 0: f <= m g
    power-cone (α, M)       Σ f^α g^(1-α) <= M               t^(1/α) g^(1-1/α) >= f: t >= f^α g^(1-α), Σ t <= M
    relative-entropy (K)    Σ f ln(f/g) <= K                 f exp(-t/f) <= g: t >= f ln(f/g), Σ t <= K

All are jointly convex in (f, g), so the whole is: a linear program with hockey sticks alone, else a conic one. Bounds
are numbers here, not parameters: notions that amount to infinitely many add those that an answer breaks, and the
optimum over the ones that are stated is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from models.noise import MASS_SCALE, UserConstraints, shifted
from models.requirements import HOCKEY_STICK, POWER_CONE, RELATIVE_ENTROPY, Bound
from solvers.program import Program, compile, stating

__all__ = ["NoiseNotionModel"]

Shift = tuple[int, ...]
_KINDS = (HOCKEY_STICK, POWER_CONE, RELATIVE_ENTROPY)


@dataclass(frozen=True, eq=False)
class NoiseNotionModel:
    """sizes: of the group; bounds: of every difference; cost: (N,), or (answers, N) for the worst answer; constraints:
    more linear ones on f (N,)."""

    sizes: tuple[int, ...]
    bounds: Mapping[Shift, Sequence[Bound]]
    cost: NDArray[np.float64]
    constraints: UserConstraints | None = None

    def __post_init__(self) -> None:
        for bound in {bound for several in self.bounds.values() for bound in several}:
            if bound.kind not in _KINDS:
                raise ValueError(f"bounds must be one of {', '.join(_KINDS)}. Got {bound.kind}.")

    @property
    def conic(self) -> bool:
        """Whether there are cones."""
        return any(bound.kind != HOCKEY_STICK for several in self.bounds.values() for bound in several)

    @stating
    def problem(self) -> cp.Problem:
        """The model in CVXPY."""
        N = math.prod(self.sizes)
        f = cp.Variable(N, name="f", bounds=[0, 1])
        rows: list[Any] = [cp.sum(f) == 1]
        for mu, several in self.bounds.items():
            g, label = f[shifted(self.sizes, mu)], "_".join(map(str, mu))
            for k, bound in enumerate(several):
                if bound.kind == POWER_CONE:
                    t = cp.Variable(N, name=f"t_{label}_{k}", bounds=[0, bound.limit])
                    rows += [cp.sum(t) <= bound.limit, cp.PowCone3D(t, g, f, np.full(N, 1 / bound.level))]
                elif bound.kind == RELATIVE_ENTROPY:
                    t = cp.Variable(N, name=f"t_{label}_{k}", bounds=[-1, bound.limit + 1])  # f ln(f/g) >= f - g
                    rows += [cp.sum(t) <= bound.limit, cp.ExpCone(-t, f, g)]
                elif bound.limit == 0:
                    rows.append(f <= bound.level * g)
                else:
                    y = cp.Variable(N, name=f"y_{label}_{k}", bounds=[0, 1])
                    rows += [y >= f - bound.level * g, cp.sum(y) <= bound.limit]
        rows += self.constraints(f) if self.constraints else []
        distortion = cp.max(self.cost @ f) if self.cost.ndim == 2 else self.cost @ f
        return cp.Problem(cp.Minimize(distortion), rows)

    @cached_property
    def program(self) -> Program:
        """The compiled model."""
        count = sum(map(len, self.bounds.values()))
        name = f"noise on {'x'.join(map(str, self.sizes))} under {count} bounds"
        return compile(self.problem(), name, scale=1.0 if self.conic else MASS_SCALE, conic=self.conic)
