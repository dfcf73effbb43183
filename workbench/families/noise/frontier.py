"""The ε-δ-error trade-off of additive noise: solver points, exact pieces, level curves, baselines.

curve       what a row is
point       the certified optimum at (ε, δ), with its bound and its closed form; one live solver per notion
piece       ρ* between two deltas at fixed ε: exact (PDP: models.noise_frontier; DP and error rate: (1-δ)ρ₀)
level       the least δ at (ε, error), certified, minimum-δ form (15); `budget` is the error
baseline    a published mechanism with the smallest parameter that meets (ε, δ), audited exactly
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from models import oracles
from models.noise import cost_vector
from models.noise_frontier import Limit, Piece, delta_frontier
from models.noise_level_frontier import LEAST
from solvers.backend import Options
from workbench.errors import InvalidRequest
from workbench.exact.numbers import round_up
from workbench.families.channel.frontier import published_row
from workbench.families.frontier_plan import Plan, Row, Task, design_row
from workbench.families.noise.baselines import SCANNED, Scan, data_independent_error
from workbench.families.noise.design import NoiseDesigner
from workbench.families.noise.family import FAMILY
from workbench.families.noise.frontier_plots import draw
from workbench.families.notion_points import design_task, least_points
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
    "geometric": "clamped geometric", "gaussian": "clamped discrete Gaussian", "exponential": "exponential",
    "truncated geometric": "clamped truncated geometric", "staircase": "clamped staircase",
}  # fmt: skip


def round_levels(errors: Sequence[float]) -> list[Fraction]:
    """LEVELS round errors strictly between the least and the largest of some; fewer when they are too close."""
    if not errors or max(errors) - min(errors) < 1e-9:
        return []
    low, high = min(errors), max(errors)
    digits = 2 - math.ceil(math.log10(high - low))
    inside = {round(x, digits) for x in np.linspace(low, high, LEVELS + 2)[1:-1].tolist()}
    return [Fraction(str(x)) for x in sorted(inside) if low < x < high]


@dataclass(frozen=True)
class NoiseFrontier:
    """What a noise frontier is asked for.

    time_limit: seconds of one solve; what is not proven by then is a row with its interval [bound, objective].
    whole: trace every exact piece to its end, however long it takes, so that no clock decides what the table holds.
    levels: errors of the level curves; None chooses LEVELS of them from the points, an empty list draws none.
    budgets: errors whose least ε is found at every δ.
    """

    question: ModuloNoise
    epsilons: Sequence[Fraction]
    deltas: Sequence[Fraction]
    notions: Sequence[str] = ("pdp",)
    cost: str = "error-rate"
    levels: Sequence[Fraction] | None = None
    baselines: bool = True
    solver: str = "highs"
    certify: bool = True
    time_limit: float | None = None
    whole: bool = False
    budgets: Sequence[Fraction] = ()


def plan(options: NoiseFrontier) -> Plan:
    """The plan of a noise frontier, whose requests are validated before anything is solved. Raises InvalidRequest."""
    question, epsilons, deltas, notions = options.question, options.epsilons, options.deltas, options.notions
    cost, levels = options.cost, options.levels
    fixed: dict[str, Any] = {"cost": cost, "solver": options.solver, "time_limit": options.time_limit}
    for notion in notions:
        for epsilon in epsilons:
            FAMILY.request(question, epsilon=epsilon, delta=deltas[0], **fixed, notion=notion)
        for delta in deltas if epsilons else ():
            FAMILY.request(question, epsilon=epsilons[0], delta=delta, **fixed, notion=notion)
    least = [
        (row | {"cost": cost}, FAMILY.request(question, **fixed, certify=options.certify, **given))
        for row, given in least_points({"notion": notions, "delta": deltas, "budget": options.budgets})
    ]
    if cost == "prior-squared":
        InvalidRequest.must("cost", "one that needs no prior", repr(cost))
    for level in levels or ():
        if level < 0:
            InvalidRequest.must("level", "errors >= 0", f"{float(level):g}")
    frontier = _Frontier(options)
    tasks: list[Task] = []
    for notion in notions:
        tasks += [frontier.points(notion, epsilon) for epsilon in epsilons]
    for notion in notions:
        tasks += [frontier.pieces(notion, epsilon) for epsilon in frontier.traced(notion)]
    tasks += [design_task(row, request, "optimal") for row, request in least]
    waits = [len(tasks)]  # levels are chosen from the errors of all points
    for notion in notions:
        if named(notion).has_delta and (levels is None or levels):
            tasks += [frontier.levels(notion, epsilon, levels) for epsilon in epsilons]
    if options.baselines:
        for family in frontier.families():
            tasks += [frontier.baseline(notion, epsilon, family) for notion in notions for epsilon in epsilons]
    relation = "directed" if question.directed else "symmetric"
    title = f"{question!r}, {relation} differences, {cost}"
    return Plan(title, tasks, lambda table: draw(table, title, cost), frontier.close, frontier.learn, waits)


def _dp_line(law: oracles.ClosedForm) -> Piece:
    """The DP frontier (1 - δ) ρ₀; below an upper bound nothing is proven."""
    proven = law.kind == "optimum"
    return Piece(0.0, 1.0, law.value, 0.0, proven, law.value if proven else 0.0, 0.0)


@lru_cache(maxsize=8)
def _scan(family: str, n: int, distances: tuple[int, ...]) -> Scan:
    """One for all tasks of a process."""
    return Scan(family, n, distances)


class _Frontier:
    def __init__(self, options: NoiseFrontier) -> None:
        self.question, self.epsilons, self.deltas = options.question, list(options.epsilons), list(options.deltas)
        self.cost, self.solver, self.certify = options.cost, options.solver, options.certify
        self.options = Options(time_limit=options.time_limit)
        self.designers: dict[tuple[str, str], NoiseDesigner] = {}
        self.finite: FiniteQuery | None = None
        self.errors: list[float] = []  # of the points so far
        self.whole = options.whole

    def close(self) -> None:
        for designer in self.designers.values():
            designer.close()

    def learn(self, rows: Sequence[Row]) -> None:
        """Keep what later tasks go by."""
        for row in rows:
            if row["curve"] == "point" and row.get("objective") is not None:
                self.errors.append(row["objective"])

    def _designer(self, notion: str, minimise: str) -> NoiseDesigner:
        if (notion, minimise) not in self.designers:
            self.designers[notion, minimise] = NoiseDesigner(
                self.question, notion=notion, cost=self.cost, minimise=minimise, solver=self.solver,
                certify=self.certify, options=self.options,
            )  # fmt: skip
        return self.designers[notion, minimise]

    def _known(self, curve: str, mechanism: str, notion: str, epsilon: Fraction) -> Row:
        return {"curve": curve, "mechanism": mechanism, "notion": notion, "cost": self.cost, "epsilon": float(epsilon)}

    def points(self, notion: str, epsilon: Fraction) -> Task:
        """The optima at one ε and every δ."""

        def compute() -> list[Row]:
            rows = []
            designer = self._designer(notion, "error")
            for delta in self.deltas:
                known = self._known("point", "optimal", notion, epsilon) | {"delta": float(delta)}
                rows.append(design_row(partial(designer.design, epsilon, delta), **known))
            return rows

        return compute

    def traced(self, notion: str) -> list[Fraction]:
        """The ε at which exact pieces are traced."""
        no_law = ratio_kind(notion) == HOCKEY_STICK and self.cost != "error-rate"
        if not named(notion).has_delta or no_law or self.cost == "worst-squared":
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
                    law = oracles.judge(
                        q.sizes, q.differences, q.directed, float(epsilon), 0.0, HOCKEY_STICK, self.cost
                    )
                    line_pieces = [] if law is None else [_dp_line(law)]
                    name = "DP law"
                else:
                    line_pieces = delta_frontier(
                        q.sizes,
                        q.differences,
                        float(epsilon),
                        self.cost,
                        limit=limit,
                        solver=self._tracer(),
                    )
                    if q.order > LEAST and self.cost == "error-rate":
                        name, solver = "level frontier", None
                    else:
                        name, solver = "pattern frontier", self._tracer()
            if between and not all(piece.proven for piece in line_pieces) and not by_law:
                return []
            seconds = time.perf_counter() - begin
            known = self._known("piece", "optimal", notion, epsilon)
            return [
                known | {
                    "delta": piece.delta_low, "delta_high": piece.delta_high, "objective": piece.value_low,
                    "objective_high": piece.value_high, "oracle": name,
                    "solver": solver,
                    "bound": piece.bound_low,
                    "bound_high": piece.bound_high, "status": "optimal" if piece.proven else "not_proven",
                    "seconds": seconds / len(line_pieces),
                }
                for piece in line_pieces
            ]  # fmt: skip

        return compute

    def _tracer(self) -> str:
        return self.solver if self.solver in ("highs", "gurobi") else "highs"

    def levels(self, notion: str, epsilon: Fraction, budgets: Sequence[Fraction] | None) -> Task:
        """The least δ at one ε for every error level."""

        def compute() -> list[Row]:
            designer = self._designer(notion, "delta")
            rows = []
            for budget in budgets if budgets is not None else round_levels(self.errors):
                known = self._known("level", "optimal", notion, epsilon) | {"budget": float(budget)}
                row = design_row(partial(designer.design, epsilon, budget=budget), **known)
                if row.get("objective") is not None:
                    row |= {
                        "delta": row[named(notion).quantity]
                    }  # what it really needs; the objective is the same rounded
                rows.append(row)
            return rows

        return compute

    def families(self) -> list[str]:
        """The baselines; those that this question and cost do not admit say why (`missing`)."""
        return ["data-independent", *(SCANNED if self.question.order <= _CLAMPED else _WIDE)]

    def missing(self, family: str) -> str | None:
        """Why a baseline does not apply."""
        if self.cost == "worst-squared":
            return "its cost is a mean, not that of the worst noise"
        if family == "data-independent":
            return None
        if not self.question.scalar:
            return "it publishes one number, and the answers are tuples"
        words = "its cost is the error rate or the square, of which alone clamping is worked out"
        return None if self.cost in ("error-rate", "squared") else words

    def baseline(self, notion: str, epsilon: Fraction, family: str) -> Task:
        """One published mechanism at one ε and every δ."""

        def compute() -> list[Row]:
            rows: list[Row] = []
            missing = self.missing(family)
            for delta in self.deltas:
                begin = time.perf_counter()
                known = self._known("baseline", family, notion, epsilon) | {"delta": float(delta)}
                if missing is not None:
                    rows.append(known | {"status": "not applicable", "error": missing})
                    continue
                if family != "data-independent" and self.question.order > _CLAMPED:
                    rows.append(known | published_row(self._query(notion, epsilon, delta), _WIDE[family]))
                    continue
                row = known | {"status": "infeasible", "error": "no parameter of the scan meets the budget"}
                result = (self._independent if family == "data-independent" else self._clamped)(
                    family, notion, epsilon, delta
                )
                if result is not None:
                    row = known | {"status": "closed form" if family == "data-independent" else "scan"} | result
                rows.append(row | {"seconds": time.perf_counter() - begin})
            return rows

        return compute

    def _query(self, notion: str, epsilon: Fraction, delta: Fraction) -> Query:
        loss = "zero-one" if self.cost == "error-rate" else "squared"
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

    def _independent(self, family: str, notion: str, epsilon: Fraction, delta: Fraction) -> Row:
        order = self.question.order
        rho = data_independent_error(order, epsilon, delta, notion)
        others = cost_vector(self.cost, self.question.sizes)[1:].mean()
        return {"objective": float(rho) * float(others), "parameter": float(rho)}

    def _clamped(self, family: str, notion: str, epsilon: Fraction, delta: Fraction) -> Row | None:
        n = self.question.order - 1
        scan = _scan(family, n, tuple(self._distances()))
        best = scan.audited(epsilon, delta, notion)
        if best is None:
            return None
        parameter, channel, privacy = best
        error = channel.error_rate if self.cost == "error-rate" else channel.mse
        return {
            "objective": error, "parameter": parameter, "pdp_delta": round_up(privacy.pdp_delta),
            "dp_delta": privacy.dp_delta.upper, "pure_epsilon": privacy.pure_epsilon,
        }  # fmt: skip
