"""Finite channels under notions of several convex bounds: DP curves, Rényi DP, zCDP, GDP
(`workbench.families.convex_notion`), repaired until the exact audit of every ordered pair accepts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.channel import UserRows
from models.channel_notions import ChannelNotionModel
from solvers.backend import Options
from solvers.solution import Solution
from workbench.errors import InvalidRequest, NotProven
from workbench.families.base import Request
from workbench.families.channel.certify import certificate_of
from workbench.families.channel.losses import LossTable, OwnLoss, loss_table
from workbench.families.channel.repair import loss_of
from workbench.families.convex_notion import PARAMETERS, meets, proven, solve_with_cuts
from workbench.families.design import Design, OracleVerdict
from workbench.families.tangent_cuts import row_columns
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.privacy.audit import audit
from workbench.privacy.claim import Claim
from workbench.privacy.measure import holds
from workbench.privacy.notions import notion
from workbench.privacy.repair_channel import repair_rows

__all__ = ["ChannelNotionRequest", "design"]

_ENOUGH = 1e-3  # relative gap of a design that says so
_MOST = 20_000  # masses that a program compares


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelNotionRequest(Request):
    """The least-loss channel within a budget of a convex notion. values: its parameters, exact; the rest as in
    `ChannelRequest`."""

    question: FiniteQuery
    notion: str
    values: Mapping[str, Any]
    loss: OwnLoss = "squared"
    constraints: tuple[str, ...] = ()
    more: UserRows | None = None
    solver: str = "highs"
    options: Options = field(default_factory=Options)
    minimise: str = "error"
    budget: Fraction | None = None
    runs: int = 1
    claim: Claim = field(init=False, repr=False)
    losses: LossTable = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claim", Claim(self.notion, **notion(self.notion).budget(self.values)))
        first = next(iter(self.claim.values))
        if not self.claim.values[first]:
            InvalidRequest.must(first, f"> 0 for the notion {self.notion}", "0")
        if "losses" not in self.__dict__:  # they do not move with hot options
            object.__setattr__(self, "losses", loss_table(self.question, self.loss))
        if self.question.distances is not None:
            InvalidRequest.must("neighbours", f"without distances when notion is {self.notion}", "distances")
        if (size := 2 * len(self.question.listed) * self.question.m) > _MOST:
            InvalidRequest.must("the program", f"of at most {_MOST} compared masses", size)

    @classmethod
    def of(cls, question: FiniteQuery, values: dict[str, Any]) -> ChannelNotionRequest:
        """The request that exact option values amount to. Raises InvalidRequest."""
        given = {name: values.pop(name) for name in PARAMETERS}
        for name, plain in (("minimise", "error"), ("budget", None), ("delta", None), ("runs", 1)):
            if (got := values.pop(name)) != plain:
                InvalidRequest.must(name, f"left out when notion is {values['notion']}", repr(got))
        return cls(question=question, values=given, **values)

    def at(self, point: Mapping[str, Any]) -> ChannelNotionRequest:
        """The same request at another budget. Raises InvalidRequest."""
        for name in ("delta", "budget"):
            if point.get(name):
                InvalidRequest.must(name, f"left out when notion is {self.notion}", point[name])
        moved = super().at({"values": {**self.values, **{k: v for k, v in point.items() if k in PARAMETERS}}})
        assert isinstance(moved, ChannelNotionRequest)
        return moved

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
        return Channel.of(rows, self.question.pairs)

    def model(self, bounds: Mapping[Any, Any] | None = None) -> ChannelNotionModel:
        """The program under some bounds."""
        q = self.question
        inputs, outputs = q.places
        prior = None if q.prior is None else np.array([float(p) for p in q.prior])
        return ChannelNotionModel(
            inputs, outputs, prior, self.losses.floats, (), constraints=self.constraints, more=self.more,
            bounds=bounds or {},
        )  # fmt: skip


def design(request: ChannelNotionRequest) -> Design:
    """Solve, cut, repair, audit, certify. Raises InvalidRequest, Infeasible, NotProven, NotCertified."""
    q, claim = request.question, request.claim
    ordered = [pair for i, j in q.listed for pair in ((i, j), (j, i))]

    def laws(solution: Solution, pair: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        M = np.maximum(solution["M"], 0.0)
        return M[pair[0]], M[pair[1]]

    solution, bound = solve_with_cuts(
        claim,
        ordered,
        lambda bounds: request.model(bounds).program,
        laws,
        request.solver,
        request.options,
        row_columns,
    )
    raw = request.channel(np.maximum(solution["M"], 0.0))
    mechanism, certificate, words = raw, None, list[str]()
    if request.certified:
        unbiased = "unbiased" in request.constraints and q.numbers is not None
        means, outputs = q.numbers if unbiased and q.numbers is not None else (None, None)

        def private(rows: Channel) -> bool:
            try:
                return holds(rows, claim)
            except NotProven:  # tight: a channel a little further away can be proven
                return False

        mechanism, _ = repair_rows(raw, private, outputs=outputs, means=means, allow_bias=True)
        certificate, words = certificate_of(request, mechanism, claim, solution, "repair")
        privacy = certificate.privacy
    else:
        privacy = audit(raw, claim.values.get("epsilon", 0))
        if not meets(privacy, claim):
            words.append(privacy.words(claim, "The solver's channel"))
    rows = np.array([row.integers for row in mechanism.rows], dtype=object)
    cost = loss_of(rows, request.losses, q.prior)
    reason = "no closed form is known for this notion; the bound is that of the last program."
    return proven(
        Design(
            request, mechanism, float(cost), bound, claim, OracleVerdict.none(reason), solution, tuple(words), privacy,
            certificate, raw if certificate is not None else None, "repair", details={"loss": cost, "bound": bound},
        ),
        _ENOUGH,
    )  # fmt: skip
