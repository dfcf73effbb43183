"""The least-loss private channel between finitely many labels and outputs, by linear programming.

    min Σ_y p_y Σ_o M[y,o] ℓ(o,y)   s.t.  M >= 0, Σ_o M[y,o] = 1, and the privacy rows:                       (2)

    pure, all pairs     t_o <= M[y,o] <= e^ε t_o              one column variable: 2 k m rows instead of k (k-1) m
    pure, a graph       M[y,o] <= e^ε M[y',o]                 for both orders of every neighbouring pair
    metric              M[y,o] <= e^{ε d(y,y')} M[y',o]       a graph with a budget for each pair; on a line the
                                                              consecutive labels suffice, their budgets add up
    several bounds      none here: tangents of both orders of every pair, as `workbench.models.convex.tangent_program`
                        needs them
    dp with δ           s >= M[y,o] - e^ε M[y',o], s >= 0, Σ_o s <= δ    for both orders of every pair
    pdp with δ          M[y,o] - e^ε M[y',o] <= b, s >= M[y,o] + b - 1, s >= 0, Σ_o s <= δ, b in {0, 1}

    worst case          min z  s.t.  z >= Σ_o M[y,o] ℓ(o,y) for every y
    minimum δ           min δ  s.t.  the expected (or every) loss is at most "max_loss"

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

Constraints of one's own are a function of the CVXPY variable M (k, m).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from workbench.models.convex.requirements import HOCKEY_STICK, MASS_ABOVE_RATIO, RatioBound
from workbench.models.statement import build_program
from workbench.solvers.arrays import Flags, Ints, Positions, Vector
from workbench.solvers.canonical import label_user_constraint
from workbench.solvers.program import Program, ignore_float_warnings

if TYPE_CHECKING:
    import cvxpy as cp

    from workbench.models.convex.tangent_program import Comparisons


_LEAST_COEFFICIENT = (
    1.1e-9  # Losses in rows of the program are 0 below this, where solvers would drop them.
)
_LARGEST_LOSS = 1e12  # Losses above this, which no good channel has, are stated as this.

Pairs = tuple[tuple[int, int], ...]
UserRows = Callable[["cp.Variable"], "Sequence[cp.Constraint]"]

CONSTRAINTS = ("unbiased", "row-monotone", "column-monotone", "symmetric", "honest")


def consecutive_pairs(k: int) -> Pairs:
    """The neighbours (i, i+1) of k answers in a row: the relation of counts, and the generator of the line's metric."""
    return tuple((i, i + 1) for i in range(k - 1))


@dataclass(frozen=True, eq=False)
class ChannelModel:
    """One channel model, compiled once; e^ε and δ are its parameters.

    Attributes:
        labels: (k,), outputs: (m,), the values in increasing order (positions where there are none); prior: (k,), sums
            to 1; None for the worst case over labels.
        loss: (k, m) loss of every output for every label; inf forbids an output to a label of positive probability.
        pairs: neighbouring label positions, unordered unless directed, or None for all pairs.
        directed: whether a pair (i, j) bounds row i by row j alone.
        groups: which entry of "exp_epsilon" each pair takes; all 0 for one ε. Only with pairs.
        approximate: whether the notion has a δ; `pairs` must be given (all of them for all pairs).
        constraints: names from CONSTRAINTS; more: constraints of one's own.
        requires: what the notion with δ bounds. minimise: "loss", or "delta" for a given max_loss.
        scale: of the program (`workbench.solvers.program`): units of 1/scale of probability.
        unit, shift: `loss` times unit, and shift of every channel, is the loss of the objective. The program is solved
            in `loss`, which should be near 1 where it matters.
        support: (k, m) masses that may be positive, None for all: a restriction, whose duals bound the whole all the
            same where they leave no reduced cost negative.
        binding: (ordered pairs, m) comparisons of masses that are stated with δ, in the order of "ratio" in
            `multipliers`; None for all: a relaxation.
    """

    labels: Vector
    outputs: Vector
    prior: Vector | None
    loss: Vector
    pairs: Pairs | None = None
    groups: Ints = ()
    has_delta: bool = False
    constraints: tuple[str, ...] = ()
    user_rows: UserRows | None = None
    requires: RatioBound = HOCKEY_STICK
    minimise: str = "loss"
    scale: float = 1.0
    unit: float = 1.0
    shift: float = 0.0
    support: Flags | None = None
    is_directed: bool = False
    stated_comparisons: Flags | None = None

    def __post_init__(self) -> None:
        for name in self.constraints:
            if name not in CONSTRAINTS:
                raise ValueError(
                    f"constraints must be among {', '.join(CONSTRAINTS)}. Got {name!r}."
                )
        if self.has_delta and self.pairs is None:
            raise ValueError("pairs must be listed for a notion with delta. Got none.")
        shape = (self.labels.size, self.outputs.size)
        if self.loss.shape != shape:
            raise ValueError(f"loss must be of shape {shape}. Got {self.loss.shape}.")

    @ignore_float_warnings
    def problem(self, cp: Any) -> Any:
        """The model, in CVXPY or another language of the same names (`workbench.models.statement`)."""
        k, m = self.loss.shape
        M = cp.Variable((k, m), name="M", bounds=[0, self._stated[1]])
        exp_epsilon = cp.Parameter(max(self.groups, default=0) + 1, name="exp_epsilon", nonneg=True)
        rows = [cp.sum(M, axis=1) == 1]
        delta = None
        if self.has_delta:
            least = self.minimise == "delta"
            delta = (
                cp.Variable(name="delta", bounds=[0, 1])
                if least
                else cp.Parameter(name="delta", nonneg=True)
            )
        if self.pairs is None:
            column = np.ones((k, 1)) @ cp.Variable((1, m), name="t", bounds=[0, 1])
            rows += [
                (column <= M).set_label("least"),
                (exp_epsilon[0] * column >= M).set_label("most"),
            ]
        else:
            rows += self._graph(cp, M, exp_epsilon, delta)
        rows += self.extra_rows(M)
        loss = cp.sum(cp.multiply(self._stated[0], M), axis=None if self.prior is not None else 1)
        if self.minimise == "delta":
            return cp.Problem(
                cp.Minimize(delta),
                [*rows, (loss <= cp.Parameter(name="max_loss")).set_label("losses")],
            )
        if self.prior is not None:
            return cp.Problem(cp.Minimize(loss), rows)
        worst = cp.Variable(name="worst", bounds=[0, float(self._stated[0].max(initial=0.0))])
        return cp.Problem(cp.Minimize(worst), [*rows, (loss <= worst).set_label("losses")])

    @cached_property
    def _stated(self) -> tuple[Vector, Any]:
        """(k, m) the losses that a solver is given, weighted by the prior where there is one, and the upper bounds of
        M. What is so small that it would drop is 0 in rows: repair and bound have the losses as they are."""
        allowed = np.isfinite(self.loss)
        losses = np.where(allowed, self.loss, 0.0)
        if self.prior is not None:
            losses = losses * self.prior[:, None]
            allowed |= self.prior[:, None] == 0
        if self.support is not None:
            allowed &= self.support
        losses = np.minimum(losses, _LARGEST_LOSS)
        if self.prior is None or self.minimise == "delta":
            losses = np.where(np.abs(losses) < _LEAST_COEFFICIENT, 0.0, losses)
        return losses, 1 if allowed.all() else allowed.astype(float)

    @property
    def has_changed_losses(self) -> bool:
        """Whether some losses are so small or so large that the program states others for them."""
        losses = np.where(np.isfinite(self.loss), self.loss, 0.0)
        return not np.array_equal(
            self._stated[0], losses if self.prior is None else losses * self.prior[:, None]
        )

    def _ordered(self) -> Iterator[tuple[int, Positions, Positions]]:
        """Every budget with the two ends of its pairs, in both orders unless they are directed."""
        ends = np.array(self.pairs or (), dtype=int).reshape(-1, 2)
        groups = np.array(self.groups or (0,) * len(ends), dtype=int)
        for group in sorted({*groups.tolist()}):  # what np.unique loads is slow to import
            i, j = ends[groups == group].T
            yield (
                (group, i, j)
                if self.is_directed
                else (group, np.concatenate([i, j]), np.concatenate([j, i]))
            )

    def _graph(self, cp: Any, M: Any, exp_epsilon: Any, delta: Any) -> list[Any]:
        """The privacy rows of neighbouring pairs, one block for each budget."""
        m = self.outputs.size
        rows = []
        start = 0
        for group, first, second in self._ordered():
            excess = M[first, :] - exp_epsilon[group] * M[second, :]
            if not self.has_delta:
                rows.append((excess <= 0).set_label(f"ratio_{group}"))
                continue
            s = cp.Variable((first.size, m), name=f"s_{group}", bounds=[0, 1])
            if self.requires == MASS_ABOVE_RATIO:
                b = cp.Variable((first.size, m), name=f"b_{group}", boolean=True)
                rows += [excess <= b, M[first, :] + b - 1 <= s]
            elif self.stated_comparisons is None:
                rows.append((excess <= s).set_label(f"ratio_{group}"))
            else:
                kept = np.nonzero(self.stated_comparisons[start : start + first.size])
                rows.append((excess[kept] <= s[kept]).set_label(f"ratio_{group}"))
            rows.append(cp.sum(s, axis=1) <= delta)
            start += first.size
        return rows

    def multipliers(self, row_dual: Vector) -> dict[str, Vector]:
        """The multipliers >= 0 of the rows in a dual vector, for losses as in `loss`: "ratio" (ordered pairs, m), group
        by group both orders of pairs unless directed, or "least" and "most" (k, m); "losses" (k,) or (1,) where there
        are any."""
        if self.minimise == "loss":
            row_dual = row_dual / self.unit
        shape = {"least": self.loss.shape, "most": self.loss.shape}
        blocks: dict[str, Vector] = {}
        for block in self.program.rows:
            values = np.maximum(-row_dual[block.start : block.start + block.size], 0.0)
            if block.name.startswith("ratio_"):
                blocks[block.name] = values
                if self.stated_comparisons is None:
                    blocks[block.name] = values.reshape((-1, self.outputs.size), order="F")
            elif block.name in ("least", "most", "losses"):
                blocks[block.name] = values.reshape(shape.get(block.name, (-1,)), order="F")
        ratios = [blocks.pop(name) for name in list(blocks) if name.startswith("ratio_")]
        if not ratios:
            return blocks
        stated = np.concatenate(ratios)
        if self.stated_comparisons is None:
            return blocks | {"ratio": stated}
        every = np.zeros(self.stated_comparisons.shape)
        every[self.stated_comparisons] = (
            stated  # Comparisons that are not stated have the multiplier 0.
        )
        return blocks | {"ratio": every}

    def extra_rows(self, M: Any) -> list[Any]:
        """The rows of the constraints that were asked for."""
        named = [
            label_user_constraint(row, name)
            for name in self.constraints
            for row in self._constraint(name, M)
        ]
        return [*named, *(self.user_rows(M) if self.user_rows else [])]

    def _constraint(self, name: str, M: Any) -> list[Any]:
        k, m = self.loss.shape
        if name == "unbiased":
            return [M @ self.outputs == self.labels]
        if name == "symmetric":
            return [M[y, :] == M[k - 1 - y, ::-1] for y in range((k + 1) // 2)]
        if name == "honest":
            own = M[np.arange(k), self._own_outputs()]
            return [own >= M[:, o] for o in range(m)]
        axis = int(name == "row-monotone")
        beyond = (self.outputs[None, :] - self.labels[:, None]) * (
            1 if axis else -1
        )  # (k, m), rises along the axis
        near, far = (
            np.argwhere(part)
            for part in (np.delete(beyond, 0, axis) <= 0, np.delete(beyond, -1, axis) >= 0)
        )
        step = np.eye(2, dtype=int)[axis]  # from a mass to the next
        return [
            (M[tuple(low.T)] <= M[tuple(high.T)])
            for low, high in ((near, near + step), (far + step, far))
            if low.size
        ]

    def _own_outputs(self) -> Positions:
        """The position of each label among the outputs. Raises ValueError when one is missing."""
        at = np.minimum(np.searchsorted(self.outputs, self.labels), self.outputs.size - 1)
        if not np.array_equal(self.outputs[at], self.labels):
            raise ValueError("honest channels need every label among the outputs.")
        return at

    @cached_property
    def program(self) -> Program:
        """The model as a program, without CVXPY unless constraints of one's own are stated in it."""
        under = "all pairs" if self.pairs is None else f"{len(self.pairs)} neighbouring pairs"
        name = f"channel from {self.labels.size} labels to {self.outputs.size} outputs, {under}"
        program = build_program(
            self.problem, name, self.scale, without_cvxpy=self.user_rows is None
        )
        if self.minimise != "loss":
            return program
        data = replace(program.template, c=program.template.c * self.unit)
        return replace(program, template=data, cost=1 / self.unit, shift=self.shift)

    def build_comparisons(self, pairs: Pairs) -> Comparisons:
        """The rows of ordered pairs of label positions, where bounds on them are stated by tangents."""
        from workbench.models.convex.tangent_program import Comparisons

        block = self.program.block("M")
        rows = np.arange(block.start, block.start + block.size).reshape(block.shape, order="F")
        first, second = np.array(pairs, dtype=int).reshape(-1, 2).T
        return Comparisons(
            sp.csr_array(sp.eye_array(self.program.shape[1])), rows[first], rows[second]
        )

    def values(
        self, epsilons: Sequence[float], delta: float = 0.0, max_loss: float = 0.0
    ) -> Mapping[str, Any]:
        """Parameter values of the program: one ε per group, and δ or max_loss (as `loss`) as the model asks."""
        named = {"exp_epsilon": np.exp(np.asarray(epsilons, dtype=float))}
        if self.minimise == "delta":
            return named | {"max_loss": float(max_loss)}
        return named | ({"delta": float(delta)} if self.has_delta else {})
