"""Requests under notions of several convex bounds of a family whose request is its own problem."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

from solvers.backend import Options
from solvers.solution import Solution
from workbench.errors import InvalidRequest
from workbench.families import pipeline
from workbench.families.base import Request
from workbench.families.convex_notion import PARAMETERS
from workbench.families.design import Design
from workbench.families.option import spell
from workbench.families.problem import Answer, Problem, Programs, Repaired
from workbench.privacy.audit import Privacy, audit
from workbench.privacy.claim import Claim
from workbench.privacy.notions import notion

__all__ = ["ConvexRequest", "Repaired", "design"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvexRequest(Request):
    """The least-loss mechanism within a budget of a convex notion. values: its parameters, exact.

    Class attributes:
        RAW: what a solver's mechanism is called.
        FIXED: options of the family that these requests have no use for, and their defaults.
    """

    notion: str
    values: Mapping[str, Any]
    solver: str = "highs"
    options: Options = field(default_factory=Options)
    claim: Claim = field(init=False, repr=False)

    RAW: ClassVar[str] = "The solver's channel"
    FIXED: ClassVar[Mapping[str, Any]] = {}

    def __post_init__(self) -> None:
        object.__setattr__(self, "claim", Claim(self.notion, **notion(self.notion).budget(self.values)))
        first = next(iter(self.claim.values))
        if not self.claim.values[first]:
            InvalidRequest.must(first, f"> 0 for the notion {self.notion}", "0")

    @classmethod
    def of(cls, question: Any, values: dict[str, Any]) -> Self:
        """The request that exact option values amount to. Raises InvalidRequest."""
        given = {name: values.pop(name) for name in PARAMETERS}
        for name, plain in cls.FIXED.items():
            if (got := values.pop(name)) != plain:
                shown = repr(got) if isinstance(got, str) else spell(got)
                InvalidRequest.must(name, f"left out when notion is {values['notion']}", shown)
        return cls(question=question, values=given, **values)

    def at(self, point: Mapping[str, Any]) -> Self:
        """The same request at another budget. Raises InvalidRequest."""
        for name in ("delta", "max_loss"):
            if point.get(name):
                InvalidRequest.must(name, f"left out when notion is {self.notion}", point[name])
        moved = super().at({"values": {**self.values, **{k: v for k, v in point.items() if k in PARAMETERS}}})
        assert isinstance(moved, type(self))
        return moved

    @abstractmethod
    def solved(self) -> tuple[Any, Solution, float | None]:
        """The mechanism that a solver found, its answer, and the best bound."""

    @abstractmethod
    def repaired(self, raw: Any, solution: Solution, bound: float | None) -> Repaired:
        """What the exact audit accepts. Raises NotCertified."""

    @abstractmethod
    def loss_of(self, mechanism: Any) -> Fraction | float:
        """What a mechanism costs."""

    @property
    @abstractmethod
    def largest_loss(self) -> float:
        """The largest loss that counts in the mean: relative to it, what costs nearly 0 costs 0."""

    def words(self) -> list[str]:
        """Sentences that a reader must know of every design."""
        return []

    def audited(self, raw: Any) -> Privacy:
        """The exact audit of a mechanism that is not repaired."""
        return audit(raw, self.claim.values.get("epsilon", 0))


class _ConvexProblem(Problem):
    """The problem that a request is."""

    def __init__(self, request: ConvexRequest) -> None:
        super().__init__(request)
        self.SUBJECT = request.RAW

    def answered(self, programs: Programs | None, start: str) -> Answer:
        raw, solution, bound = self.request.solved()
        return Answer(raw, bound, solution)

    def repaired(self, answer: Answer) -> Repaired:
        assert answer.solution is not None
        bound = None if answer.bound is None else float(answer.bound)
        repaired: Repaired = self.request.repaired(answer.mechanism, answer.solution, bound)
        return repaired

    def loss(self, mechanism: Any) -> Fraction | float:
        loss: Fraction | float = self.request.loss_of(mechanism)
        return loss

    @property
    def largest_loss(self) -> float:
        return float(self.request.largest_loss)

    def audited(self, mechanism: Any) -> Privacy:
        privacy: Privacy = self.request.audited(mechanism)
        return privacy

    def words(self) -> list[str]:
        words: list[str] = self.request.words()
        return words


def design(request: ConvexRequest) -> Design:
    """Solve, cut, repair, audit, certify. Raises InvalidRequest, Infeasible, NotProven, NotCertified,
    SolverUnavailable."""
    return pipeline.design(_ConvexProblem(request))
