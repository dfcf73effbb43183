"""One channel request on one solver, answered at many (ε, δ): solved, repaired in integers, bounded, judged, certified.

route                              where the masses come from
"exact repair"                     the linear program of `models.channel`
"geometric, post-processed"        the closed form along a line, where the program would be large or is not needed
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from models.channel import ChannelModel
from models.oracles.count_channel import post_processed
from solvers.backend import Session as SolverSession
from solvers.backend import backend
from solvers.solution import Solution, Termination
from workbench.errors import Infeasible, NotProven
from workbench.exact.numbers import round_down
from workbench.families.base import Session, Values
from workbench.families.channel.certify import audited, proof
from workbench.families.channel.losses import Integers
from workbench.families.channel.lower_bound import Relation, least_delta_bound, least_loss_bound, line_bound
from workbench.families.channel.oracle_check import verdict
from workbench.families.channel.repair import Edges, cheapest, loss_of, repaired, to_integers, within_budget
from workbench.families.channel.request import LARGEST, MOST, ChannelRequest
from workbench.families.design import Design, OracleVerdict
from workbench.families.infeasible_channel import ChannelBudget, explanation, no_channel
from workbench.families.noise.answer import meets
from workbench.families.outcome import translated_errors
from workbench.mechanisms.channel import Channel
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim

__all__ = ["ChannelSession"]

_LARGE = 2_000  # compared masses from which interior point with crossover is faster than simplex
_DIRECT, _STATED = 2_000, 40_000  # masses of a line, certified or not, from which the closed form comes first
_PROVEN = 5e-10  # relative gap, by the exact bound, above which the other algorithm is asked as well
_LOST = Fraction(1, 1 << 28)  # of δ, where binaries bound a mass: what rounding moves cannot be mixed away there
_LAST = (Termination.INTERRUPTED, Termination.TIME_LIMIT, Termination.INFEASIBLE)


@dataclass(frozen=True)
class _Unrepaired:
    """What a program or a closed form answers. K: rows of one sum; raw: the channel in floats; bound: on the loss or δ;
    solution: None of a closed form; free: where the ratio may be broken."""

    K: Integers
    raw: Channel
    bound: Fraction | None
    solution: Solution | None = None
    free: Any = None


class ChannelSession(Session):
    """The session of a request; one compiled program for each shape of the model."""

    request: ChannelRequest

    def __init__(self, request: ChannelRequest) -> None:
        super().__init__(request)
        with translated_errors():
            self.backend = backend(request.solver)
        self._live: dict[Any, tuple[ChannelModel, SolverSession]] = {}

    def close(self) -> None:
        """Give the solvers' resources back."""
        for _, session in self._live.values():
            session.close()
        self._live.clear()

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """Solve, repair, bound, judge, certify."""
        request = self.request if point is None else self.request.at(point)
        assert isinstance(request, ChannelRequest)
        if request.minimise == "epsilon":
            from workbench.families.channel.least_epsilon import least_epsilon

            return least_epsilon(self, request)
        return self.solved(request, start)

    def solved(self, request: ChannelRequest, start: str = "hot") -> Design:
        """The design of a request that minimises its loss or δ."""
        masses = request.losses.values.size
        if request.by_post_processing and masses > (_DIRECT if request.certified else _STATED):
            direct = self._along_line(request)
            if direct is not None:
                return direct
        model, solution, bound = self._answered(request, start)
        if solution.x is None:
            _refuse(request, solution, model)
        K = to_integers(solution["M"])
        raw = request.channel(np.maximum(solution["M"], 0.0))
        free = _pattern(model, solution) if request.bounds.mass else None
        proven = solution.termination in (Termination.OPTIMAL, Termination.GAP_LIMIT)
        oracle = verdict(request, solution.objective or 0.0)
        design = self._designed(request, _Unrepaired(K, raw, bound, solution, free), oracle, "exact repair")
        shown = design.bound is None or meets(design.objective, design.bound)
        if proven and shown:
            return design
        why = "says optimal, but its bound does not prove it" if proven else (
            f"stopped with {solution.raw_status!r} before proving an optimum")  # fmt: skip
        raise NotProven(
            f"{solution.solver} {why}: incumbent {design.objective:.9g}, bound {design.bound_words}.",
            incumbent=design.objective, bound=design.bound, design=design,
            interrupted=solution.termination is Termination.INTERRUPTED,
        )  # fmt: skip

    def _along_line(self, request: ChannelRequest) -> Design | None:
        """The design by the closed form; None where it is not proven optimal and the program can be stated."""
        assert request.weights is not None
        assert request.question.prior is not None
        assert request.epsilon is not None
        geometric = post_processed(request.losses.floats, request.weights, float(request.epsilon))
        K = to_integers(geometric.channel)
        bound = line_bound(request.losses, request.question.prior, request.epsilon, geometric.share)
        proven = geometric.value - float(bound) <= _PROVEN * geometric.value
        if not proven and request.compared <= MOST:
            return None
        raw = request.channel(_rows(K))
        design = self._designed(
            request, _Unrepaired(K, raw, bound), verdict(request, geometric.value), "geometric noise, post-processed"
        )
        if not proven:
            raise NotProven(
                f"Post-processed geometric noise costs {design.objective:.9g}, and no less than {float(bound):.9g} is "
                f"proven for this loss; the program of {request.losses.values.size} masses would be too large.",
                incumbent=design.objective, bound=design.bound, design=design,
            )  # fmt: skip
        return design

    # Solving.

    def _answered(self, request: ChannelRequest, start: str) -> tuple[ChannelModel, Solution, Fraction | None]:
        """The model, the best answer and the best bound of as many algorithms as it takes to close the gap."""
        large = request.compared >= _LARGE and not request.bounds.mass
        given = request.options.algorithm is not None or self.backend.name != "highs" or request.bounds.mass
        names = [None] if given else ["interior-point", "simplex"] if large else ["simplex", "interior-point"]
        order: list[tuple[str | None, bool]] = [(name, False) for name in names]
        if request.support() is not None:
            order.insert(0, (names[0], True))
        best: tuple[ChannelModel, Solution, Fraction | None] | None = None
        for algorithm, truncated in order:
            model, solution = self.answer(request, start, algorithm, truncated=truncated)
            bound = self._bound(request, model, solution)
            if best is not None:
                bound = max((known for known in (bound, best[2]) if known is not None), default=None)
                if solution.x is None or (
                    best[1].x is not None and (best[1].objective or 0) < (solution.objective or 0)
                ):
                    solution = best[1]
            best = model, solution, bound
            value = solution.objective
            if solution.termination in _LAST or (
                value is not None and bound is not None and value - float(bound) <= _PROVEN * abs(value)
            ):
                break
        assert best is not None
        return best

    def answer(
        self, request: ChannelRequest, start: str = "hot", algorithm: str | None = None, *, truncated: bool = False
    ) -> tuple[ChannelModel, Solution]:
        """The model and what the solver says, a point or none. algorithm: where the request names none; truncated:
        whether the masses that δ makes needless are left out."""
        bounds, (groups, epsilons) = request.bounds, request.levels()
        support = request.support() if truncated else None
        shape = (bool(bounds.delta) or request.minimise == "delta", groups,
                 None if support is None else support.tobytes())  # fmt: skip
        key = (shape, algorithm)
        with translated_errors():
            if key not in self._live:
                model = next((compiled for (same, _), (compiled, _) in self._live.items() if same == shape), None)
                model, options = model or request.model(support), request.options
                if algorithm is not None:
                    options = replace(options, algorithm=algorithm)
                if algorithm == "simplex" and options.feasibility_tolerance is None:
                    options = replace(options, feasibility_tolerance=1e-9, dual_feasibility_tolerance=1e-9)
                self._live[key] = model, self.backend.open(model.program, options)
            model, live = self._live[key]
            delta = bounds.delta * (1 - _LOST) if bounds.mass else bounds.delta
            values = model.values([float(e) for e in epsilons], float(delta), float(request.budget or 0))
            return model, live.solve(values, start=start if start in ("hot", "cold") else "cold")

    def _bound(self, request: ChannelRequest, model: ChannelModel, solution: Solution) -> Fraction | None:
        """Exact from the multipliers, whatever they are worth; the solver's own (recomputed) where binaries or extra
        constraints have a part in it."""
        if request.constraints or request.more or request.bounds.mass or solution.row_dual is None:
            return None if solution.bound is None else Fraction(solution.bound)
        multipliers = model.multipliers(solution.row_dual)
        _, epsilons = request.levels()
        if request.pairs is None:
            relation = Relation(np.zeros(0, dtype=int), np.zeros(0, dtype=int), epsilons)
        else:
            first, second, groups = model.directions
            relation = Relation(first, second, [epsilons[g] for g in groups.tolist()])
        prior = request.question.prior
        if request.minimise == "delta":
            assert request.budget is not None
            return least_delta_bound(request.losses, prior, relation, request.budget, multipliers)
        return least_loss_bound(request.losses, prior, relation, request.bounds.delta, multipliers)

    # Designs.

    def _designed(self, request: ChannelRequest, answer: _Unrepaired, oracle: OracleVerdict, route: str) -> Design:
        K, raw, bound, solution = answer.K, answer.raw, answer.bound, answer.solution
        prior, losses = request.question.prior, request.losses
        claim, words = request.claim, list[str]()
        certificate: Certificate | None = None
        least = request.minimise == "delta"
        mechanism, cost = raw, loss_of(K, losses, prior)
        if request.certified:
            _, epsilons = request.levels()
            groups = request.levels()[0]
            each = [epsilons[g] for g in groups] if len(epsilons) > 1 else epsilons
            edges = Edges.of(request.pairs, each)
            if least:
                assert request.budget is not None
                K = within_budget(K, losses, prior, request.budget)
            else:
                K = repaired(K, edges, request.bounds.delta, cheapest(losses, prior), answer.free)
            mechanism = request.channel(_rows(K))
            certificate, words = proof(request, mechanism, solution, route)
            assert isinstance(certificate.mechanism, Channel)
            mechanism = certificate.mechanism
            claim = Claim(claim.notion, claim.epsilon, certificate.delta or Fraction(0))
            cost = loss_of(np.array([row.integers for row in mechanism.rows], dtype=object), losses, prior)
        privacy = audited(mechanism, request, claim.delta) if certificate is None else certificate.deciding
        objective: Fraction | float = cost
        if least:
            reached = privacy.dp_delta
            claim = claim if certificate is not None else Claim(claim.notion, claim.epsilon, Fraction(reached.upper))
            objective = claim.delta
            if certificate is not None and request.delta is not None and claim.delta > request.delta:
                raise Infeasible(
                    f"Loss {losses.name} at most {float(request.budget or 0):g} needs delta >= {float(bound or 0):.9g} "
                    f"at this epsilon. Got delta = {float(request.delta):g}."
                )
        if len(parts := request.question.components) > 1:
            words.append(f"The neighbour relation has {len(parts)} separate parts; between them nothing is hidden.")
        if certificate is None and not privacy.holds(claim):
            words.append(privacy.words(claim, "The solver's channel"))
        if bound is None and solution is not None:
            words.append(f"{request.solver} gives no bound: that nothing is better rests on its word.")
        if certificate is None and solution is not None and not least:
            objective = solution.objective or 0.0
        return Design(
            request, mechanism, float(objective), None if bound is None else round_down(bound), claim, oracle, solution,
            tuple(words), privacy, certificate, raw if certificate is not None else None, route,
            details={"loss": cost, "bound": bound},
        )  # fmt: skip


def _rows(K: Integers) -> list[list[int]]:
    rows: list[list[int]] = K.tolist()
    return rows


def _pattern(model: ChannelModel, solution: Solution) -> Any:
    """Where the binaries allow the ratio to be broken. Shape (ordered pairs, m), pairs first, then reversed."""
    blocks = [np.asarray(solution[block.name]) > 0.5 for block in solution.program.variables
              if block.name.startswith("b_")]  # fmt: skip
    return np.concatenate(blocks)


def _refuse(request: ChannelRequest, solution: Solution, model: ChannelModel) -> NoReturn:
    """Raise what an answer without a point means."""

    def why() -> str:
        if request.epsilon is None or request.bounds.mass:
            return ""
        levels = [float(e) for e in request.levels()[1]]
        budget = ChannelBudget(
            request.notion, float(request.epsilon), levels, float(request.bounds.delta), LARGEST,
            float(request.budget or 0),
        )  # fmt: skip
        return explanation(model, budget, request.solver, request.options)

    what = "the constraints on these outputs" if request.constraints or request.more else None
    if request.budget is not None:
        what = f"the budget {float(request.budget):g}"
    no_channel(solution, what, why)
