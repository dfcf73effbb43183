"""The least error of the papers' baselines at a budget (epsilon, delta), for count queries with answers 0..n.

    clamped geometric, clamped discrete Gaussian, exponential     the smallest parameter whose δ(ε) is within δ
    data-independent, f(0) = 1 - ρ, the rest ρ/(N-1) each         pdp: ρ = min(1 - δ, (N-1)/(N-1+e^ε))
                                                                  dp:  ρ = (1 - δ) (N-1)/(N-1+e^ε)

    δ(ε) = max over neighbouring answers q, q' of  Σ_k Pr[k|q] over {Pr[k|q] > e^ε Pr[k|q']}      (pdp)
                                                   Σ_k max(0, Pr[k|q] - e^ε Pr[k|q'])             (dp)

The error of a family grows with its parameter, so the smallest is the best: a scan, refined by bisection, whose result
is audited exactly. (δ(ε) need not fall as the parameter grows, so a feasible stretch narrower than the scan's step
could be missed.) Neighbours are answers that differ by one of the given distances, without wrapping; optimal modulo
noise protects the pairs that wrap as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import compress
from typing import Any

import numpy as np

from solvers.arrays import Vector
from solvers.search import bisect
from workbench.exact.distribution import NEAR
from workbench.exact.numbers import ZERO, exp_interval, round_up
from workbench.exact.objects import Pair
from workbench.families.channel.baselines import PUBLISHED as OF_ANSWERS
from workbench.families.frontier_plan import NotApplicable
from workbench.families.published import Published, Reference
from workbench.families.recommendation import Query
from workbench.families.requirements import HOCKEY_STICK, ratio_bounds, ratio_notions
from workbench.mechanisms.baselines.count_queries import FAMILIES
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.modulo import ModuloNoise
from workbench.privacy.audit import REPORTED, Privacy, audit
from workbench.privacy.claim import Claim
from workbench.privacy.notions import Notion
from workbench.privacy.notions import notion as named

_TIE = 1e-11  # two losses this close are one
CLAMPED = 60  # answers up to which clamped baselines are scanned; beyond they are proven on the line
_WIDE = {  # series -> published mechanism, for more answers
    "geometric": "clamped geometric",
    "gaussian": "clamped discrete Gaussian",
    "exponential": "exponential",
    "truncated geometric": "clamped truncated geometric",
    "staircase": "clamped staircase",
}
_OF_ANSWERS = {entry.name: entry for entry in OF_ANSWERS}
_SMALL, _LARGE = 12, 25  # values of a scan below and above its steps of equal length


def _beyond(low: float, middle: Vector, high: float, steps: tuple[int, int] = (_SMALL, _LARGE)) -> Vector:
    """A scan from low to high by equal ratios, between its ends by the given steps."""
    below = np.geomspace(low, middle[0], steps[0], endpoint=False)
    return np.concatenate([below, middle, np.geomspace(middle[-1], high, steps[1] + 1)[1:]])


def _scanned(family: str, steps: int) -> Vector:
    """Coordinates of the parameter of a family that are scanned: the least is below that of any budget."""
    if family == "geometric":
        inner = np.linspace(0.002, 0.9995, steps)
        above = 1 - np.geomspace(1 - inner[-1], 1e-9, _LARGE + 1)[1:]
        return np.append(_beyond(1e-12, inner, inner[-1], (_SMALL, 0)), above)
    if family == "gaussian":
        inner = np.linspace(math.log(0.01), math.log(1e4), steps)
        below = np.linspace(math.log(0.005), inner[0], _SMALL, endpoint=False)
        return np.concatenate([below, inner, np.linspace(inner[-1], math.log(1e7), _LARGE)[1:]])
    return _beyond(0.01, np.linspace(0.02, 60.0, steps), 1e7)


SCANNED = ("geometric", "gaussian", "exponential")
_SEEN = 1e-290  # a mass below which its ratios are not seen in floats


class Scan:
    """One family on 0..n: its tables over the scan of the parameter, computed once for all budgets."""

    def __init__(self, family: str, n: int, distances: Sequence[int], steps: int = 401) -> None:
        self.family, self.n = FAMILIES[family], n
        # each pair in one order: the other is that of the answers n - q, whose laws are the mirror images
        self.pairs = [(q, q + d) for d in sorted(set(distances)) for q in range(n + 1 - d)]
        self._p, self._q = np.array(self.pairs).T
        self.grid = _scanned(family, steps)
        tables = np.stack([self.family.table(n, float(x)) for x in self.grid])
        self._scanned = lru_cache(maxsize=1)(partial(self._deltas, tables))  # for the next δ at the same ε

    def _deltas(self, tables: Vector, ratio: float, weight: float) -> Vector:
        """δ of tables (..., n+1, outputs): the largest Σ P - w r Q over {P > r Q}, r = `ratio`, w = `weight`."""
        p, q = tables.take(self._p, axis=-2), tables.take(self._q, axis=-2) * ratio
        above = np.where((p > q * (1 + _TIE)) & (p > _SEEN), p - weight * q, 0.0)
        return np.asarray(above.sum(axis=-1).max(axis=-1))

    def audited(
        self, epsilon: Fraction, delta: Fraction, notion: str | Notion
    ) -> tuple[float, Channel, Privacy] | None:
        """The smallest parameter found that the exact audit takes for private, with its channel and that audit."""
        claim = Claim(notion, epsilon, delta)
        for parameter, channel in self._nearest(epsilon, delta, notion):
            pairs = self._deciding(channel, epsilon) if claim.notion in REPORTED else self.pairs
            privacy = audit(replace(channel, neighbours=tuple(pairs)), epsilon)
            if privacy.holds(claim):
                return parameter, channel, privacy
        return None

    def _deciding(self, channel: Channel, epsilon: Fraction) -> list[Pair]:
        """The pairs of which one has the largest hockey stick, one the largest mass above e^ε, one the largest ratio.

        By floats with room for their rounding, which that of the masses' logarithms is well within. What breaks no
        budget has no hockey stick.
        """
        p, q = channel.matrix[self._p], channel.matrix[self._q]
        logs = np.stack([row.logs - math.log2(row.total) for row in channel.rows])
        with np.errstate(invalid="ignore"):
            losses = logs[self._p] - logs[self._q] - float(epsilon) / math.log(2)
        surely, perhaps = (np.where(losses > level, p, 0.0).sum(axis=1) for level in (NEAR, -NEAR))
        sticks, largest = np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=1), np.nanmax(losses, axis=1)
        broken = (perhaps >= surely.max() - _TIE) | (sticks >= sticks.max() - _TIE)
        decide = (broken & (perhaps > 0)) | (largest >= largest.max() - NEAR)
        return [*compress(self.pairs, decide)]

    def _nearest(self, epsilon: Fraction, delta: Fraction, notion: str | Notion) -> Iterator[tuple[float, Channel]]:
        """Parameters from the smallest on that floats take for private, each with its channel."""
        required = ratio_bounds(notion, {(): epsilon}, delta)
        ratio, weight = math.exp(required.epsilons[()]), 1.0 if required.kind == HOCKEY_STICK else 0.0
        allowed = float(required.delta)
        # Sums are rounded; the exact audit decides below. Without a delta no sum counts, but every ratio.
        allowed += min(1e-12, 1e-6 * allowed) * weight if named(notion).has_delta else 0.0
        good = np.flatnonzero(self._scanned(ratio, weight) <= allowed)
        if not good.size:
            return
        low, high = self.grid[[max(good[0] - 1, 0), good[0]]].tolist()
        table = partial(self.family.table, self.n)
        _, high = bisect(lambda x: bool(self._deltas(table(x), ratio, weight) <= allowed), low, high, turns=60)
        near = 4 * _TIE / float(epsilon) if epsilon else 1.0  # what a ratio that is a tie is of the parameter
        for slack in sorted((1e-9, 1e-7, 1e-5, near)):  # off the tie, so that exact arithmetic agrees
            parameter = self.family.parameter(high) * (1 + slack)
            yield parameter, self.family.build(self.n, parameter)


def data_independent_error(order: int, epsilon: Fraction, delta: Fraction, notion: str | Notion) -> Fraction:
    """ρ of the best data-independent mechanism on N = `order` noise values, e^ε rounded down so that ε holds."""
    required = ratio_bounds(notion, {(): epsilon}, delta)
    odds = exp_interval(required.epsilons[()], 80)[0]
    private, share = (order - 1) / (order - 1 + odds), 1 - required.delta
    return share * private if required.kind == HOCKEY_STICK else min(share, private)


def distances(question: ModuloNoise) -> list[int]:
    """Of neighbours. Beyond N/2 a shift μ may have been meant as μ - N: protect both rather than guess."""
    order, given = question.order, {shift[0] for shift in question.shifts}
    return sorted(given | {order - s for s in given if 2 * s > order})


@lru_cache(maxsize=8)
def scan(name: str, question: ModuloNoise) -> Scan:
    """One for all tasks of a process."""
    return Scan(name, question.order - 1, distances(question))


@lru_cache(maxsize=8)
def _finite(question: ModuloNoise) -> FiniteQuery:
    """The same answers as a query of channels, without wrapping."""
    order, near = question.order, distances(question)
    consecutive = near == [*range(1, len(near) + 1)]
    pairs = [(q, q + d) for d in near for q in range(order - d)]
    relation = {"max_distance": len(near)} if consecutive else pairs
    return FiniteQuery(range(order), neighbours=relation)


def laws_beside(request: Any) -> dict[str, tuple[Any, Vector]]:
    """Laws of published mechanisms at one budget, for pictures: of data-independent noise, and what the others add to
    an answer in the middle. name -> (noise values, masses)."""
    question, epsilon, delta = request.question, request.epsilon, request.delta or ZERO
    if not isinstance(epsilon, Fraction) or request.notion not in ratio_notions() or request.runs > 1:
        return {}
    if not question.scalar or question.order > CLAMPED or request.minimise != "loss":
        return {}
    order, middle = question.order, question.order // 2
    rho = float(data_independent_error(order, epsilon, delta, request.notion))
    laws = {"data-independent": np.append(1 - rho, np.full(order - 1, rho / (order - 1)))}
    for name in SCANNED:
        if (best := scan(name, question).audited(epsilon, delta, request.notion)) is not None:
            laws[f"{name}, of the answer {middle}"] = np.roll(best[1].matrix[middle], -middle)
    return {name: (np.arange(order), law) for name, law in laws.items()}


def _independent(request: Any) -> Reference:
    if request.loss == "worst-squared":
        raise NotApplicable("its loss is a mean, not that of the worst noise")
    delta = request.delta or ZERO
    rho = float(data_independent_error(request.question.order, request.epsilon, delta, request.notion))
    return Reference(rho * float(request.losses[1:].mean()), value=rho)


def _clamped(name: str, request: Any) -> Reference:
    """A law of one parameter, scanned; for more answers that of the channels, proven on the line."""
    question, notion, loss = request.question, request.notion, request.loss
    if not question.scalar:
        raise NotApplicable("it publishes one number, and the answers are tuples")
    if loss not in ("error-rate", "squared"):
        raise NotApplicable("its loss is the error rate or the square, of which alone clamping is worked out")
    epsilon, delta = request.epsilon, request.delta or ZERO
    if question.order > CLAMPED:
        query = Query(question=_finite(question), epsilon=epsilon, delta=delta, notion=notion, loss=loss)
        return _OF_ANSWERS[_WIDE[name]].cost(query)
    best = scan(name, question).audited(epsilon, delta, notion)
    if best is None:
        raise NotApplicable("no parameter of the scan meets the budget", "infeasible")
    parameter, channel, privacy = best
    exact = {
        "pdp_delta": round_up(privacy.pdp_delta),
        "dp_delta": privacy.dp_delta.upper,
        "pure_epsilon": privacy.pure_epsilon,
    }
    return Reference(channel.error_rate if loss == "error-rate" else channel.mse, value=parameter, status="scan",
                     more=exact)  # fmt: skip


PUBLISHED = (
    Published("data-independent", "Kadam et al. 2024", _independent),
    *(
        Published(name, _OF_ANSWERS[wide].source, partial(_clamped, name))
        if name in SCANNED
        else replace(
            _OF_ANSWERS[wide],
            name=name,
            cost=partial(_clamped, name),
            serves=lambda request: request.question.order > CLAMPED,
        )
        for name, wide in _WIDE.items()
    ),
)
