"""The best channel from labels to given outputs under curves, Rényi DP, zCDP and GDP
(`workbench.families.convex_notion`): repaired until the exact audit of every ordered pair of neighbours accepts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.channel_notions import ChannelNotionModel
from models.losses import Loss, loss_named
from solvers.backend import Options
from solvers.solution import Solution
from workbench.errors import InvalidRequest, NotProven
from workbench.families.base import Request
from workbench.families.convex_notion import PARAMETERS, meets, proven, solve_with_cuts
from workbench.families.design import Design, OracleVerdict
from workbench.families.labels.certify import bare, check_size, rows_of, stated
from workbench.families.labels.relation import Neighbours, Pairs, pairs_of
from workbench.families.labels.request import LabelRequest
from workbench.families.outcome import translated_errors
from workbench.families.tangent_cuts import row_columns
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.label_channel import LabelChannel
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.privacy.audit import audit
from workbench.privacy.claim import Claim
from workbench.privacy.measure import holds
from workbench.privacy.notions import notion
from workbench.privacy.repair_channel import repair_rows

__all__ = ["LabelNotionRequest", "design", "within_curve"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelNotionRequest(Request):
    """The least-loss channel within a budget of a convex notion. values: its parameters, exact; the rest as in
    `LabelRequest` with the method lp."""

    question: Labels
    notion: str
    values: Mapping[str, Any]
    loss: Loss | str = "squared"
    outputs: tuple[float, ...] | None = None
    neighbours: Neighbours = "all"
    constraints: tuple[str, ...] = ()
    solver: str = "highs"
    options: Options = field(default_factory=Options)
    progress: Callable[[str], None] | None = None
    method: str = "lp"
    runs: int = 1
    claim: Claim = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claim", Claim(self.notion, **notion(self.notion).budget(self.values)))
        first = next(iter(self.claim.values))
        if not self.claim.values[first]:
            InvalidRequest.must(first, f"> 0 for the notion {self.notion}", "0")
        with translated_errors():
            self.named_loss(1.0, self.question.values[:1])

    @classmethod
    def of(cls, question: Labels, values: dict[str, Any]) -> LabelNotionRequest:
        """The request that exact option values amount to. Raises InvalidRequest."""
        given = {name: values.pop(name) for name in PARAMETERS}
        if values["method"] != "lp":
            InvalidRequest.must("method", f"lp when notion is {values['notion']}", repr(values["method"]))
        if (runs := values.pop("runs")) != 1:
            InvalidRequest.must("runs", f"1 when notion is {values['notion']}", runs)
        if delta := values.pop("delta"):
            InvalidRequest.must("delta", f"left out when notion is {values['notion']}", delta)
        return cls(question=question, values=given, **values)

    def at(self, point: Mapping[str, Any]) -> LabelNotionRequest:
        """The same request at another budget. Raises InvalidRequest."""
        if point.get("delta"):
            InvalidRequest.must("delta", f"left out when notion is {self.notion}", point["delta"])
        moved = super().at({"values": {**self.values, **{k: v for k, v in point.items() if k in PARAMETERS}}})
        assert isinstance(moved, LabelNotionRequest)
        return moved

    @property
    def named_loss(self) -> Loss:
        """The loss as a function."""
        return self.loss if isinstance(self.loss, Loss) else loss_named(self.loss)

    @cached_property
    def pairs(self) -> Pairs:
        """Unordered neighbouring positions."""
        listed = pairs_of(self.neighbours, self.notion, self.question.k)
        return tuple(combinations(range(self.question.k), 2)) if listed is None else listed


def within_curve(request: LabelRequest, curve: Sequence[tuple[Fraction, Fraction]]) -> Design:
    """The least-loss channel of one run that is (ε, δ)-private for all points of a curve. Raises as its session."""
    moved = LabelNotionRequest(
        question=request.question, notion="curve", values={"curve": curve}, loss=request.loss, outputs=request.outputs,
        neighbours=request.neighbours, constraints=request.constraints, solver=request.solver, options=request.options,
        check=request.check,
    )  # fmt: skip
    object.__setattr__(moved, "family", request.family)
    return design(moved)


def design(request: LabelNotionRequest) -> Design:
    """Solve, cut, repair, audit, certify. Raises InvalidRequest, Infeasible, NotProven, NotCertified."""
    question, loss, claim = request.question, request.named_loss, request.claim
    grid = question.values if request.outputs is None else np.array(request.outputs)
    check_size(question.k, grid.size, request.pairs)
    with translated_errors():
        cost = loss.matrix(grid, question.values)
    ordered = [pair for i, j in request.pairs for pair in ((i, j), (j, i))]

    def laws(solution: Solution, pair: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        M = np.maximum(solution["M"], 0.0)
        return M[pair[0]], M[pair[1]]

    def state(bounds: Any) -> Any:
        return ChannelNotionModel(
            question.values, grid, question.prior, cost, (), constraints=request.constraints, bounds=bounds
        ).program

    solution, bound = solve_with_cuts(claim, ordered, state, laws, request.solver, request.options, row_columns)
    raw = LabelChannel(question, grid, Channel.from_rows(np.maximum(solution["M"], 0.0)))
    mechanism, certificate, words = raw, None, []
    if request.certified:
        unbiased = "unbiased" in request.constraints
        values = [[*map(Fraction, array.tolist())] for array in (grid, question.values)]

        def private(rows: Channel) -> bool:
            try:
                return holds(rows, claim)
            except NotProven:  # tight: a channel a little further away can be proven
                return False

        repaired, share = repair_rows(
            bare(raw, request.pairs), private, outputs=values[0] if unbiased else None,
            means=values[1] if unbiased else None, allow_bias=True,
        )  # fmt: skip
        certificate = stated(raw, repaired, claim, request.method, loss.name, share)
        mechanism = LabelChannel(question, grid, rows_of(certificate))
        if set(request.constraints) - {"unbiased"}:
            words.append("Repair keeps the constraints to rounding only.")
    channel = Channel.of(mechanism.channel, request.pairs)
    privacy = audit(channel, claim.values.get("epsilon", 0))
    if not request.certified and not meets(privacy, claim):
        words.append(privacy.words(claim, "The solver's channel"))
    reason = "no closed form is known for this notion; the bound is that of the last program."
    return proven(
        Design(
            request, mechanism, mechanism.loss(loss), bound, claim, OracleVerdict.none(reason), solution, tuple(words),
            privacy, certificate, raw if certificate is not None else None, "repair",
        )
    )  # fmt: skip
