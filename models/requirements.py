"""What a model can require of two neighbouring distributions P and Q, by name and as plain numbers; m = e^ε.

    "hockey-stick"        Σ max(0, P - m Q) <= δ              linear
    "mass-above-ratio"    Σ P over {P > m Q} <= δ             linear with one binary for each outcome
    either, with δ = 0    P <= m Q                            linear
    "power-cone"          Σ P^α Q^(1-α) <= M                  a power cone for each outcome
    "relative-entropy"    Σ P ln(P/Q) <= K                    an exponential cone for each outcome

A notion of privacy says which of them it needs; no model and no oracle knows a notion by name.

As rows of a convex program, one function for every model:

    hockey-stick        y >= P - m Q, y >= 0, Σ y <= δ; with δ = 0: P <= m Q
    power-cone          t^(1/α) Q^(1-1/α) >= P: t >= P^α Q^(1-α), Σ t <= M
    relative-entropy    P exp(-t/P) <= Q: t >= P ln(P/Q), Σ t <= K

All are jointly convex in (P, Q). A hockey stick is linear, the others need a conic solver.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

RatioBound: TypeAlias = Literal["hockey-stick", "mass-above-ratio"]

HOCKEY_STICK: RatioBound = "hockey-stick"
MASS_ABOVE_RATIO: RatioBound = "mass-above-ratio"
RATIO_BOUNDS: tuple[RatioBound, ...] = (HOCKEY_STICK, MASS_ABOVE_RATIO)
POWER_CONE, RELATIVE_ENTROPY = "power-cone", "relative-entropy"


@dataclass(frozen=True)
class Bound:
    """One bound on (P, Q) in numbers. level: m of a hockey stick, α of a power cone; limit: δ, M, K."""

    kind: str
    level: float
    limit: float


_KINDS = (HOCKEY_STICK, POWER_CONE, RELATIVE_ENTROPY)


def check_kinds(bounds: Iterable[Bound]) -> None:
    """Raise ValueError for a bound of another kind."""
    for bound in bounds:
        if bound.kind not in _KINDS:
            raise ValueError(f"bounds must be one of {', '.join(_KINDS)}. Got {bound.kind}.")


def is_conic(bounds: Iterable[Bound]) -> bool:
    """Whether any needs cones."""
    return any(bound.kind != HOCKEY_STICK for bound in bounds)


def bound_rows(p: Any, q: Any, bound: Bound, label: str) -> list[Any]:
    """The rows that state a bound; p, q: expressions (n,); label: of the variables that they need."""
    import cvxpy as cp

    n = p.shape[0]
    if bound.kind == POWER_CONE:
        t = cp.Variable(n, name=f"t_{label}", bounds=[0, bound.limit])
        return [cp.sum(t) <= bound.limit, cp.PowCone3D(t, q, p, np.full(n, 1 / bound.level))]
    if bound.kind == RELATIVE_ENTROPY:  # P ln(P/Q) >= P - Q
        t = cp.Variable(n, name=f"t_{label}", bounds=[-1, bound.limit + 1])
        return [cp.sum(t) <= bound.limit, cp.ExpCone(-t, p, q)]
    if bound.limit == 0:
        return [p <= bound.level * q]
    y = cp.Variable(n, name=f"y_{label}", bounds=[0, 1])
    return [y >= p - bound.level * q, cp.sum(y) <= bound.limit]
