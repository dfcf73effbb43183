"""Designing additive noise: the request, its model, its oracle and its audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench import rooms

# isort: split
from models import oracles
from models.noise import NoiseModel, UserConstraints, cost_vector
from models.noise_fast import FastSession, applies
from solvers.backend import Options, Session, backend
from solvers.solution import Solution, Start, Termination
from workbench.certify_noise import NoiseRequest, certified_design, certify_noise, exacting
from workbench.designing import ABSOLUTE, Design
from workbench.errors import Infeasible, InvalidRequest, NotCertified, NotProven, WorkbenchError
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.modulo import ModuloNoise
from workbench.noise_asked import (
    NOTIONS,
    Budgets,
    checked_choices,
    checked_constraints,
    checked_prior,
    checked_start,
    differences,
    spent,
)
from workbench.noise_judged import Judge
from workbench.numbers import Real
from workbench.privacy.audit import audit
from workbench.privacy.repair import exact_cost
from workbench.solver_options import checked_options, settled

__all__ = ["NOTIONS", "NoiseDesigner", "design", "validate"]

_LIMITS = {
    Termination.TIME_LIMIT: "the time limit",
    Termination.NODE_LIMIT: "the node limit",
    Termination.ITERATION_LIMIT: "the iteration limit",
    Termination.INTERRUPTED: "an interrupt",
    Termination.NUMERICAL: "numerical trouble",
}


class NoiseDesigner:
    """One model on one solver, designed at many (epsilon, delta): the live solver object is kept and re-solved hot.

    Args: as `design`, without epsilon, delta and budget; certify is False here, which is what a sweep can afford.
    """

    def __init__(
        self,
        question: ModuloNoise,
        *,
        notion: str = "pdp",
        cost: str = "error-rate",
        minimise: str = "error",
        solver: str = "highs",
        prior: ArrayLike | None = None,
        constraints: UserConstraints | None = None,
        options: Options | None = None,
        certify: bool = False,
        method: str = "fast",
    ) -> None:
        if not isinstance(certify, bool):
            InvalidRequest.must("certify", "True or False", certify)
        self.certify = certify
        checked_choices(question, notion, cost, minimise, method, solver)
        self.question = question
        self.notion, self.cost, self.minimise, self.solver = notion, cost, minimise, solver
        self.constraints, self.options, self.method = checked_constraints(constraints), checked_options(options), method
        self.prior = checked_prior(prior)
        with rooms.speaking_our_errors():
            self.backend, self.given = backend(solver), self.options
            if certify and self.options.integrality_tolerance is None:
                self.options = exacting(self.options, self.backend.supported_options)
            self.costs = cost_vector(cost, question.sizes, self.prior)
        self.judge = Judge(question, notion, cost, constrained=constraints is not None)
        self._budgets: dict[Fraction, Budgets] = {}
        self._sessions: dict[tuple[bool, tuple[int, ...]], tuple[NoiseModel, Session | FastSession]] = {}

    def __enter__(self) -> NoiseDesigner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the solvers' resources back."""
        for _model, session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def solve(
        self,
        epsilon: Real | Mapping[Any, Real],
        delta: Real | None = None,
        *,
        budget: Real | None = None,
        start: str | Start = Start.HOT,
    ) -> Solution:
        """The solver's answer alone, neither audited nor judged. Arguments as `design`."""
        budgets, delta_, budget_ = self.request(epsilon, delta, budget)
        return self._solve(*self._session(budgets, delta_, budget_), start)

    def _solve(self, session: Session | FastSession, values: Mapping[str, Any], start: str | Start) -> Solution:
        """The answer; at the user's own tolerances where the exacting ones of a certified design defeat the solver."""
        with rooms.speaking_our_errors():
            solution = session.solve(values, start=checked_start(start))
            defeated = solution.termination in {Termination.NUMERICAL, Termination.ERROR, Termination.INFEASIBLE}
            if self.options != self.given and defeated:
                with self.backend.open(session.program, self.given) as second:
                    solution = second.solve(values)
        return solution

    def design(
        self,
        epsilon: Real | Mapping[Any, Real],
        delta: Real | None = None,
        *,
        budget: Real | None = None,
        start: str | Start = Start.HOT,
    ) -> Design:
        """Solve, judge and audit. Arguments and errors as `design`."""
        budgets, delta_, budget_ = self.request(epsilon, delta, budget)
        solution = self._solve(*self._session(budgets, delta_, budget_), start)
        if solution.x is None:
            self.refuse(solution, budget_)
        objective = solution.objective
        assert objective is not None
        masses = np.maximum(solution["f"], 0.0)
        mechanism = AdditiveNoise.from_pmf(self.question, masses)
        why = self.doubt(solution)
        allowed = delta_ if self.minimise == "error" else Fraction(repr(min(1.0, max(0.0, objective))))
        assert allowed is not None
        asked = epsilon if isinstance(epsilon, Mapping) else next(iter(budgets.values()))
        privacy = audit(mechanism, budgets)
        if self.minimise == "error":
            verdict = self.judge.least_error(solution, why is None, budgets, float(delta_ or 0))
        else:
            verdict = self.judge.least_delta(solution, budgets, float(budget_ or 0))
        words = []
        if not self.certify and not privacy.meets(self.notion, budgets, allowed):
            words.append(privacy.verdict(self.notion, budgets, allowed, subject="The solver's PMF"))
        if self.question.directed:
            words.append(
                "Directed differences protect one side of each pair of neighbours only, as the paper does; "
                "leave out directed for the symmetric relation."
            )
        if self.cost == "eta-squared" and not self.question.directed:
            words.append(
                "eta-squared counts a step down by 1 as a step up by n; with symmetric differences that cost is "
                "misleading, and squared is the honest one."
            )
        if solution.termination is Termination.GAP_LIMIT:
            words.append(
                f"Stopped within the allowed gap: the optimum lies between {solution.bound:.9g} and {objective:.9g}."
            )
        if why is None and solution.bound is None:
            words.append(f"{self.solver} gives no bound: that nothing is better rests on its word.")
        request = {
            "epsilon": asked if isinstance(asked, Fraction) else budgets, "delta": allowed, "notion": self.notion,
            "cost": self.cost, "minimise": self.minimise, "budget": budget_, "solver": self.solver,
        }  # fmt: skip
        reached = objective  # a least delta is the solver's claim until it is certified
        if self.minimise == "error":
            reached = float(exact_cost(mechanism, self.costs))
        made = Design(
            self.question, request, mechanism, reached, solution.bound, privacy, verdict, solution, tuple(words)
        )
        self.limited(solution, delta_, budget_)
        if why is None and verdict.agrees is False:
            words_ = (*made.words, f"The solver's answer DISAGREES with the closed form ({verdict.name}).")
            made = replace(made, words=words_)
        proven = why is None or solution.termination is Termination.GAP_LIMIT
        if self.certify:
            try:
                made = self._certified(made, budgets, allowed, delta_, budget_)
            except NotCertified as error:
                if proven:
                    raise
                made = replace(made, words=(*made.words, f"The incumbent is not certified. {error}"))
        if not proven:
            raise NotProven(
                f"{self.solver} {why}: incumbent {made.objective:.9g}, "
                f"bound {'unknown' if made.bound is None else format(made.bound, '.9g')}.",
                incumbent=made.objective, bound=made.bound, design=made,
                interrupted=solution.termination is Termination.INTERRUPTED,
            )  # fmt: skip
        return made

    def _certified(
        self, made: Design, budgets: dict[tuple[int, ...], Fraction], spent: Fraction, limit: Fraction | None,
        budget: Fraction | None,
    ) -> Design:  # fmt: skip
        """The design with its mechanism repaired and proven. Raises NotCertified."""
        asked = NoiseRequest(
            self.question, budgets, self.notion, spent, self.costs, self.minimise, budget, self.constraints
        )

        def closed_form() -> oracles.ClosedForm | None:
            return self.judge.law(budgets, float(spent)) if self.minimise == "error" else None

        proof = certify_noise(asked, made.solution, closed_form)
        if self.minimise == "delta" and limit is not None and proof.delta > limit:
            excess = float(proof.delta - limit)
            raise NotCertified(
                f"The least delta that could be certified exceeds the limit {float(limit):g} by {excess:.3g}."
            )
        return certified_design(made, proof, asked)

    # The request.

    def request(
        self, epsilon: Real | Mapping[Any, Real], delta: Real | None, budget: Real | None
    ) -> tuple[Budgets, Fraction | None, Fraction | None]:
        """Budgets of the differences, delta and cost budget in exact numbers. Arguments and errors as `design`."""
        budgets = self._budgets.get(epsilon) if type(epsilon) is Fraction else None
        if budgets is None:
            budgets = differences(self.question, epsilon)
            if type(epsilon) is Fraction:  # a sweep asks for each of them many times
                self._budgets[epsilon] = budgets
        return budgets, *spent(self.notion, self.minimise, (self.cost, self.costs), delta, budget)

    def _session(
        self, budgets: dict[tuple[int, ...], Fraction], delta: Fraction | None, budget: Fraction | None
    ) -> tuple[Session | FastSession, Mapping[str, Any]]:
        levels = list({id(one): one for one in budgets.values()}.values())
        groups = (0,) * len(budgets)
        if len(levels) > 1:
            levels = sorted(set(levels))
            groups = tuple(map(levels.index, budgets.values()))
        positive = self.minimise == "delta" or bool(delta)
        key = (positive, groups)
        with rooms.speaking_our_errors():
            if key not in self._sessions:
                model = _model(
                    self.question.sizes, tuple(budgets), self.notion, self.cost, self.minimise, positive, groups,
                    self.constraints, None if self.prior is None else tuple(self.prior.tolist()),
                )  # fmt: skip
                fast = self.method == "fast" and applies(model)
                opened = FastSession(model, self.backend, self.options) if fast else self._open(model)
                self._sessions[key] = (model, opened)
            model, session = self._sessions[key]
            values = model.values(
                [float(level) for level in levels],
                None if delta is None else float(delta),
                None if budget is None else float(budget),
            )
        return session, values

    def _open(self, model: NoiseModel) -> Session:
        return self.backend.open(model.program, self.options)

    # The judgement.

    @staticmethod
    def doubt(solution: Solution) -> str | None:
        """Why the answer is not a proven optimum; None when it is.

        A solver's word alone is not enough: where a bound is known, objective and bound must agree to 1e-6 relative
        (or 2e-9 absolute), whatever the solver's own tolerances call optimal.
        """
        if solution.termination is not Termination.OPTIMAL:
            limit = _LIMITS.get(solution.termination, f"its status {solution.termination}")
            return f"stopped at {limit} before proving an optimum"
        objective, bound = solution.objective, solution.bound
        assert objective is not None
        if bound is not None and abs(objective - bound) > 1e-6 * abs(objective) + ABSOLUTE:
            return "says optimal, but its bound does not prove it"
        return None

    def limited(self, solution: Solution, delta: Fraction | None, budget: Fraction | None) -> None:
        """Raise Infeasible for a least delta above the limit that was asked for."""
        least = solution.objective
        if self.minimise == "error" or delta is None or least is None:
            return
        if Fraction(least) > delta * (1 + Fraction(1, 10**9)):
            raise Infeasible(
                f"Cost {self.cost} at most {float(budget or 0):g} needs delta >= {least:.9g} at this epsilon. "
                f"Got delta = {float(delta):g}."
            )

    def refuse(self, solution: Solution, budget: Fraction | None) -> None:
        """Raise for an answer without a point."""
        said = f"{self.solver} says {solution.raw_status!r}"
        if solution.termination is Termination.INFEASIBLE:
            if self.constraints is None and budget is None:
                raise NotProven(
                    f"{said} to a feasible request (uniform noise is private); its tolerances are too coarse here."
                )
            what = "the extra constraints" if budget is None else f"the budget {float(budget):g} and the constraints"
            raise Infeasible(f"No noise meets the request with {what} ({said}).")
        why = _LIMITS.get(solution.termination, f"status {solution.termination}")
        bound = solution.bound
        raise NotProven(
            f"{said}: {why} was reached without an incumbent; bound {'unknown' if bound is None else f'{bound:.9g}'}.",
            bound=bound, interrupted=solution.termination is Termination.INTERRUPTED,
        )  # fmt: skip


@lru_cache(maxsize=64)
def _model(
    sizes: tuple[int, ...],
    shifts: tuple[tuple[int, ...], ...],
    notion: str,
    cost: str,
    minimise: str,
    positive: bool,
    groups: tuple[int, ...],
    constraints: UserConstraints | None,
    prior: tuple[float, ...] | None,
) -> NoiseModel:
    """A compiled model; compiling costs more than many of the solves."""
    costs = cost_vector(cost, sizes, None if prior is None else np.array(prior))
    return NoiseModel(sizes, shifts, notion, costs, minimise, positive, groups, constraints)


def design(
    question: ModuloNoise,
    *,
    epsilon: Real | Mapping[Any, Real],
    delta: Real | None = None,
    notion: str = "pdp",
    cost: str = "error-rate",
    minimise: str = "error",
    budget: Real | None = None,
    solver: str = "highs",
    prior: ArrayLike | None = None,
    constraints: Callable[..., Sequence[Any]] | None = None,
    time_limit: float | None = None,
    gap: float | None = None,
    seed: int | None = None,
    options: Options | None = None,
    certify: bool = True,
    method: str = "fast",
) -> Design:
    """The least-cost additive noise under a privacy budget, or the least delta under an error budget.

    Args:
        question: answers and neighbour relation.
        epsilon: > 0, one for all differences or a mapping shift -> epsilon. Decimals are meant: 0.1 is 1/10.
        delta: in [0, 1], 0 by default; with minimise="delta" an optional upper limit.
        notion: "pdp" (mass where the loss exceeds epsilon), "dp" (hockey stick) or "pure" (delta = 0).
        cost: a key of `models.noise.COSTS`.
        minimise: "error", or "delta" for a given error `budget` in the units of the cost.
        solver: a label of `workbench solvers`.
        prior: (N,) distribution of the true answer, for cost "prior-squared".
        constraints: more linear constraints, as a function of the CVXPY variable f (N,); see `models.noise.zero_mean`.
        time_limit: seconds; gap: relative MILP gap at which to stop; seed: of the solver.
        options: every solver option at once (`solvers.backend.Options`) instead of the three above.
        certify: return a mechanism proven private in exact arithmetic, with its certificate; False: the solver's own.
        method: "fast" solves PDP with delta > 0 by `models.noise_fast`, "literal" by the MILP (13) as printed; all else
            is a linear program and the same for both.

    Raises:
        NotCertified: no mechanism near the solver's answer could be proven private.
        InvalidRequest, Infeasible, SolverUnavailable, LicenceLimit: see `workbench.errors`.
        NotProven: a limit was reached first; carries incumbent, bound and the unproven Design.
    """
    options = settled(options, time_limit, gap, seed)
    try:
        with NoiseDesigner(
            question, notion=notion, cost=cost, minimise=minimise, solver=solver, prior=prior,
            constraints=constraints, options=options, certify=certify, method=method,
        ) as designer:  # fmt: skip
            return designer.design(epsilon, delta, budget=budget)
    except KeyboardInterrupt:
        raise WorkbenchError("Interrupted; nothing was written.") from None


def validate(question: ModuloNoise, **request: Any) -> None:
    """Refuse a request that is wrong whatever the solver, without solving anything; arguments as `design`."""
    epsilon = request.pop("epsilon")
    delta, budget = request.pop("delta", None), request.pop("budget", None)
    with NoiseDesigner(question, **request) as designer:
        designer.request(epsilon, delta, budget)
