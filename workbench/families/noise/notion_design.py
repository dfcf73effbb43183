"""Noise under notions that several hockey sticks or power cones state: DP curves, Rényi DP, zCDP, GDP.

A notion gives the bounds that its budget implies (`Notion.relaxed`); the convex program over them is solved, and while
its answer breaks the budget those that it breaks most are added (`Notion.cuts`). Every such program is a relaxation,
so its Lagrangian bound (`solvers.solution.lagrangian_bound`, from any multipliers, however a conic solver ended) is one
on the optimum. The last answer is repaired until the exact audit accepts it: that, and nothing a solver says, is the
claim; without it, or where it stays too far above the bound, the request ends in NotCertified or NotProven.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.noise import UserConstraints, cost_vector
from models.noise_notions import NoiseNotionModel
from solvers.backend import Options, backend, solve
from solvers.solution import Solution, Termination, lagrangian_bound
from workbench import __version__
from workbench.errors import Infeasible, InvalidRequest, NotCertified, NotProven
from workbench.families.base import Request
from workbench.families.design import Design, OracleVerdict
from workbench.families.noise.request import constraints_of
from workbench.families.outcome import translated_errors
from workbench.families.requirements import in_numbers
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.modulo import ModuloNoise
from workbench.privacy.audit import Privacy, audit
from workbench.privacy.certificate import Certificate
from workbench.privacy.certify import rounded_objective
from workbench.privacy.claim import Claim
from workbench.privacy.notions import Requirement, notion
from workbench.privacy.repair import exact_cost, raised, repair_noise

__all__ = ["PARAMETERS", "NoiseNotionRequest", "design"]

PARAMETERS = ("epsilon", "alpha", "rho", "mu", "curve")  # of these notions
_ROUNDS = 40  # of cuts
_ENOUGH = 1e-5  # relative gap of what counts as an optimum
_CLOSE = 1e-7  # and at which no other repair is tried
_CONES = 20_000  # power cones of a program
_FINE, _SEEN = 120, 1e-7  # bits of a repaired mass; masses that a solver knows to some digits
_STEEPER = (1, Fraction(9, 8), Fraction(5, 4), Fraction(3, 2), 2)  # losses of the tails, of the largest loss seen
_CONIC, _PRECISE = "cvxpy:clarabel", {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


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
    claim: Claim = field(init=False, repr=False)
    costs: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claim", Claim(notion(self.notion), notion(self.notion).budget(self.values)))
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
        for name, plain in (("minimise", "error"), ("budget", None), ("delta", None), ("method", "fast")):
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

    @property
    def words(self) -> str:
        """The budget in words."""
        values = self.claim.values
        if "curve" in values:
            return "(epsilon, delta) = " + ", ".join(f"({float(e):g}, {float(d):g})" for e, d in values["curve"])
        return ", ".join(f"{name} = {float(value):g}" for name, value in values.items())


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
        if not _met(privacy, request.claim):
            words.append(privacy.words(request.claim, "The solver's PMF"))
    reached = float(exact_cost(mechanism, request.costs))
    reason = "no closed form is known for this notion; the bound is that of the last program."
    gap = np.inf if bound is None else reached - bound
    if gap <= _ENOUGH * max(abs(reached), 1e-9) and solution.termination is Termination.NUMERICAL:
        solution = replace(solution, termination=Termination.OPTIMAL)  # decided by the audit and the bound
    made = Design(
        request, mechanism, reached, bound, request.claim, OracleVerdict.none(reason), solution, tuple(words), privacy,
        certificate, raw if certificate is not None else None, "repair",
    )  # fmt: skip
    if not gap <= _ENOUGH * max(abs(reached), 1e-9):
        raise NotProven(
            f"{solution.solver} ended with {solution.raw_status!r}: incumbent {reached:.9g}, bound {made.bound_words}.",
            incumbent=reached, bound=bound, design=made,
        )  # fmt: skip
    return made


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
    found: list[AdditiveNoise] = []
    reasons: list[str] = []
    for share in (None, *_STEEPER):
        values = raw.exact_pmf
        if share is not None:
            most = Fraction(max(steepest, 1e-3) * share).limit_denominator(1 << 20)
            values = [*map(Fraction, raised(question, weights, dict.fromkeys(question.differences, most), None))]
        try:
            found.append(repair_noise(question, values, request.claim))
        except NotCertified as error:
            reasons.append(str(error))
            continue
        cost = float(exact_cost(found[-1], request.costs))
        if bound is not None and cost - bound <= _CLOSE * cost:
            break
    if not found:
        raise NotCertified(f"No repaired mechanism meets the request exactly: {reasons[0]}")
    return min(found, key=lambda made: exact_cost(made, request.costs))


def _met(privacy: Privacy, claim: Claim) -> bool:
    try:
        return privacy.holds(claim)
    except NotProven:
        return False


def _solved(request: NoiseNotionRequest) -> tuple[Solution, float | None]:
    """(the last program's answer, the best bound of all programs)."""
    question, claim = request.question, request.claim
    bounds: dict[Any, list[Requirement]] = {
        shift: [*claim.notion.relaxed(claim.at(shift))] for shift in question.differences
    }
    best: float | None = None
    last: Solution | None = None
    for _ in range(_ROUNDS):
        numbers = {shift: [*map(in_numbers, several)] for shift, several in bounds.items()}
        model = NoiseNotionModel(question.sizes, numbers, request.costs, request.constraints)
        cones = question.order * sum(map(len, bounds.values()))
        if model.conic and cones > _CONES:
            InvalidRequest.must("the program", f"of at most {_CONES} power cones", cones)
        solver, options = request.solver, request.options
        if model.conic and solver == "highs":
            solver = _CONIC
        if model.conic and backend(solver).label == _CONIC:
            options = replace(options, native={**_PRECISE, **options.native})
        with translated_errors():
            solution = solve(model.program, solver=solver, options=options)
        if solution.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if solution.x is None:
            if solution.termination is Termination.INFEASIBLE:
                raise Infeasible(f"No noise meets this request ({solution.solver} says {solution.raw_status!r}).")
            if last is None:
                raise NotProven(f"{solution.solver} says {solution.raw_status!r} and returned no noise.", bound=best)
            break  # out of digits: the answer before is repaired
        last = solution
        found = solution.bound
        if found is None and solution.row_dual is not None:  # any multipliers prove a bound
            found = lagrangian_bound(solution.data, solution.row_dual, cones=solution.program.cones)
        best = found if best is None or (found is not None and found > best) else best
        f = np.maximum(solution["f"], 0.0)
        before = sum(map(len, bounds.values()))
        for shift, several in bounds.items():
            cuts = claim.notion.cuts(f, f[question.index(shift)], claim.at(shift))
            several += [one for one in cuts if one not in several]
        if sum(map(len, bounds.values())) == before:
            break
    assert last is not None
    return last, best


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
