"""Finite channels under notions of several convex bounds: DP curves, Rényi DP, zCDP, GDP
(`workbench.families.convex_request`), repaired until the exact audit of every ordered pair accepts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from models.channel import UserRows
from models.channel_notions import ChannelNotionModel
from solvers.solution import Solution
from workbench.errors import InvalidRequest
from workbench.families.channel.certify import certificate_of
from workbench.families.channel.losses import LossTable, OwnLoss, loss_table
from workbench.families.channel.repair import loss_of
from workbench.families.convex_channel import repair_channel, solve_channel
from workbench.families.convex_request import ConvexRequest, Repaired
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FiniteQuery

__all__ = ["ChannelNotionRequest"]

_MOST = 20_000  # masses that a program compares


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelNotionRequest(ConvexRequest):
    """The least-loss channel within a budget of a convex notion; its options as in `ChannelRequest`."""

    question: FiniteQuery
    loss: OwnLoss = "squared"
    constraints: tuple[str, ...] = ()
    more: UserRows | None = None
    minimise: str = "error"
    budget: Fraction | None = None
    runs: int = 1
    losses: LossTable = field(init=False, repr=False)

    FIXED: ClassVar[Mapping[str, Any]] = {"minimise": "error", "budget": None, "delta": None, "runs": 1}
    ENOUGH: ClassVar[float] = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if "losses" not in self.__dict__:  # they do not move with hot options
            object.__setattr__(self, "losses", loss_table(self.question, self.loss))
        if self.question.distances is not None:
            InvalidRequest.must("neighbours", f"without distances when notion is {self.notion}", "distances")
        if (size := 2 * len(self.question.listed) * self.question.m) > _MOST:
            InvalidRequest.must("the program", f"of at most {_MOST} compared masses", size)

    @property
    def epsilon(self) -> Fraction | None:
        """Of a notion that has one."""
        value: Fraction | None = self.claim.values.get("epsilon")
        return value

    @cached_property
    def extended(self) -> bool:
        """Whether there are extra constraints."""
        return bool(self.constraints) or self.more is not None

    def channel(self, rows: Any) -> Channel:
        """Rows as a mechanism under the neighbour relation."""
        return replace(Channel.of(rows, self.question.pairs), labelled=(self.question.inputs, self.question.outputs))

    def model(self, bounds: Mapping[Any, Any] | None = None) -> ChannelNotionModel:
        """The program under some bounds."""
        q = self.question
        inputs, outputs = q.places
        prior = None if q.prior is None else np.array([float(p) for p in q.prior])
        return ChannelNotionModel(
            inputs, outputs, prior, self.losses.floats, (), constraints=self.constraints, more=self.more,
            bounds=bounds or {},
        )  # fmt: skip

    def solved(self) -> tuple[Channel, Solution, float | None]:
        """By cones, cuts and linear programs."""
        solution, bound = solve_channel(self, self.question.listed, self.model)
        return self.channel(np.maximum(solution["M"], 0.0)), solution, bound

    def repaired(self, raw: Channel, solution: Solution, bound: float | None) -> Repaired:
        """The nearest mixture that is private, its means kept where they are to be those of the inputs."""
        kept = self.question.numbers if "unbiased" in self.constraints else None
        mechanism, _ = repair_channel(raw, self.claim, kept)
        return mechanism, *certificate_of(self, mechanism, self.claim, solution, "repair")

    def cost_of(self, mechanism: Channel) -> Fraction:
        """The expected loss, or the largest one, exactly."""
        rows = np.array([row.integers for row in mechanism.rows], dtype=object)
        return loss_of(rows, self.losses, self.question.prior)

    @property
    def largest_cost(self) -> float:
        """The largest loss, weighted by the prior where there is one."""
        prior = self.question.prior
        weights = 1.0 if prior is None else np.array([float(p) for p in prior])[:, None]
        return float((weights * self.losses.floats).max())
