"""Noise under notions of several convex bounds: DP curves, Rényi DP, zCDP, GDP (`workbench.families.convex_notion`).

The last program's answer is repaired until the exact audit accepts it: that, and nothing a solver says, is the claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.noise import cost_vector
from models.noise_constraints import UserConstraints
from models.noise_notions import NoiseNotionModel
from solvers.backend import Options
from solvers.program import Program
from solvers.solution import Solution
from workbench import __version__
from workbench.errors import InvalidRequest, NotCertified
from workbench.families.base import Request
from workbench.families.convex_notion import CLOSE, PARAMETERS, meets, proven, solve_with_cuts
from workbench.families.design import Design, OracleVerdict
from workbench.families.noise.request import constraints_of
from workbench.families.outcome import translated_errors
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.modulo import ModuloNoise
from workbench.privacy.audit import audit
from workbench.privacy.certificate import Certificate
from workbench.privacy.certify import rounded_objective
from workbench.privacy.claim import Claim
from workbench.privacy.notions import notion
from workbench.privacy.repair import exact_cost, raised, repair_noise

__all__ = ["NoiseNotionRequest", "design"]

_FINE, _SEEN = 120, 1e-7  # bits of a repaired mass; masses that a solver knows to some digits
_STEEPER = (1, Fraction(9, 8), Fraction(5, 4), Fraction(3, 2), 2)  # losses of the tails, of the largest loss seen


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseNotionRequest(Request):
    """The least-cost noise within a budget of a convex notion. values: its parameters, exact; the rest as in
    `NoiseRequest`."""

    question: ModuloNoise
    notion: str
    values: Mapping[str, Any]
    cost: str = "error-rate"
    prior: tuple[Fraction, ...] | None = None
    constraints: UserConstraints | None = None
    solver: str = "highs"
    options: Options = field(default_factory=Options)
    minimise: str = "error"
    budget: Fraction | None = None
    runs: int = 1
    claim: Claim = field(init=False, repr=False)
    costs: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claim", Claim(self.notion, **notion(self.notion).budget(self.values)))
        first = next(iter(self.claim.values))
        if not self.claim.values[first]:
            InvalidRequest.must(first, f"> 0 for the notion {self.notion}", "0")
        prior = None if self.prior is None else np.array([float(p) for p in self.prior])
        with translated_errors():
            object.__setattr__(self, "costs", cost_vector(self.cost, self.question.sizes, prior))

    @classmethod
    def of(cls, question: ModuloNoise, values: dict[str, Any]) -> NoiseNotionRequest:
        """The request that exact option values amount to. Raises InvalidRequest."""
        given = {name: values.pop(name) for name in PARAMETERS}
        for name, plain in (("minimise", "error"), ("budget", None), ("delta", None), ("method", "fast"), ("runs", 1)):
            if (got := values.pop(name)) != plain:
                InvalidRequest.must(name, f"left out when notion is {values['notion']}", repr(got))
        return cls(question=question, values=given, constraints=constraints_of(question, values), **values)

    def at(self, point: Mapping[str, Any]) -> NoiseNotionRequest:
        """The same request at another budget. Raises InvalidRequest."""
        for name in ("delta", "budget"):
            if point.get(name):
                InvalidRequest.must(name, f"left out when notion is {self.notion}", point[name])
        moved = super().at({"values": {**self.values, **{k: v for k, v in point.items() if k in PARAMETERS}}})
        assert isinstance(moved, NoiseNotionRequest)
        return moved


def design(request: NoiseNotionRequest) -> Design:
    """Solve, cut, repair, audit, certify. Raises Infeasible, NotProven, NotCertified, SolverUnavailable."""
    solution, bound = _solved(request)
    question = request.question
    raw = AdditiveNoise.from_pmf(question, np.maximum(solution["f"], 0.0))
    mechanism, certificate, privacy, words = raw, None, None, []
    if question.directed:
        words.append("Directed differences protect one side of each pair of neighbours only.")
    if request.certified:
        mechanism = _repaired(request, raw, bound)
        certificate = _certificate(request, mechanism, solution, bound)
        privacy = certificate.privacy
        if request.constraints is not None:
            words.append("Privacy is certified; the extra constraints hold within the solver's tolerances only.")
    else:
        privacy = audit(mechanism, request.claim.values.get("epsilon", 0))
        if not meets(privacy, request.claim):
            words.append(privacy.words(request.claim, "The solver's PMF"))
    reached = float(exact_cost(mechanism, request.costs))
    reason = "no closed form is known for this notion; the bound is that of the last program."
    return proven(
        Design(
            request, mechanism, reached, bound, request.claim, OracleVerdict.none(reason), solution, tuple(words),
            privacy, certificate, raw if certificate is not None else None, "repair",
        )
    )  # fmt: skip


def _solved(request: NoiseNotionRequest) -> tuple[Solution, float | None]:
    question = request.question

    def laws(solution: Solution, shift: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        f = np.maximum(solution["f"], 0.0)
        return f, f[question.index(shift)]

    def columns(program: Program, shift: tuple[int, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        at = program.block("f").start + np.arange(question.order)
        return at, at[question.index(shift)]

    return solve_with_cuts(
        request.claim, question.differences,
        lambda bounds: NoiseNotionModel(question.sizes, bounds, request.costs, request.constraints).program,
        laws, request.solver, request.options, columns,
    )  # fmt: skip


def _repaired(request: NoiseNotionRequest, raw: AdditiveNoise, bound: float | None) -> AdditiveNoise:
    """The cheapest of the repaired candidates: the solver's masses, and the same with tails that fall no faster than
    its larger masses do. What is below a solver's tolerance is noise, whose ratios only a large share of uniform noise
    would mend."""
    question, f = request.question, raw.pmf
    weights = [int(mass * 2.0**_FINE) for mass in f.tolist()]
    seen = f > _SEEN
    losses = [np.log(f[both] / f[index][both]) for index in map(question.index, question.differences)
              for both in [seen & seen[index]]]  # fmt: skip
    steepest = max((float(loss.max(initial=0.0)) for loss in losses), default=0.0)
    candidates: list[AdditiveNoise] = []
    reasons: list[str] = []
    for share in (None, *_STEEPER):
        values = raw.exact_pmf
        if share is not None:
            most = Fraction(max(steepest, 1e-3) * share).limit_denominator(1 << 20)
            values = [*map(Fraction, raised(question, weights, dict.fromkeys(question.differences, most), None))]
        try:
            repaired = repair_noise(question, values, request.claim).mechanism
            assert isinstance(repaired, AdditiveNoise)
            candidates.append(repaired)
        except NotCertified as error:
            reasons.append(str(error))
            continue
        cost = float(exact_cost(candidates[-1], request.costs))
        if bound is not None and cost - bound <= CLOSE * cost:
            break
    if not candidates:
        raise NotCertified(f"No repaired mechanism meets the request exactly: {reasons[0]}")
    return min(candidates, key=lambda candidate: exact_cost(candidate, request.costs))


def _certificate(
    request: NoiseNotionRequest, mechanism: AdditiveNoise, solution: Solution, bound: float | None
) -> Certificate:
    values = dict(request.claim.values)
    objective = None
    if request.costs.ndim == 1:
        costs = None if request.cost == "error-rate" else tuple(map(Fraction, request.costs.tolist()))
        objective = rounded_objective(request.cost, exact_cost(mechanism, request.costs), costs)
    record = {
        "workbench": __version__, "solver": solution.solver, "solver_version": solution.version,
        "status": str(solution.termination), "claimed": solution.objective, "bound": bound, "route": "repair",
        "cost": request.cost,
    }  # fmt: skip
    epsilon, delta = values.pop("epsilon", None), values.pop("delta", None)
    return Certificate(mechanism, request.notion, epsilon, delta, objective, None, record, values)
