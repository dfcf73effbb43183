"""Noise under notions of several convex bounds: DP curves, Rényi DP, zCDP, GDP (`workbench.families.convex_request`).

The last program's answer is repaired until the exact audit accepts it: that, and nothing a solver says, is the claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from models.noise import cost_vector
from models.noise_constraints import UserConstraints
from models.noise_notions import NoiseNotionModel
from solvers.program import Program
from solvers.solution import Solution
from workbench import __version__
from workbench.errors import NotCertified
from workbench.families.convex_notion import solve_with_cuts
from workbench.families.convex_request import ConvexRequest, Repaired
from workbench.families.noise.own_costs import own_costs
from workbench.families.noise.request import constraints_of
from workbench.families.outcome import translated_errors
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.modulo import ModuloNoise
from workbench.privacy.certificate import Certificate
from workbench.privacy.certify import rounded_objective
from workbench.privacy.repair import exact_cost, raised, repair_noise

__all__ = ["NoiseNotionRequest"]

_FINE, _SEEN = 120, 1e-7  # bits of a repaired mass; masses that a solver knows to some digits
_STEEPER = (1, Fraction(9, 8), Fraction(5, 4), Fraction(3, 2), 2)  # losses of the tails, of the largest loss seen
_CLOSE = 1e-7  # relative gap at which no other repair is tried


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseNotionRequest(ConvexRequest):
    """The least-cost noise within a budget of a convex notion; its options as in `NoiseRequest`."""

    question: ModuloNoise
    cost: str = "error-rate"
    prior: tuple[Fraction, ...] | None = None
    constraints: UserConstraints | None = None
    minimise: str = "error"
    budget: Fraction | None = None
    runs: int = 1
    costs: NDArray[np.float64] = field(init=False, repr=False)

    RAW: ClassVar[str] = "The solver's PMF"
    FIXED: ClassVar[Mapping[str, Any]] = {
        "minimise": "error", "budget": None, "delta": None, "method": "fast", "runs": 1,
    }  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        prior = None if self.prior is None else np.array([float(p) for p in self.prior])
        with translated_errors():
            object.__setattr__(self, "costs", cost_vector(self.cost, self.question.sizes, prior))

    @classmethod
    def of(cls, question: ModuloNoise, values: dict[str, Any]) -> Self:
        """The request that exact option values amount to. Raises InvalidRequest."""
        constraints, cost = constraints_of(question, values), own_costs(values["cost"], question)
        return super().of(question, {**values, "constraints": constraints, "cost": cost})

    def words(self) -> list[str]:
        """What directed differences leave open."""
        if not self.question.directed:
            return []
        return ["Directed differences protect one side of each pair of neighbours only."]

    def solved(self) -> tuple[AdditiveNoise, Solution, float | None]:
        """By cones, cuts and linear programs."""
        question = self.question

        def laws(solution: Solution, shift: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            f = np.maximum(solution["f"], 0.0)
            return f, f[question.index(shift)]

        def columns(program: Program, shift: tuple[int, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
            at = program.block("f").start + np.arange(question.order)
            return at, at[question.index(shift)]

        solution, bound = solve_with_cuts(
            self.claim, question.differences,
            lambda bounds: NoiseNotionModel(question.sizes, bounds, self.costs, self.constraints).program,
            laws, self.solver, self.options, columns,
        )  # fmt: skip
        return AdditiveNoise.from_pmf(question, np.maximum(solution["f"], 0.0)), solution, bound

    def repaired(self, raw: AdditiveNoise, solution: Solution, bound: float | None) -> Repaired:
        """The cheapest of several repairs."""
        mechanism = _repaired(self, raw, bound)
        words = [] if self.constraints is None else [
            "Privacy is certified; the extra constraints hold within the solver's tolerances only."
        ]  # fmt: skip
        return mechanism, _certificate(self, mechanism, solution, bound), words

    def cost_of(self, mechanism: AdditiveNoise) -> Fraction:
        """The mean cost, exactly."""
        return exact_cost(mechanism, self.costs)

    @property
    def largest_cost(self) -> float:
        """The largest cost of a noise value."""
        return float(self.costs.max())


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
        if bound is not None and cost - bound <= _CLOSE * cost:
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
