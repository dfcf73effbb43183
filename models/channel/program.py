"""State the linear program of the private channel with the smallest loss, for finite labels.

`ChannelModel(labels, outputs, prior, loss).program` is the program, and `ChannelModel.values` gives
its parameters ε and δ. The program is linear, or mixed-integer for pdp with δ.

M[y,o] is the probability of the output o at the label y, p the prior of the labels, ℓ the loss, k
the number of labels, m the number of outputs and d(y,y') a distance of labels. s, t, b and z are
further variables; dp and pdp are the notions (ε, δ)-DP and (ε, δ)-PDP. (2) is the linear program of
the paper "Regression with Label Differential Privacy" (Ghazi et al. 2022).

    min Σ_y p_y Σ_o M[y,o] ℓ(o,y)   s.t.  M >= 0, Σ_o M[y,o] = 1, and the privacy rows:          (2)

    pure, all pairs     t_o <= M[y,o] <= e^ε t_o            one variable t_o for each output: 2 k m
                                                            rows instead of k (k-1) m
    pure, a graph       M[y,o] <= e^ε M[y',o]               for both orders of every neighbouring
                                                            pair
    metric              M[y,o] <= e^{ε d(y,y')} M[y',o]     a graph with a budget for each pair; on
                                                            a line the pairs of consecutive labels
                                                            suffice, because their budgets add up
    several bounds      no rows here: both orders of every pair get tangents of the bounds, which
                        `workbench.models.convex.tangent_program` adds as they are needed
    dp with δ           s >= M[y,o] - e^ε M[y',o], s >= 0, Σ_o s <= δ
                        for both orders of every pair
    pdp with δ          M[y,o] - e^ε M[y',o] <= b, s >= M[y,o] + b - 1, s >= 0, Σ_o s <= δ,
                        b in {0, 1}

    worst case          min z  s.t.  z >= Σ_o M[y,o] ℓ(o,y) for every y
    minimum δ           min δ  s.t.  the expected (or every) loss is at most "max_loss"

The form with t has the same feasible channels as the constraints of all pairs: if a t is feasible,
so is t_o = min_y M[y,o].

To add a named constraint, add its name to CONSTRAINTS and its rows to
`ChannelModel._constraint_rows`.

| paper (Ghazi et al. 2022, App. A)          | here                     |
|--------------------------------------------|--------------------------|
| M_{y→ŷ}                                    | variable "M" (k, m)      |
| p_ŷ^min                                    | variable "t" (m,)        |
| 𝒴, 𝒪, P                                    | labels, outputs, prior   |
| e^ε                                        | parameter "exp_epsilon"  |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

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


# In rows of the program, losses below this are stated as 0, because solvers would drop them.
_MIN_ROW_LOSS = 1.1e-9
# A larger loss is stated as this. No good channel publishes such an output.
_MAX_STATED_LOSS = 1e12

Pairs = tuple[tuple[int, int], ...]  # Pairs of label positions.
# A function of the CVXPY variable M (k, m) that returns user-defined constraints.
UserRows = Callable[["cp.Variable"], "Sequence[cp.Constraint]"]

# The names of optional constraints. Sec. 6 of Ghazi et al. 2022 proposes the first, Cormode et al.
# 2018 propose the others. They state:
#
#     unbiased          Σ_o o M[y,o] = y
#     row-monotone      M[y,·] falls as o moves away from y
#     column-monotone   M[·,o] falls as y moves away from o
#     symmetric         M[y,o] = M[k-1-y, m-1-o]
#     honest            M[y,y] >= M[y,o] for every o
CONSTRAINTS = ("unbiased", "row-monotone", "column-monotone", "symmetric", "honest")


def consecutive_pairs(k: int) -> Pairs:
    """Return the neighbours (i, i+1) of k answers in a row.

    They are the neighbours of counts, and generate the metric of the line.

    Args:
        k: number of answers.
    """
    return tuple((i, i + 1) for i in range(k - 1))


class _StatedData(NamedTuple):
    """The numbers of a channel model that a solver gets.

    Attributes:
        losses: the losses, weighted by the prior if there is one, shape (k, m).
        upper: upper bounds of M: the number 1, or a table with 0 for masses that must be 0, shape
            (k, m).
    """

    losses: Vector
    upper: Any


@dataclass(frozen=True, eq=False)
class ChannelModel:
    """One channel model, compiled once; e^ε and δ are its parameters.

    Attributes:
        labels: values of the labels in increasing order, or positions, shape (k,).
        outputs: values of the outputs in increasing order, or positions, shape (m,).
        prior: weights of the labels with sum 1, shape (k,). None for the worst label.
        loss: loss of every output for every label, shape (k, m). An infinite loss forbids an output
            to a label of positive probability.
        pairs: pairs of neighbouring label positions, unordered unless directed. None for all pairs.
        groups: entry of "exp_epsilon" for each pair; empty for one ε. Only with `pairs`.
        has_delta: whether the notion has a δ. Then `pairs` must list all pairs.
        constraints: names from CONSTRAINTS.
        user_rows: function of M that returns user-defined constraints, or None.
        requires: the bound that the notion with δ requires.
        minimise: "loss", or "delta" for a given max_loss.
        scale: the program is solved in units of 1/scale of probability.
        unit: the objective is the loss times this, plus `shift`. The program is solved in `loss`,
            whose values should be near 1 where they matter.
        shift: constant that is added to the objective, in units of the objective.
        support: whether each mass may be positive, shape (k, m). None for all. A support restricts
            the program. Its dual values bound the unrestricted optimum if all reduced costs are
            nonnegative.
        is_directed: whether a pair (i, j) only bounds row i by row j, and not row j by row i.
        stated_comparisons: whether the program has the row of each ordered pair and output, with
            δ; shape (ordered pairs, m), in the order of "ratio" in `multipliers`. None for all.
            Leaving rows out relaxes the program.
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
                names = ", ".join(CONSTRAINTS)
                raise ValueError(f"constraints must be among {names}. Got {name!r}.")
        if self.has_delta and self.pairs is None:
            raise ValueError("pairs must be listed for a notion with delta. Got none.")
        shape = (self.labels.size, self.outputs.size)
        if self.loss.shape != shape:
            raise ValueError(f"loss must be of shape {shape}. Got {self.loss.shape}.")

    @ignore_float_warnings
    def problem(self, cp: Any) -> Any:
        """State the model.

        Args:
            cp: the language of the statement: CVXPY, or a module with the same names
                (`workbench.models.statement`).
        """
        k, m = self.loss.shape
        M = cp.Variable((k, m), name="M", bounds=[0, self._stated_data.upper])
        epsilon_count = max(self.groups, default=0) + 1
        exp_epsilon = cp.Parameter(epsilon_count, name="exp_epsilon", nonneg=True)
        rows = [cp.sum(M, axis=1) == 1]
        delta = None
        if self.has_delta and self.minimise == "delta":
            delta = cp.Variable(name="delta", bounds=[0, 1])
        elif self.has_delta:
            delta = cp.Parameter(name="delta", nonneg=True)
        if self.pairs is None:
            column = np.ones((k, 1)) @ cp.Variable((1, m), name="t", bounds=[0, 1])
            rows.append((column <= M).set_label("least"))
            rows.append((exp_epsilon[0] * column >= M).set_label("most"))
        else:
            rows += self._graph_rows(cp, M, exp_epsilon, delta)
        rows += self.extra_rows(M)
        axis = 1 if self.prior is None else None
        loss = cp.sum(cp.multiply(self._stated_data.losses, M), axis=axis)
        if self.minimise == "delta":
            max_loss = cp.Parameter(name="max_loss")
            rows.append((loss <= max_loss).set_label("losses"))
            return cp.Problem(cp.Minimize(delta), rows)
        if self.prior is not None:
            return cp.Problem(cp.Minimize(loss), rows)
        largest_loss = float(self._stated_data.losses.max(initial=0.0))
        worst_loss = cp.Variable(name="worst", bounds=[0, largest_loss])
        rows.append((loss <= worst_loss).set_label("losses"))
        return cp.Problem(cp.Minimize(worst_loss), rows)

    @cached_property
    def _stated_data(self) -> _StatedData:
        """Return the losses and the upper bounds that a solver gets.

        Losses in rows are 0 if they are so small that a solver would drop them; repair and bound
        use the original losses.
        """
        is_allowed = np.isfinite(self.loss)
        losses = np.where(is_allowed, self.loss, 0.0)
        if self.prior is not None:
            losses = losses * self.prior[:, None]
            is_allowed |= self.prior[:, None] == 0
        if self.support is not None:
            is_allowed &= self.support
        losses = np.minimum(losses, _MAX_STATED_LOSS)
        if self.prior is None or self.minimise == "delta":
            losses = np.where(np.abs(losses) < _MIN_ROW_LOSS, 0.0, losses)
        return _StatedData(losses, 1 if is_allowed.all() else is_allowed.astype(float))

    @property
    def has_changed_losses(self) -> bool:
        """Check whether the program states changed losses, because some are very small or large."""
        losses = np.where(np.isfinite(self.loss), self.loss, 0.0)
        if self.prior is not None:
            losses = losses * self.prior[:, None]
        return not np.array_equal(self._stated_data.losses, losses)

    def _ordered_pairs(self) -> Iterator[tuple[int, Positions, Positions]]:
        """Yield (group, first labels, second labels) for the pairs of every budget.

        Each pair occurs in both orders, unless the relation is directed.
        """
        ends = np.array(self.pairs or (), dtype=int).reshape(-1, 2)
        # Without groups all pairs have the one ε, entry 0.
        groups = np.array(self.groups or (0,) * len(ends), dtype=int)
        # A set replaces np.unique here, whose first call imports slowly.
        for group in sorted({*groups.tolist()}):
            i, j = ends[groups == group].T
            if self.is_directed:
                yield group, i, j
            else:
                yield group, np.concatenate([i, j]), np.concatenate([j, i])

    def _graph_rows(
        self,
        cp: Any,
        M: Any,
        exp_epsilon: Any,
        delta: Any,
    ) -> list[Any]:
        """Return the privacy rows of neighbouring pairs, one block for each budget.

        `cp` is the module cvxpy, `M` the matrix variable, and `exp_epsilon` has one e^ε for each
        budget.
        """
        m = self.outputs.size
        rows = []
        start = 0
        for group, first, second in self._ordered_pairs():
            excess = M[first, :] - exp_epsilon[group] * M[second, :]
            if not self.has_delta:
                rows.append((excess <= 0).set_label(f"ratio_{group}"))
                continue
            s = cp.Variable((first.size, m), name=f"s_{group}", bounds=[0, 1])
            if self.requires == MASS_ABOVE_RATIO:
                # b = 1 allows M[y,o] to exceed the ratio; then s >= M[y,o] counts against δ.
                b = cp.Variable((first.size, m), name=f"b_{group}", boolean=True)
                rows += [excess <= b, M[first, :] + b - 1 <= s]
            elif self.stated_comparisons is None:
                rows.append((excess <= s).set_label(f"ratio_{group}"))
            else:
                places = np.nonzero(self.stated_comparisons[start : start + first.size])
                rows.append((excess[places] <= s[places]).set_label(f"ratio_{group}"))
            rows.append(cp.sum(s, axis=1) <= delta)
            start += first.size
        return rows

    def multipliers(self, row_dual: Vector) -> dict[str, Vector]:
        """Return the multipliers >= 0 of the rows, for losses as in `loss`.

        Args:
            row_dual: dual values of all rows, shape (rows,).

        Returns:
            Multipliers by the name of their rows. With listed pairs, "ratio" has the shape
            (ordered pairs, m): group by group the pairs in their order, then, unless directed, the
            pairs in the opposite order. For all pairs, "least" (t <= M) and "most" (M <= e^ε t)
            have the shape (k, m). With rows of losses, "losses" has the shape (k,) for the worst
            label, or (1,) for a largest expected loss.
        """
        if self.minimise == "loss":
            row_dual = row_dual / self.unit
        shapes = {"least": self.loss.shape, "most": self.loss.shape}
        blocks: dict[str, Vector] = {}
        for block in self.program.rows:
            # The dual values of rows <= are <= 0.
            values = np.maximum(-row_dual[block.start : block.start + block.size], 0.0)
            if block.name.startswith("ratio_"):
                if self.stated_comparisons is None:
                    values = values.reshape((-1, self.outputs.size), order="F")
                blocks[block.name] = values
            elif block.name in ("least", "most", "losses"):
                blocks[block.name] = values.reshape(shapes.get(block.name, (-1,)), order="F")
        ratio_names = [name for name in blocks if name.startswith("ratio_")]
        if not ratio_names:
            return blocks
        ratios = np.concatenate([blocks.pop(name) for name in ratio_names])
        if self.stated_comparisons is None:
            return blocks | {"ratio": ratios}
        # Comparisons that are not stated have the multiplier 0.
        table = np.zeros(self.stated_comparisons.shape)
        table[self.stated_comparisons] = ratios
        return blocks | {"ratio": table}

    def extra_rows(self, M: Any) -> list[Any]:
        """Return the rows of the named and the user-defined constraints.

        Args:
            M: variable of the channel, shape (k, m).
        """
        rows = []
        for name in self.constraints:
            rows += [label_user_constraint(row, name) for row in self._constraint_rows(name, M)]
        if self.user_rows is not None:
            rows += self.user_rows(M)
        return rows

    def _constraint_rows(
        self,
        name: str,
        M: Any,
    ) -> list[Any]:
        """Return the rows of one named constraint (see the table at CONSTRAINTS)."""
        k, m = self.loss.shape
        if name == "unbiased":
            return [M @ self.outputs == self.labels]
        if name == "symmetric":
            return [M[y, :] == M[k - 1 - y, ::-1] for y in range((k + 1) // 2)]
        if name == "honest":
            diagonal = M[np.arange(k), self._outputs_of_labels()]
            return [diagonal >= M[:, o] for o in range(m)]
        # Masses are compared along the outputs (axis 1) or along the labels (axis 0).
        axis = int(name == "row-monotone")
        # The signed distances (k, m) rise along the axis, and are 0 where label and output agree.
        sign = 1 if axis else -1
        distances = (self.outputs[None, :] - self.labels[:, None]) * sign
        rising_cells = np.argwhere(np.delete(distances, 0, axis) <= 0)
        falling_cells = np.argwhere(np.delete(distances, -1, axis) >= 0)
        step = np.eye(2, dtype=int)[axis]  # From a cell to the next one along the axis.
        rows = []
        for low, high in (
            (rising_cells, rising_cells + step),
            (falling_cells + step, falling_cells),
        ):
            if low.size:
                rows.append(M[tuple(low.T)] <= M[tuple(high.T)])
        return rows

    def _outputs_of_labels(self) -> Positions:
        """Return the position of each label among the outputs.

        Raises ValueError if a label is missing.
        """
        positions = np.searchsorted(self.outputs, self.labels)
        positions = np.minimum(positions, self.outputs.size - 1)
        if not np.array_equal(self.outputs[positions], self.labels):
            raise ValueError("honest channels need every label among the outputs.")
        return positions

    @cached_property
    def program(self) -> Program:
        """Compile the model, without CVXPY unless user-defined constraints need it."""
        relation = "all pairs"
        if self.pairs is not None:
            relation = f"{len(self.pairs)} neighbouring pairs"
        size = f"{self.labels.size} labels to {self.outputs.size} outputs"
        name = f"channel from {size}, {relation}"
        program = build_program(
            self.problem, name, self.scale, without_cvxpy=self.user_rows is None
        )
        if self.minimise != "loss":
            return program
        data = replace(program.template, c=program.template.c * self.unit)
        return replace(program, template=data, cost=1 / self.unit, shift=self.shift)

    def build_comparisons(self, pairs: Pairs) -> Comparisons:
        """Return the laws M[y] of ordered pairs of labels, for bounds stated by tangents.

        Args:
            pairs: ordered pairs of label positions.
        """
        from workbench.models.convex.tangent_program import Comparisons

        block = self.program.block("M")
        columns = np.arange(block.start, block.start + block.size)
        table = columns.reshape(block.shape, order="F")
        first, second = np.array(pairs, dtype=int).reshape(-1, 2).T
        entries = sp.csr_array(sp.eye_array(self.program.shape[1]))
        return Comparisons(entries, table[first], table[second])

    def values(
        self,
        epsilons: Sequence[float],
        delta: float = 0.0,
        max_loss: float = 0.0,
    ) -> Mapping[str, Any]:
        """Return the values of the parameters "exp_epsilon", "delta" and "max_loss" by name.

        Only the parameters that the model has are returned.

        Args:
            epsilons: ε of every group.
            delta: δ; ignored unless the model has it as a parameter.
            max_loss: largest loss (as in `loss`); ignored unless δ is minimised.
        """
        values: dict[str, Any] = {"exp_epsilon": np.exp(np.asarray(epsilons, dtype=float))}
        if self.minimise == "delta":
            values["max_loss"] = float(max_loss)
        elif self.has_delta:
            values["delta"] = float(delta)
        return values
