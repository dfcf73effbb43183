"""The best channel from labels to given outputs under curves, Rényi DP, zCDP and GDP
(`workbench.families.convex_request`): repaired until the exact audit of every ordered pair of neighbours accepts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from models.channel_notions import ChannelNotionModel
from models.losses import Loss, loss_named
from solvers.solution import Solution
from workbench.errors import InvalidRequest
from workbench.families.convex_channel import repair_channel, solve_channel
from workbench.families.convex_request import ConvexRequest, Repaired, design
from workbench.families.design import Design
from workbench.families.labels.certify import bare, check_size, rows_of, stated
from workbench.families.labels.relation import Neighbours, Pairs, pairs_of
from workbench.families.labels.request import LabelRequest
from workbench.families.outcome import translated_errors
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.label_channel import LabelChannel
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.privacy.audit import Privacy

__all__ = ["LabelNotionRequest", "within_curve"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelNotionRequest(ConvexRequest):
    """The least-loss channel within a budget of a convex notion; its options as in `LabelRequest` with the method
    lp."""

    question: Labels
    loss: Loss | str = "squared"
    outputs: tuple[float, ...] | None = None
    neighbours: Neighbours = "all"
    constraints: tuple[str, ...] = ()
    progress: Callable[[str], None] | None = None
    method: str = "lp"
    runs: int = 1

    FIXED: ClassVar[Mapping[str, Any]] = {"delta": 0, "runs": 1}

    def __post_init__(self) -> None:
        super().__post_init__()
        with translated_errors():
            self.named_loss(1.0, self.question.values[:1])

    @classmethod
    def of(cls, question: Labels, values: dict[str, Any]) -> Self:
        """The request that exact option values amount to. Raises InvalidRequest."""
        if values["method"] != "lp":
            InvalidRequest.must("method", f"lp when notion is {values['notion']}", repr(values["method"]))
        return super().of(question, values)

    @property
    def named_loss(self) -> Loss:
        """The loss as a function."""
        return self.loss if isinstance(self.loss, Loss) else loss_named(self.loss)

    @cached_property
    def pairs(self) -> Pairs:
        """Unordered neighbouring positions."""
        listed = pairs_of(self.neighbours, self.notion, self.question.k)
        return tuple(combinations(range(self.question.k), 2)) if listed is None else listed

    @property
    def grid(self) -> NDArray[np.float64]:
        """The outputs. (m,)"""
        return self.question.values if self.outputs is None else np.array(self.outputs)

    def solved(self) -> tuple[LabelChannel, Solution, float | None]:
        """By cones, cuts and linear programs."""
        question, grid = self.question, self.grid
        check_size(question.k, grid.size, self.pairs)
        with translated_errors():
            cost = self.named_loss.matrix(grid, question.values)

        def model(bounds: Mapping[Any, Any]) -> ChannelNotionModel:
            return ChannelNotionModel(
                question.values, grid, question.prior, cost, (), constraints=self.constraints, bounds=bounds
            )

        solution, bound = solve_channel(self, self.pairs, model)
        rows = Channel.from_rows(np.maximum(solution["M"], 0.0))
        return LabelChannel(question, grid, rows), solution, bound

    def repaired(self, raw: LabelChannel, solution: Solution, bound: float | None) -> Repaired:
        """The nearest mixture that is private, its means kept where they are to be the labels."""
        kept = None
        if "unbiased" in self.constraints:
            means, outputs = ([*map(Fraction, array.tolist())] for array in (self.question.values, self.grid))
            kept = means, outputs
        rows, share = repair_channel(bare(raw, self.pairs), self.claim, kept)
        certificate = stated(raw, rows, self.claim, self.method, self.named_loss.name, share)
        words = ["Repair keeps the constraints to rounding only."] if set(self.constraints) - {"unbiased"} else []
        return LabelChannel(self.question, self.grid, rows_of(certificate)), certificate, words

    def cost_of(self, mechanism: LabelChannel) -> float:
        """The expected loss."""
        return mechanism.loss(self.named_loss)

    @property
    def largest_cost(self) -> float:
        """The largest loss, weighted by the prior."""
        loss = self.named_loss.matrix(self.grid, self.question.values)
        return float((self.question.prior[:, None] * loss).max())

    def audited(self, raw: LabelChannel) -> Privacy:
        """Under the neighbour relation."""
        return super().audited(Channel.of(raw.channel, self.pairs))


def within_curve(request: LabelRequest, curve: Sequence[tuple[Fraction, Fraction]]) -> Design:
    """The least-loss channel of one run that is (ε, δ)-private for all points of a curve. Raises as its session."""
    moved = LabelNotionRequest(
        question=request.question, notion="curve", values={"curve": curve}, loss=request.loss, outputs=request.outputs,
        neighbours=request.neighbours, constraints=request.constraints, solver=request.solver, options=request.options,
        check=request.check,
    )  # fmt: skip
    object.__setattr__(moved, "family", request.family)
    return design(moved)
