"""The ε-δ-error trade-off of additive noise: solver points, exact pieces, level curves, baselines.

curve       what a row is
point       the certified optimum at (ε, δ), with its bound and its closed form; one live solver per notion
piece       ρ* between two deltas at fixed ε: exact (PDP: models.modulo_frontier; DP and error rate: (1-δ)ρ₀)
level       the least δ at (ε, error), certified, minimum-δ form (15); `max_loss` is the error
baseline    a published mechanism with the smallest parameter that meets (ε, δ), audited exactly
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from models import oracles
from models.modulo import loss_vector
from models.modulo_frontier import Limit, Piece, delta_frontier
from models.modulo_level_frontier import LEAST
from workbench.errors import InvalidRequest
from workbench.exact.numbers import round_up
from workbench.families.base import Session
from workbench.families.channel.frontier import published_row
from workbench.families.frontier_plan import NotApplicable, Plan, Row, Task, baseline_task, design_row, design_task
from workbench.families.modulo.baselines import SCANNED, Scan, data_independent_error
from workbench.families.modulo.family import FAMILY
from workbench.families.modulo.frontier_options import COMMON, points
from workbench.families.modulo.frontier_plots import draw
from workbench.families.outcome import translated_errors
from workbench.families.recommendation import Query
from workbench.families.requirements import HOCKEY_STICK, ratio_kind
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.modulo import ModuloNoise
from workbench.privacy.notions import notion as named

__all__ = ["LEVELS", "plan", "round_levels"]

LEVELS = 4  # errors whose level curves are drawn when none are given
_PIECES = 64  # noise values up to which the exact frontier is traced at every ε, beyond at a few
_FEW = 5
_SMALL, _SMOOTH = 16, 40  # noise values up to which it is traced at so many ε at least, between the asked ones too
_PATIENCE = 5.0  # seconds for the exact frontier at one ε; pieces not proven by then say so
_REFINING = 1000  # programs at an ε between the asked ones; it is left out where they do not prove all of its pieces
_CLAMPED = 60  # answers up to which clamped baselines are scanned; beyond they are proven on the line
_WIDE = {  # series -> published mechanism, for more answers
    "geometric": "clamped geometric",
    "gaussian": "clamped discrete Gaussian",
    "exponential": "exponential",
    "truncated geometric": "clamped truncated geometric",
    "staircase": "clamped staircase",
}


def round_levels(errors: Sequence[float]) -> list[Fraction]:
    """LEVELS round errors strictly between the least and the largest of some; fewer when they are too close."""
    if not errors or max(errors) - min(errors) < 1e-9:
        return []
    low, high = min(errors), max(errors)
    digits = 2 - math.ceil(math.log10(high - low))
    inside = {round(x, digits) for x in np.linspace(low, high, LEVELS + 2)[1:-1].tolist()}
    return [Fraction(str(x)) for x in sorted(inside) if low < x < high]


def plan(question: Any, values: Mapping[str, Any]) -> Plan:
    """The plan of a frontier of modulo noise, whose requests are validated before anything is solved.

    What is not proven within the time limit is a row with its interval [bound, objective]. whole: trace every exact
    piece to its end, however long it takes, so that no clock decides what the table holds. level: errors of the level
    curves; None chooses LEVELS of them from the points, an empty list draws none. Raises InvalidRequest.
    """
    least = [(row, request) for row, request in points(question, values) if request.minimise == "epsilon"]
    for level in values["level"] or ():
        if level < 0:
            InvalidRequest.must("level", "errors >= 0", f"{float(level):g}")
    query = question or FAMILY.spelled_question(values)
    frontier = _Frontier(query, values)
    notions, epsilons, levels = values["notion"], frontier.epsilons, values["level"]
    every = [(notion, epsilon) for notion in notions for epsilon in epsilons]
    tasks: list[Task] = [frontier.points(*place) for place in every]
    tasks += [frontier.pieces(notion, epsilon) for notion in notions for epsilon in frontier.traced(notion)]
    tasks += [design_task(row, request, "optimal") for row, request in least]
    waits = [len(tasks)]  # levels are chosen from the errors of all points
    if levels is None or levels:
        tasks += [frontier.levels(*place, levels) for place in every if named(place[0]).has_delta]
    if values["baselines"]:
        tasks += [frontier.baseline(*place, family) for family in frontier.families() for place in every]
    relation = "directed" if query.directed else "symmetric"
    title = f"{query!r}, {relation} differences, {values['loss']}"
    draw_table = partial(draw, title=title, loss=values["loss"])
    return Plan(title, tasks, draw_table, frontier.close, frontier.learn, waits)


def _dp_line(law: oracles.ClosedForm) -> Piece:
    """The DP frontier (1 - δ) ρ₀; below an upper bound nothing is proven."""
    proven = law.kind == "optimum"
    return Piece(0.0, 1.0, law.value, 0.0, proven, law.value if proven else 0.0, 0.0)


@lru_cache(maxsize=8)
def _scan(family: str, n: int, distances: tuple[int, ...]) -> Scan:
    """One for all tasks of a process."""
    return Scan(family, n, distances)


class _Frontier:
    def __init__(self, question: ModuloNoise, values: Mapping[str, Any]) -> None:
        self.question, self.epsilons, self.deltas = question, values["epsilon"] or [], values["delta"]
        self.loss, self.solver, self.whole = values["loss"], values["solver"], values["whole"]
        self.common = {name: values[name] for name in COMMON}
        self.sessions: dict[tuple[str, str], Session] = {}
        self.finite: FiniteQuery | None = None
        self.errors: list[float] = []  # of the points so far

    def close(self) -> None:
        for session in self.sessions.values():
            session.close()

    def learn(self, rows: Sequence[Row]) -> None:
        """Keep what later tasks go by."""
        for row in rows:
            if row["curve"] == "point" and row.get("objective") is not None:
                self.errors.append(row["objective"])

    def _session(self, notion: str, minimise: str) -> Session:
        """A live solver for all points of a notion."""
        if (notion, minimise) not in self.sessions:
            least = {"max_loss": 1} if minimise == "delta" else {}  # until a point says what it is
            request = FAMILY.request(self.question, epsilon=1, notion=notion, minimise=minimise, **least, **self.common)
            self.sessions[notion, minimise] = FAMILY.open(request)
        return self.sessions[notion, minimise]

    def _known(self, curve: str, mechanism: str, notion: str, epsilon: Fraction) -> Row:
        return {"curve": curve, "mechanism": mechanism, "notion": notion, "loss": self.loss, "epsilon": float(epsilon)}

    def points(self, notion: str, epsilon: Fraction) -> Task:
        """The optima at one ε and every δ."""

        def compute() -> list[Row]:
            rows = []
            session = self._session(notion, "loss")
            for delta in self.deltas:
                known = self._known("point", "optimal", notion, epsilon) | {"delta": float(delta)}
                rows.append(design_row(partial(session.design, {"epsilon": epsilon, "delta": delta}), **known))
            return rows

        return compute

    def traced(self, notion: str) -> list[Fraction]:
        """The ε at which exact pieces are traced."""
        no_law = ratio_kind(notion) == HOCKEY_STICK and self.loss != "error-rate"
        if not named(notion).has_delta or no_law or self.loss == "worst-squared":
            return []
        if self.question.order <= _SMALL and 1 < len(self.epsilons) < _SMOOTH:  # level curves fall steeply: refine
            parts = math.ceil(_SMOOTH / (len(self.epsilons) - 1))
            between = [a + (b - a) * k / parts for a, b in pairwise(self.epsilons) for k in range(1, parts)]
            return [*self.epsilons, *between]
        if self.question.order <= _PIECES or len(self.epsilons) <= _FEW:
            return self.epsilons
        places = np.unique(np.linspace(0, len(self.epsilons) - 1, _FEW).round().astype(int))
        return [self.epsilons[k] for k in places]

    def pieces(self, notion: str, epsilon: Fraction) -> Task:
        """ρ* as a function of δ at one ε."""
        by_law = ratio_kind(notion) == HOCKEY_STICK  # it falls with δ as (1 - δ)

        def compute() -> list[Row]:
            between = epsilon not in self.epsilons
            limit = Limit() if self.whole else Limit(programs=_REFINING) if between else Limit(_PATIENCE)
            begin = time.perf_counter()
            q = self.question
            solver: str | None = None
            with translated_errors():
                if by_law:
                    law = oracles.bounds(
                        q.sizes, q.differences, q.directed, float(epsilon), 0.0, HOCKEY_STICK, self.loss
                    ).strongest
                    name, line_pieces = "DP law", [] if law is None else [_dp_line(law)]
                else:
                    tracer = self.solver if self.solver in ("highs", "gurobi") else "highs"
                    line_pieces = delta_frontier(
                        q.sizes, q.differences, float(epsilon), self.loss, limit=limit, solver=tracer
                    )
                    by_levels = q.order > LEAST and self.loss == "error-rate"
                    name, solver = ("level frontier", None) if by_levels else ("pattern frontier", tracer)
            if between and not all(piece.proven for piece in line_pieces) and not by_law:
                return []
            seconds = time.perf_counter() - begin
            known = self._known("piece", "optimal", notion, epsilon)
            return [
                known
                | {
                    "delta": piece.delta_low,
                    "delta_high": piece.delta_high,
                    "objective": piece.value_low,
                    "objective_high": piece.value_high,
                    "oracle": name,
                    "solver": solver,
                    "bound": piece.bound_low,
                    "bound_high": piece.bound_high,
                    "status": "optimal" if piece.proven else "not_proven",
                    "seconds": seconds / len(line_pieces),
                }
                for piece in line_pieces
            ]

        return compute

    def levels(self, notion: str, epsilon: Fraction, budgets: Sequence[Fraction] | None) -> Task:
        """The least δ at one ε for every error level."""

        def compute() -> list[Row]:
            session = self._session(notion, "delta")
            rows = []
            for max_loss in budgets if budgets is not None else round_levels(self.errors):
                known = self._known("level", "optimal", notion, epsilon) | {"max_loss": float(max_loss)}
                row = design_row(partial(session.design, {"epsilon": epsilon, "max_loss": max_loss}), **known)
                if row.get("objective") is not None:
                    row |= {
                        "delta": row[named(notion).quantity]
                    }  # what it really needs; the objective is the same rounded
                rows.append(row)
            return rows

        return compute

    def families(self) -> list[str]:
        """The baselines."""
        return ["data-independent", *(SCANNED if self.question.order <= _CLAMPED else _WIDE)]

    def _answer(self, family: str, notion: str, epsilon: Fraction, delta: Fraction) -> Row:
        """What a published mechanism costs. Raises NotApplicable."""
        if self.loss == "worst-squared":
            raise NotApplicable("its loss is a mean, not that of the worst noise")
        if family == "data-independent":
            rho = data_independent_error(self.question.order, epsilon, delta, notion)
            others = loss_vector(self.loss, self.question.sizes)[1:].mean()
            return {"objective": float(rho) * float(others), "parameter": float(rho), "status": "closed form"}
        if not self.question.scalar:
            raise NotApplicable("it publishes one number, and the answers are tuples")
        if self.loss not in ("error-rate", "squared"):
            raise NotApplicable("its loss is the error rate or the square, of which alone clamping is worked out")
        if self.question.order > _CLAMPED:
            return published_row(self._query(notion, epsilon, delta), _WIDE[family])
        return self._clamped(family, notion, epsilon, delta)

    def baseline(self, notion: str, epsilon: Fraction, family: str) -> Task:
        """One published mechanism at one ε and every δ; where the question or loss does not admit it, why."""

        def compute() -> list[Row]:
            rows: list[Row] = []
            for delta in self.deltas:
                begin = time.perf_counter()
                known = self._known("baseline", family, notion, epsilon) | {"delta": float(delta)}
                rows += baseline_task(family, known, partial(self._answer, family, notion, epsilon, delta))()
                rows[-1]["seconds"] = time.perf_counter() - begin
            return rows

        return compute

    def _query(self, notion: str, epsilon: Fraction, delta: Fraction) -> Query:
        loss = "error-rate" if self.loss == "error-rate" else "squared"
        if self.finite is None:
            order, distances = self.question.order, self._distances()
            consecutive = distances == [*range(1, len(distances) + 1)]
            pairs = [(q, q + d) for d in distances for q in range(order - d)]
            relation: Any = {"max_distance": len(distances)} if consecutive else pairs
            self.finite = FiniteQuery(range(order), neighbours=relation)
        return Query(question=self.finite, epsilon=epsilon, delta=delta, notion=notion, loss=loss)

    def _distances(self) -> list[int]:
        """Of neighbours. Beyond N/2 a shift μ may have been meant as μ - N: protect both rather than guess."""
        order, given = self.question.order, {shift[0] for shift in self.question.shifts}
        return sorted(given | {order - s for s in given if 2 * s > order})

    def _clamped(self, family: str, notion: str, epsilon: Fraction, delta: Fraction) -> Row:
        n = self.question.order - 1
        scan = _scan(family, n, tuple(self._distances()))
        best = scan.audited(epsilon, delta, notion)
        if best is None:
            raise NotApplicable("no parameter of the scan meets the budget", "infeasible")
        parameter, channel, privacy = best
        error = channel.error_rate if self.loss == "error-rate" else channel.mse
        return {
            "objective": error,
            "parameter": parameter,
            "pdp_delta": round_up(privacy.pdp_delta),
            "dp_delta": privacy.dp_delta.upper,
            "pure_epsilon": privacy.pure_epsilon,
            "status": "scan",
        }
