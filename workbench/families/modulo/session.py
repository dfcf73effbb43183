"""One noise model on one solver, answered at many (ε, δ): the live solver is kept and re-solved hot."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from models.modulo import ModuloModel, loss_vector
from models.modulo_constraints import UserConstraints
from models.modulo_fast import FastSession, applies
from models.requirements import RatioBound
from solvers.backend import Session as SolverSession
from solvers.backend import backend
from solvers.solution import Solution, Start, Termination
from workbench.errors import InvalidRequest, NotCertified, NotProven
from workbench.families.base import Row, Session, Values
from workbench.families.design import Design, OracleVerdict
from workbench.families.least_epsilon import Tried, least_epsilon
from workbench.families.modulo.answer import check_limit, meets, refuse, stopped, why_unproven
from workbench.families.modulo.certify import certified_design, exacting
from workbench.families.modulo.exact_program import CELLS, refined
from workbench.families.modulo.infeasible import explanation
from workbench.families.modulo.notion_design import within_notion
from workbench.families.modulo.oracle_check import (
    known_bound,
    least_delta_verdict,
    least_error_verdict,
    strongest_law,
)
from workbench.families.modulo.request import LEAST_EPSILON, ModuloRequest
from workbench.families.outcome import translated_errors
from workbench.mechanisms.additive import AdditiveNoise
from workbench.privacy.audit import audit
from workbench.privacy.repair import exact_loss

__all__ = ["ModuloSession"]

_CERTIFIED_BY = 1.5  # of the time limit: until then the exact program of a pattern is solved, its floats repaired after
_SHARP = 1e-6  # gap relative to the objective itself, above which it is said
_DEFEATED = frozenset((Termination.NUMERICAL, Termination.ERROR, Termination.INFEASIBLE))


class ModuloSession(Session):
    """The session of a request; one compiled model and one live solver for each of the model's shapes."""

    request: ModuloRequest

    def __init__(self, request: ModuloRequest) -> None:
        super().__init__(request)
        with translated_errors():
            self.backend = backend(request.solver)
        self.options = request.options
        if request.certified and self.options.integrality_tolerance is None:
            self.options = exacting(self.options, self.backend.supported_options)
        self._explains = True  # not in rows, of which there may be many
        self._sessions: dict[tuple[bool, tuple[int, ...]], tuple[ModuloModel, SolverSession | FastSession]] = {}

    def close(self) -> None:
        """Give the solvers' resources back."""
        for _model, session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def at(self, point: Values | None) -> ModuloRequest:
        """The request at a point."""
        return self.request if point is None else self.request.at(point)

    # Solving.

    def solve(self, request: ModuloRequest, start: str = "hot") -> Solution:
        """The solver's answer alone. Raises Infeasible, NotProven where there is none."""
        solution = self.answer(request, start)
        why = partial(explanation, self, request) if self._explains else str
        if solution.x is None:
            law = None if solution.termination is Termination.INFEASIBLE else known_bound(request)
            refuse(request, solution, why, None if law is None else law[0])
        check_limit(request, solution, why)
        return solution

    def answer(self, request: ModuloRequest, start: str = "hot") -> Solution:
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
        if self._worth_refining(request, solution):
            solution = refined(request, solution, left())
        return solution

    def _worth_refining(self, request: ModuloRequest, solution: Solution) -> bool:
        """Whether a linear program was answered without a proof, which its exact program may have.

        With e^ε as a coefficient a solver's duals are off by more than a tiny error rate, and e^ε - 1 may be less than
        its tolerances.
        """
        if request.bounds.mass or request.question.order * len(request.budgets) > CELLS:
            return False
        if solution.termination is Termination.OPTIMAL:
            return why_unproven(solution) is not None
        return solution.termination in _DEFEATED and solution.ray is None

    def _live(self, request: ModuloRequest) -> tuple[SolverSession | FastSession, Mapping[str, Any]]:
        bounds = request.bounds
        epsilons = bounds.epsilons.values()
        levels = list({id(value): value for value in epsilons}.values())
        groups = (0,) * len(epsilons)
        if len(levels) > 1:
            levels = sorted(set(levels))
            groups = tuple(map(levels.index, epsilons))
        positive = bool(bounds.delta)
        key, limit = (positive, groups), request.loss_limit
        with translated_errors():
            if key not in self._sessions:
                model = _model(
                    request.question.sizes,
                    tuple(request.budgets),
                    bounds.kind,
                    (request.loss, request.prior),
                    request.minimise,
                    positive,
                    groups,
                    request.constraints,
                )
                fast = request.method == "fast" and applies(model)
                opened = (
                    FastSession(model, self.backend, self.options)
                    if fast
                    else self.backend.open(model.program, self.options)
                )
                self._sessions[key] = (model, opened)
            model, session = self._sessions[key]
            values = model.values(
                [float(level) for level in levels],
                float(bounds.delta),
                None if limit is None else float(limit),
            )
        return session, values

    def stated(self, request: ModuloRequest) -> tuple[ModuloModel, Mapping[str, Any]]:
        """The compiled model of a request, and its parameter values."""
        session, values = self._live(request)
        return next(model for model, live in self._sessions.values() if live is session), values

    # Designs and rows.

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """Solve, judge, audit, certify."""
        request = self.at(point)
        if request.convex:
            return within_notion(request)
        if request.minimise == "epsilon":
            self._explains = False
            return self._least_epsilon(request, start)
        return self._design(request, start)

    def _least_epsilon(self, request: ModuloRequest, start: str) -> Design:
        """The design at the least ε found, with ε as its objective and the largest ε excluded as its bound. Raises
        Infeasible, NotProven."""
        max_loss, limit, losses = request.loss_limit, request.epsilon, request.losses
        assert max_loss is not None
        assert isinstance(limit, Fraction)
        uniform = exact_loss(AdditiveNoise(request.question, [1] * request.question.order), losses)
        if uniform <= max_loss and request.constraints is None:
            need = f"less than {float(uniform):.9g}, what uniform noise costs (any epsilon is enough)"
            InvalidRequest.must("max_loss", need, f"{float(max_loss):g}")

        def tried(epsilon: Fraction) -> Tried:
            try:
                design = self._design(request.at({"minimise": "loss", "max_loss": None, "epsilon": epsilon}), start)
            except NotProven as error:
                if error.design is None or error.interrupted:
                    raise
                design = error.design
            return (
                design,
                exact_loss(design.mechanism, losses),
                None if design.bound is None else Fraction(design.bound),
            )

        optimum = least_epsilon(tried, max_loss, f"Loss {request.loss}", limit, LEAST_EPSILON)
        return replace(optimum, request=request.at({"epsilon": optimum.claim.epsilon}))

    def _design(self, request: ModuloRequest, start: str) -> Design:
        """Of a request that minimises its loss or δ."""
        limit = self.options.time_limit
        stop = math.inf if limit is None else time.perf_counter() + _CERTIFIED_BY * limit
        solution = self.solve(request, start)
        unproven = why_unproven(solution)
        raw = self._raw(request, solution, unproven is None)
        proven = unproven is None or solution.termination is Termination.GAP_LIMIT
        design = raw
        if request.certified:
            try:
                design = certified_design(raw, lambda: strongest_law(request, float(raw.claim.delta)), stop)
            except NotCertified as error:
                if proven:
                    raise
                words = (*raw.words, f"The incumbent is not certified. {error}")
                design = replace(raw, words=words, privacy=audit(raw.mechanism, raw.claim.epsilon))
        if not proven:
            design = self._with_law(request, design)
            proven = solution.termination is Termination.OPTIMAL and _closed(design)
        if not proven:
            raise NotProven(
                f"{request.solver} {unproven}: incumbent {design.objective:.9g}, bound {design.bound_words}.",
                incumbent=design.objective,
                bound=design.bound,
                design=design,
                interrupted=stopped(solution),
            )
        return design

    def _with_law(self, request: ModuloRequest, design: Design) -> Design:
        """The design with the closed form's bound, where that is the better one, and a verdict on what it costs."""
        oracle, known = design.oracle, known_bound(request)
        if known is not None and (design.bound is None or known[0] > design.bound):
            design = replace(design, bound=known[0], words=(*design.words, known[1]))
        if oracle.value is None or oracle.kind is None or not _closed(design):
            return design
        words, bound = design.words, design.bound
        if bound is not None and not meets(design.claimed, bound):
            words += (f"The solver's own answer, {design.claimed:.9g}, is no optimum; what is certified is one.",)
        verdict = OracleVerdict.judge(design.objective, str(oracle.name), oracle.value, oracle.kind, oracle.proof)
        return replace(design, oracle=verdict, words=words)

    def _raw(self, request: ModuloRequest, solution: Solution, proven: bool) -> Design:
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
        if request.loss == "eta-squared" and not question.directed:
            words.append(
                "eta-squared counts a step down by 1 as a step up by n; with symmetric differences that cost is "
                "misleading, and squared is the honest one."
            )
        if request.loss == "squared" and request.minimise == "loss" and question.scalar:
            words += _wrapping(mechanism, reached)
        if solution.termination is Termination.GAP_LIMIT:
            words.append(
                f"Stopped within the allowed gap: the optimum lies between {solution.bound:.9g} and {objective:.9g}."
            )
        elif proven and solution.bound is not None and objective - max(0.0, solution.bound) > _SHARP * objective:
            words.append(
                "Proven in absolute terms, not relative to so small a number: the optimum lies between "
                f"{max(0.0, solution.bound):.9g} and {objective:.9g}."
            )
        if proven and solution.bound is None:
            words.append(f"{request.solver} gives no bound: that nothing is better rests on its word.")
        if proven and oracle.agrees is False:
            words.append(f"The solver's answer DISAGREES with the closed form ({oracle.name}).")
        return Design(request, mechanism, reached, solution.bound, claim, oracle, solution, tuple(words), privacy)

    def _against(
        self, request: ModuloRequest, solution: Solution, mechanism: AdditiveNoise, proven: bool
    ) -> tuple[Fraction, float, OracleVerdict]:
        """δ as it is claimed, what the mechanism costs (a least δ is the solver's claim), the oracle's verdict."""
        objective = solution.objective
        assert objective is not None
        if request.minimise == "delta":
            limit = request.loss_limit
            assert limit is not None
            verdict = least_delta_verdict(request, solution, float(limit))
            return Fraction(repr(min(1.0, max(0.0, objective)))), objective, verdict
        assert request.delta is not None
        verdict = least_error_verdict(request, solution, proven)
        return request.delta, float(exact_loss(mechanism, request.losses)), verdict

    def row(self, point: Values, *, start: str = "hot") -> Row:
        """The answer at a point, checked as far as the request says."""
        self._explains = False
        request = self.request
        if request.check in ("audit", "certify") or request.minimise == "epsilon" or request.convex:
            return super().row(point, start=start)
        solution = self.solve(self.at(point), start)
        if stopped(solution):
            raise KeyboardInterrupt
        row = {
            "status": "claimed",
            "failure": None,
            "objective": solution.objective,
            "bound": None,
            "start": str(solution.start),
            "audited": False,
        }
        if self.request.check == "none" and solution.termination is Termination.OPTIMAL:
            return row
        unproven = why_unproven(solution)
        proven = unproven is None or solution.termination is Termination.GAP_LIMIT
        assert solution.residuals is not None
        return row | {
            "status": str(solution.termination) if proven else "not_proven",
            "failure": None if proven else unproven,
            "bound": solution.bound,
            "gap": solution.gap,
            "residual": solution.residuals.worst,
        }


@lru_cache(maxsize=64)
def _model(
    sizes: tuple[int, ...],
    shifts: tuple[tuple[int, ...], ...],
    kind: RatioBound,
    loss: tuple[str, tuple[Fraction, ...] | None],
    minimise: str,
    positive: bool,
    groups: tuple[int, ...],
    constraints: UserConstraints | None,
) -> ModuloModel:
    """The compiled model of what is no parameter of a request (loss: with its prior); slower than most solves."""
    name, prior = loss
    losses = loss_vector(name, sizes, None if prior is None else np.array([float(p) for p in prior]))
    return ModuloModel(sizes, shifts, kind, losses, minimise, positive, groups, constraints)


def _closed(design: Design) -> bool:
    """Whether the bound proves that nothing costs less, certified where that was asked for."""
    certified = design.certificate is not None or not design.request.certified
    return certified and design.bound is not None and meets(design.objective, design.bound)


def _wrapping(mechanism: AdditiveNoise, loss: float) -> list[str]:
    """A sentence where most of a squared error is that of answers published near the other end."""
    order = mechanism.question.order
    steps = np.arange(order)
    near = mechanism.expected(np.minimum(steps, order - steps) ** 2)
    if near >= loss / 2:
        return []
    return [
        f"Wrapping around is {1 - near / loss:.0%} of this loss: answers near one end may be published near the other. "
        f"`workbench recommend` and `design noise --on integers --clamp 0..{order - 1}` have noise that does not."
    ]
