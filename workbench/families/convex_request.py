"""Requests under notions of several convex bounds, and their design: solve with cuts, repair, audit, certify.

What is claimed is the exact audit of the repaired mechanism, and nothing a solver says. A family's request says what
its program, its repair and its cost are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

from solvers.backend import Options
from solvers.solution import Solution, Termination
from workbench.errors import InvalidRequest, NotProven
from workbench.families.base import Request
from workbench.families.convex_notion import PARAMETERS, meets
from workbench.families.design import Design, OracleVerdict
from workbench.families.option import spell
from workbench.families.oracle import ABSOLUTE
from workbench.privacy.audit import Privacy, audit
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.notions import notion

__all__ = ["ConvexRequest", "Repaired", "design"]

_ENOUGH = 1e-5  # relative gap of what counts as an optimum

Repaired = tuple[Any, Certificate, list[str]]  # the mechanism, its certificate, words


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvexRequest(Request):
    """The least-cost mechanism within a budget of a convex notion. values: its parameters, exact.

    Class attributes:
        RAW: what a solver's mechanism is called.
        FIXED: options of the family that these requests have no use for, and their defaults.
        ENOUGH: relative gap up to which a design says between what the optimum lies, where the digits are used up.
    """

    notion: str
    values: Mapping[str, Any]
    solver: str = "highs"
    options: Options = field(default_factory=Options)
    claim: Claim = field(init=False, repr=False)

    RAW: ClassVar[str] = "The solver's channel"
    FIXED: ClassVar[Mapping[str, Any]] = {}
    ENOUGH: ClassVar[float] = _ENOUGH

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
        for name in ("delta", "budget"):
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
    def cost_of(self, mechanism: Any) -> Fraction | float:
        """What a mechanism costs."""

    @property
    @abstractmethod
    def largest_cost(self) -> float:
        """The largest cost that counts in the mean: relative to it, what costs nearly 0 costs 0."""

    def words(self) -> list[str]:
        """Sentences that a reader must know of every design."""
        return []

    def audited(self, raw: Any) -> Privacy:
        """The exact audit of a mechanism that is not repaired."""
        return audit(raw, self.claim.values.get("epsilon", 0))


def design(request: ConvexRequest) -> Design:
    """Solve, cut, repair, audit, certify. Raises InvalidRequest, Infeasible, NotProven, NotCertified,
    SolverUnavailable."""
    raw, solution, bound = request.solved()
    claim, words = request.claim, request.words()
    mechanism, certificate = raw, None
    if request.certified:
        mechanism, certificate, more = request.repaired(raw, solution, bound)
        words += more
        privacy = certificate.privacy
    else:
        privacy = request.audited(raw)
        if not meets(privacy, claim):
            words.append(privacy.words(claim, request.RAW))
    cost = request.cost_of(mechanism)
    reason = "no closed form is known for this notion; the bound is that of the last program."
    return _proven(
        Design(
            request, mechanism, float(cost), bound, claim, OracleVerdict.none(reason), solution, tuple(words), privacy,
            certificate, None if certificate is None else raw, "repair", details={"loss": cost, "bound": bound},
        ),
        request.ENOUGH,
    )  # fmt: skip


def _proven(reached: Design, enough: float) -> Design:
    """The design, where its exact cost is within the gap of its bound; `enough`: of one that says between what the
    optimum lies. Raises NotProven, with the design."""
    solution, bound, cost = reached.solution, reached.bound, reached.objective
    assert solution is not None
    assert isinstance(reached.request, ConvexRequest)
    nothing = ABSOLUTE * reached.request.largest_cost
    if bound is not None and cost - bound <= _ENOUGH * abs(cost) + nothing:
        if solution.termination is Termination.NUMERICAL:  # decided by the audit and the bound, not by the solver
            return replace(reached, solution=replace(solution, termination=Termination.OPTIMAL))
        return reached
    if bound is not None and cost - bound <= enough * abs(cost):
        words = f"The solver's digits were used up: the optimum lies between {bound:.9g} and {cost:.9g}."
        ended = replace(solution, termination=Termination.GAP_LIMIT)
        return replace(reached, solution=ended, words=(*reached.words, words))
    between = f"is at most {cost:.9g}" if bound is None else f"lies between {bound:.9g} and {cost:.9g}"
    raise NotProven(
        f"{solution.solver} ended with {solution.raw_status!r}, which proves no more than that the optimum {between}.",
        incumbent=cost, bound=bound, design=reached,
    )  # fmt: skip
