"""One noise model on one solver, answered at many (ε, δ): the live solver is kept and re-solved hot."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from models.noise import NoiseModel, cost_vector
from models.noise_constraints import UserConstraints
from models.noise_fast import FastSession, applies
from models.requirements import RatioBound
from solvers.backend import Session as SolverSession
from solvers.backend import backend
from solvers.solution import Solution, Start, Termination
from workbench.errors import InvalidRequest, NotCertified, NotProven
from workbench.families.base import Row, Session, Values
from workbench.families.design import Design, OracleVerdict
from workbench.families.noise.answer import check_limit, meets, refuse, stopped, why_unproven
from workbench.families.noise.certify import certified_design, exacting
from workbench.families.noise.infeasible import explanation
from workbench.families.noise.oracle_check import OracleCheck
from workbench.families.noise.request import NoiseRequest
from workbench.families.outcome import translated_errors
from workbench.mechanisms.additive import AdditiveNoise
from workbench.privacy.audit import audit
from workbench.privacy.repair import exact_cost

__all__ = ["NoiseSession"]

_CERTIFIED_BY = 1.5  # of the time limit: until then the exact program of a pattern is solved, its floats repaired after
_DEFEATED = frozenset((Termination.NUMERICAL, Termination.ERROR, Termination.INFEASIBLE))


class NoiseSession(Session):
    """The session of a request; one compiled model and one live solver for each of the model's shapes."""

    request: NoiseRequest

    def __init__(self, request: NoiseRequest) -> None:
        super().__init__(request)
        with translated_errors():
            self.backend = backend(request.solver)
        self.options = request.options
        if request.certified and self.options.integrality_tolerance is None:
            self.options = exacting(self.options, self.backend.supported_options)
        self.oracle = OracleCheck(
            request.question, request.notion, request.cost, constrained=request.constraints is not None
        )
        self._explains = True  # not in rows, of which there may be many
        self._sessions: dict[tuple[bool, tuple[int, ...]], tuple[NoiseModel, SolverSession | FastSession]] = {}

    def close(self) -> None:
        """Give the solvers' resources back."""
        for _model, session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def at(self, point: Values | None) -> NoiseRequest:
        """The request at a point."""
        if point is None:
            return self.request
        moved = self.request.at(point)
        assert isinstance(moved, NoiseRequest)
        return moved

    # Solving.

    def solve(self, request: NoiseRequest, start: str = "hot") -> Solution:
        """The solver's answer alone. Raises Infeasible, NotProven where there is none."""
        solution = self.answer(request, start)
        why = partial(explanation, self, request) if self._explains else str
        if solution.x is None:
            refuse(request, solution, why)
        check_limit(request, solution, why)
        return solution

    def answer(self, request: NoiseRequest, start: str = "hot") -> Solution:
        """What the solver says, a point or none.

        At the user's own tolerances where the exacting ones of a certified design defeat the solver.
        """
        if not isinstance(start, str) or start not in set(Start):
            InvalidRequest.must("start", f"one of {', '.join(Start)}", repr(start))
        begin, limit = time.perf_counter(), request.options.time_limit
        session, values = self._live(request)

        def left() -> float | None:
            return None if limit is None else max(1e-3, limit - (time.perf_counter() - begin))

        with translated_errors():
            solution = session.solve(values, start=Start(start), time_limit=left())
            if self.options != request.options and solution.termination in _DEFEATED:
                with self.backend.open(session.program, request.options) as second:
                    solution = second.solve(values, time_limit=left())
        return solution

    def _live(self, request: NoiseRequest) -> tuple[SolverSession | FastSession, Mapping[str, Any]]:
        bounds = request.bounds
        epsilons = bounds.epsilons.values()
        levels = list({id(value): value for value in epsilons}.values())
        groups = (0,) * len(epsilons)
        if len(levels) > 1:
            levels = sorted(set(levels))
            groups = tuple(map(levels.index, epsilons))
        positive = bool(bounds.delta)
        key, limit = (positive, groups), request.cost_limit
        with translated_errors():
            if key not in self._sessions:
                model = _model(_Shape(
                    request.question.sizes, tuple(request.budgets), bounds.kind, request.cost, request.minimise,
                    positive, groups, request.constraints, request.prior,
                ))  # fmt: skip
                fast = request.method == "fast" and applies(model)
                opened = (
                    FastSession(model, self.backend, self.options) if fast
                    else self.backend.open(model.program, self.options)
                )  # fmt: skip
                self._sessions[key] = (model, opened)
            model, session = self._sessions[key]
            values = model.values(
                [float(level) for level in levels],
                float(bounds.delta),
                None if limit is None else float(limit),
            )
        return session, values

    def beside(self, request: NoiseRequest) -> NoiseSession:
        """Another session, for a request of another objective."""
        return NoiseSession(request)

    def stated(self, request: NoiseRequest) -> tuple[NoiseModel, Mapping[str, Any]]:
        """The compiled model of a request, and its parameter values."""
        session, values = self._live(request)
        return next(model for model, live in self._sessions.values() if live is session), values

    # Designs and rows.

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """Solve, judge, audit, certify."""
        request = self.at(point)
        if request.minimise == "epsilon":
            from workbench.families.noise.least_epsilon import least_epsilon

            self._explains = False
            return least_epsilon(lambda trial: self._design(trial, start), request)
        return self._design(request, start)

    def _design(self, request: NoiseRequest, start: str) -> Design:
        """Of a request that minimises its cost or δ."""
        limit = self.options.time_limit
        stop = math.inf if limit is None else time.perf_counter() + _CERTIFIED_BY * limit
        solution = self.solve(request, start)
        unproven = why_unproven(solution)
        raw = self._raw(request, solution, unproven is None)
        proven = unproven is None or solution.termination is Termination.GAP_LIMIT
        design = raw
        if request.certified:
            try:
                design = certified_design(raw, lambda: self.oracle.law(request.budgets, float(raw.claim.delta)), stop)
            except NotCertified as error:
                if proven:
                    raise
                words = (*raw.words, f"The incumbent is not certified. {error}")
                design = replace(raw, words=words, privacy=audit(raw.mechanism, raw.claim.epsilon))
        if not proven and solution.termination is Termination.OPTIMAL:
            by_law = self._proven_by_law(request, design)
            proven, design = by_law is not None, by_law or design
        if not proven:
            raise NotProven(
                f"{request.solver} {unproven}: incumbent {design.objective:.9g}, bound {design.bound_words}.",
                incumbent=design.objective, bound=design.bound, design=design, interrupted=stopped(solution),
            )  # fmt: skip
        return design

    def _proven_by_law(self, request: NoiseRequest, design: Design) -> Design | None:
        """The design with the closed form's bound where that proves it optimal and the solver's own bound does not.

        With e^ε as a coefficient a solver's duals are off by more than a tiny error rate: from ε = 15 or so its bound
        is useless, however good its answer.
        """
        bound = self.oracle.bound(request)
        if bound is None or (request.certified and design.certificate is None) or not meets(design.objective, bound[0]):
            return None
        claimed, value = design.claimed, design.oracle.value
        assert value is not None
        words = [*design.words, bound[1]]
        if not meets(claimed, bound[0]):
            words.append(f"The solver's own answer, {claimed:.9g}, is no optimum; what is certified is one.")
        verdict = replace(design.oracle, agrees=True, difference=design.objective - value)
        return replace(design, bound=bound[0], oracle=verdict, words=tuple(words))

    def _raw(self, request: NoiseRequest, solution: Solution, proven: bool) -> Design:
        """The solver's own answer as a design."""
        objective, question = solution.objective, request.question
        assert objective is not None
        mechanism = AdditiveNoise.from_pmf(question, np.maximum(solution["f"], 0.0))
        delta, reached, oracle = self._against(request, solution, mechanism, proven)
        claim, privacy, words = request.claim(delta), None, []
        if not request.certified:
            privacy = audit(mechanism, claim.epsilon)
            if not privacy.holds(claim):
                words.append(privacy.words(claim, "The solver's PMF"))
        if question.directed:
            words.append(
                "Directed differences protect one side of each pair of neighbours only, as the paper does; "
                "leave out directed for the symmetric relation."
            )
        if request.cost == "eta-squared" and not question.directed:
            words.append(
                "eta-squared counts a step down by 1 as a step up by n; with symmetric differences that cost is "
                "misleading, and squared is the honest one."
            )
        if request.cost == "squared" and request.minimise == "error" and question.scalar:
            words += _wrapping(mechanism, reached)
        if solution.termination is Termination.GAP_LIMIT:
            words.append(
                f"Stopped within the allowed gap: the optimum lies between {solution.bound:.9g} and {objective:.9g}."
            )
        if proven and solution.bound is None:
            words.append(f"{request.solver} gives no bound: that nothing is better rests on its word.")
        if proven and oracle.agrees is False:
            words.append(f"The solver's answer DISAGREES with the closed form ({oracle.name}).")
        return Design(request, mechanism, reached, solution.bound, claim, oracle, solution, tuple(words), privacy)

    def _against(
        self, request: NoiseRequest, solution: Solution, mechanism: AdditiveNoise, proven: bool
    ) -> tuple[Fraction, float, OracleVerdict]:
        """δ as it is claimed, what the mechanism costs (a least δ is the solver's claim), the oracle's verdict."""
        objective = solution.objective
        assert objective is not None
        if request.minimise == "delta":
            limit = request.cost_limit
            assert limit is not None
            verdict = self.oracle.least_delta(solution, request.budgets, float(limit))
            return Fraction(repr(min(1.0, max(0.0, objective)))), objective, verdict
        assert request.delta is not None
        verdict = self.oracle.least_error(solution, proven, request.budgets, float(request.delta))
        return request.delta, float(exact_cost(mechanism, request.costs)), verdict

    def row(self, point: Values, *, start: str = "hot") -> Row:
        """The answer at a point, checked as far as the request says."""
        self._explains = False
        if self.request.check in ("audit", "certify") or self.request.minimise == "epsilon":
            return super().row(point, start=start)
        solution = self.solve(self.at(point), start)
        if stopped(solution):
            raise KeyboardInterrupt
        row = {
            "status": "claimed", "error": None, "objective": solution.objective, "bound": None,
            "start": str(solution.start), "audited": False,
        }  # fmt: skip
        if self.request.check == "none" and solution.termination is Termination.OPTIMAL:
            return row
        unproven = why_unproven(solution)
        proven = unproven is None or solution.termination is Termination.GAP_LIMIT
        assert solution.residuals is not None
        return row | {
            "status": str(solution.termination) if proven else "not_proven", "error": None if proven else unproven,
            "bound": solution.bound, "gap": solution.gap, "residual": solution.residuals.worst,
        }  # fmt: skip


class _Shape(NamedTuple):
    """What a model is compiled for; the rest of a request are its parameters."""

    sizes: tuple[int, ...]
    shifts: tuple[tuple[int, ...], ...]
    kind: RatioBound
    cost: str
    minimise: str
    positive: bool
    groups: tuple[int, ...]
    constraints: UserConstraints | None
    prior: tuple[Fraction, ...] | None


@lru_cache(maxsize=64)
def _model(shape: _Shape) -> NoiseModel:
    """A compiled model; compiling costs more than many of the solves."""
    weights = None if shape.prior is None else np.array([float(p) for p in shape.prior])
    costs = cost_vector(shape.cost, shape.sizes, weights)
    return NoiseModel(shape.sizes, shape.shifts, shape.kind, costs, shape.minimise, shape.positive, shape.groups,
                      shape.constraints)  # fmt: skip


def _wrapping(mechanism: AdditiveNoise, cost: float) -> list[str]:
    """A sentence where most of a squared error is that of answers published near the other end."""
    order = mechanism.question.order
    steps = np.arange(order)
    near = mechanism.expected(np.minimum(steps, order - steps) ** 2)
    if near >= cost / 2:
        return []
    return [
        f"Wrapping around is {1 - near / cost:.0%} of this cost: answers near one end may be published near the other. "
        f"`workbench recommend` and `design noise --on integers --clamp 0..{order - 1}` have noise that does not."
    ]
