"""The least-loss private channel between finitely many labels and outputs, by linear programming.

    min Σ_y p_y Σ_o M[y,o] ℓ(o,y)   s.t.  M >= 0, Σ_o M[y,o] = 1, and the privacy rows:                       (2)

    pure, all pairs     t_o <= M[y,o] <= e^ε t_o              one column variable: 2 k m rows instead of k (k-1) m
    pure, a graph       M[y,o] <= e^ε M[y',o]                 for both orders of every neighbouring pair
    metric              M[y,o] <= e^{ε d(y,y')} M[y',o]       a graph with a budget for each pair; on a line the
                                                              consecutive labels suffice, their budgets add up
    dp with δ           s >= M[y,o] - e^ε M[y',o], s >= 0, Σ_o s <= δ    for both orders of every pair

The column form has the same feasible channels: t_o = min_y M[y,o] serves whenever any t does.

| paper ("Regression with Label DP", App. A) | here                     |
|--------------------------------------------|--------------------------|
| M_{y→ŷ}                                    | variable "M" (k, m)      |
| p_ŷ^min                                    | variable "t" (m,)        |
| 𝒴, 𝒪, P                                    | labels, outputs, prior   |
| e^ε                                        | parameter "exp_epsilon"  |

Optional constraints, by name (Sec. 6 of the paper asks for the first, Cormode et al. 2018 for the others):

    unbiased          Σ_o o M[y,o] = y
    row-monotone      M[y,·] falls as o moves away from y
    column-monotone   M[·,o] falls as y moves away from o
    symmetric         M[y,o] = M[k-1-y, m-1-o]
    honest            M[y,y] >= M[y,o] for every o
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from solvers.canonical import compile
from solvers.program import Program, stating

__all__ = ["CONSTRAINTS", "ChannelModel", "consecutive"]

Vector = NDArray[np.float64]
Pairs = tuple[tuple[int, int], ...]

CONSTRAINTS = ("unbiased", "row-monotone", "column-monotone", "symmetric", "honest")


def consecutive(k: int) -> Pairs:
    """The neighbours (i, i+1) of k answers in a row: the relation of counts, and the generator of the line's metric."""
    return tuple((i, i + 1) for i in range(k - 1))


@dataclass(frozen=True, eq=False)
class ChannelModel:
    """One channel model, compiled once; e^ε and δ are its parameters.

    Attributes:
        labels: (k,), outputs: (m,), the values in increasing order; prior: (k,), sums to 1.
        cost: (k, m) loss of every output for every label; inf forbids an output to a label of positive probability.
        pairs: unordered neighbouring label positions, or None for all pairs.
        groups: which entry of "exp_epsilon" each pair takes; all 0 for one ε. Only with pairs.
        approximate: whether the notion is DP with δ; `pairs` must be given (all of them for all pairs).
        constraints: names from CONSTRAINTS.
    """

    labels: Vector
    outputs: Vector
    prior: Vector
    cost: Vector
    pairs: Pairs | None = None
    groups: tuple[int, ...] = ()
    approximate: bool = False
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.constraints:
            if name not in CONSTRAINTS:
                raise ValueError(f"constraints must be among {', '.join(CONSTRAINTS)}. Got {name!r}.")
        if self.approximate and self.pairs is None:
            raise ValueError("pairs must be listed for a notion with delta. Got none.")
        shape = (self.labels.size, self.outputs.size)
        if self.cost.shape != shape:
            raise ValueError(f"cost must be of shape {shape}. Got {self.cost.shape}.")

    @stating
    def problem(self) -> cp.Problem:
        """The model in CVXPY."""
        k, m = self.cost.shape
        weights = np.where(np.isfinite(self.cost), self.cost, 0.0) * self.prior[:, None]
        M = cp.Variable((k, m), name="M", bounds=[0, self._upper()])
        exp_epsilon = cp.Parameter(max(self.groups, default=0) + 1, name="exp_epsilon", nonneg=True)
        rows: list[Any] = [cp.sum(M, axis=1) == 1]
        if self.pairs is None:
            t = cp.Variable((1, m), name="t", bounds=[0, 1])
            column = np.ones((k, 1)) @ t
            rows += [column <= M, exp_epsilon[0] * column >= M]
        else:
            rows += self._graph(M, exp_epsilon, self.pairs)
        rows += [row.set_label(name) for name in self.constraints for row in self._constraint(name, M)]
        return cp.Problem(cp.Minimize(cp.sum(cp.multiply(weights, M))), rows)

    def _upper(self) -> Any:
        allowed = np.isfinite(self.cost) | (self.prior[:, None] == 0)
        return 1 if allowed.all() else allowed.astype(float)

    def _graph(self, M: Any, exp_epsilon: Any, pairs: Pairs) -> list[Any]:
        """The privacy rows of neighbouring pairs, one block for each budget."""
        m = self.outputs.size
        groups = np.array(self.groups or (0,) * len(pairs))
        ends = np.array(pairs, dtype=int).reshape(-1, 2)
        rows: list[Any] = []
        for group in range(groups.max(initial=-1) + 1):
            i, j = ends[groups == group].T
            first, second = np.concatenate([i, j]), np.concatenate([j, i])  # neighbours are symmetric
            if not first.size:
                continue
            excess = M[first, :] - exp_epsilon[group] * M[second, :]
            if not self.approximate:
                rows.append(excess <= 0)
                continue
            s = cp.Variable((first.size, m), name=f"s_{group}", bounds=[0, 1])
            rows += [s >= excess, cp.sum(s, axis=1) <= cp.Parameter(name="delta", nonneg=True)]
        return rows

    def _constraint(self, name: str, M: Any) -> list[Any]:
        k, m = self.cost.shape
        if name == "unbiased":
            return [M @ self.outputs == self.labels]
        if name == "symmetric":
            return [M[y, :] == M[k - 1 - y, ::-1] for y in range((k + 1) // 2)]
        if name == "honest":
            at = self._own_outputs()
            return [M[np.arange(k), at][:, None] @ np.ones((1, m)) >= M]
        across = self.outputs[None, :] - self.labels[:, None]  # (k, m)
        if name == "row-monotone":
            left = np.argwhere(across[:, 1:] <= 0)  # both o and the next one are at or below y
            right = np.argwhere(across[:, :-1] >= 0)
            return [M[a[:, 0], a[:, 1] + up] <= M[a[:, 0], a[:, 1] + 1 - up]
                    for a, up in ((left, 0), (right, 1)) if a.size]  # fmt: skip
        below = np.argwhere(across[1:, :] >= 0)  # both y and the next one are at or below o
        above = np.argwhere(across[:-1, :] <= 0)
        return [M[a[:, 0] + up, a[:, 1]] <= M[a[:, 0] + 1 - up, a[:, 1]]
                for a, up in ((below, 0), (above, 1)) if a.size]  # fmt: skip

    def _own_outputs(self) -> NDArray[np.intp]:
        """The position of each label among the outputs. Raises ValueError when one is missing."""
        at = np.minimum(np.searchsorted(self.outputs, self.labels), self.outputs.size - 1)
        if not np.array_equal(self.outputs[at], self.labels):
            raise ValueError("honest channels need every label among the outputs.")
        return at

    @cached_property
    def program(self) -> Program:
        """The compiled model."""
        kind = "all pairs" if self.pairs is None else f"{len(self.pairs)} neighbouring pairs"
        return compile(self.problem(), f"channel from {self.labels.size} labels to {self.outputs.size} outputs, {kind}")

    def values(self, epsilons: Sequence[float], delta: float = 0.0) -> Mapping[str, Any]:
        """Parameter values of the program: one ε per group, and δ where the notion has one."""
        named: dict[str, Any] = {"exp_epsilon": np.exp(np.asarray(epsilons, dtype=float))}
        return named | ({"delta": float(delta)} if self.approximate else {})
