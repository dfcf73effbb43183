"""Published mechanisms for count queries with answers 0..n, each with its least error at a budget (ε, δ).

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

from workbench.errors import NotApplicable
from workbench.exact.distribution import LOG2_TOLERANCE
from workbench.exact.numbers import ZERO, exp_interval, round_up
from workbench.exact.objects import Pair
from workbench.families.channel.published import PUBLISHED as CHANNEL_PUBLISHED
from workbench.mechanisms.baselines.count_queries import BASELINE_FAMILIES
from workbench.mechanisms.channel import Channel
from workbench.notions import Notion
from workbench.notions import get_notion as named
from workbench.pipeline.published import Published, Reference, index_by_name
from workbench.pipeline.recommendation import Query
from workbench.pipeline.request import Aim
from workbench.pipeline.requirements import HOCKEY_STICK, bounds_one_ratio, make_ratio_bounds
from workbench.privacy.audit import REPORTED_NOTIONS, Privacy, audit
from workbench.privacy.claim import Claim
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.modulo_noise import ModuloNoise
from workbench.solvers.arrays import Vector
from workbench.solvers.search import bisect

_TIE_TOLERANCE = 1e-11  # Two losses this close count as one.
_MAX_SCANNED_ANSWERS = (
    60  # For more answers, clamped laws are proven on the line instead of scanned.
)
_WIDE_NAMES = {  # Name -> the channel's published mechanism, which serves more answers.
    "geometric": "clamped geometric",
    "gaussian": "clamped discrete Gaussian",
    "exponential": "exponential",
    "truncated geometric": "clamped truncated geometric",
    "staircase": "clamped staircase",
}
_FOR_ANSWERS = index_by_name(CHANNEL_PUBLISHED)
_SMALL_STEPS = 12  # A scan has so many values below its steps of equal length.
_LARGE_STEPS = 25  # A scan has so many values above its steps of equal length.


def _extend_scan(
    low: float, middle: Vector, high: float, steps: tuple[int, int] = (_SMALL_STEPS, _LARGE_STEPS)
) -> Vector:
    """Extend the values `middle` by equal ratios down to low and up to high, in so many steps each."""
    below = np.geomspace(low, middle[0], steps[0], endpoint=False)
    return np.concatenate([below, middle, np.geomspace(middle[-1], high, steps[1] + 1)[1:]])


def _make_scan(family: str, steps: int) -> Vector:
    """Make the coordinates of a family's parameter to scan: the least is below that of any budget."""
    if family == "geometric":
        inner = np.linspace(0.002, 0.9995, steps)
        above = 1 - np.geomspace(1 - inner[-1], 1e-9, _LARGE_STEPS + 1)[1:]
        return np.append(_extend_scan(1e-12, inner, inner[-1], (_SMALL_STEPS, 0)), above)
    if family == "gaussian":
        inner = np.linspace(math.log(0.01), math.log(1e4), steps)
        below = np.linspace(math.log(0.005), inner[0], _SMALL_STEPS, endpoint=False)
        return np.concatenate(
            [below, inner, np.linspace(inner[-1], math.log(1e7), _LARGE_STEPS)[1:]]
        )
    return _extend_scan(0.01, np.linspace(0.02, 60.0, steps), 1e7)


_SCANNED_FAMILIES = ("geometric", "gaussian", "exponential")
_MIN_MASS = 1e-290  # Ratios of smaller masses are not seen in floats.


class Scan:
    """One family on 0..n: its tables over the scan of the parameter, computed once for all budgets."""

    def __init__(self, family: str, n: int, distances: Sequence[int], steps: int = 401) -> None:
        self.family, self.n = BASELINE_FAMILIES[family], n
        # each pair in one order: the other is that of the answers n - q, whose laws are the mirror images
        self.pairs = [(q, q + d) for d in sorted(set(distances)) for q in range(n + 1 - d)]
        self._p, self._q = np.array(self.pairs).T
        self.grid = _make_scan(family, steps)
        tables = np.stack([self.family.table(n, float(x)) for x in self.grid])
        # The last δ are kept, as a frontier asks for several δ at one ε.
        self._scanned_deltas = lru_cache(maxsize=1)(partial(self._compute_deltas, tables))

    def _compute_deltas(self, tables: Vector, ratio: float, weight: float) -> Vector:
        """δ of tables (..., n+1, outputs): the largest Σ P - w r Q over {P > r Q}, r = `ratio`, w = `weight`."""
        p, q = tables.take(self._p, axis=-2), tables.take(self._q, axis=-2) * ratio
        above = np.where((p > q * (1 + _TIE_TOLERANCE)) & (p > _MIN_MASS), p - weight * q, 0.0)
        return np.asarray(above.sum(axis=-1).max(axis=-1))

    def find_private(
        self, epsilon: Fraction, delta: Fraction, notion: str | Notion
    ) -> tuple[float, Channel, Privacy] | None:
        """Find the smallest parameter that the exact audit proves private, with its channel and that audit."""
        claim = Claim(notion, epsilon, delta)
        for parameter, channel in self._propose(epsilon, delta, notion):
            pairs = (
                self._find_deciding_pairs(channel, epsilon)
                if claim.notion in REPORTED_NOTIONS
                else self.pairs
            )
            privacy = audit(replace(channel, neighbours=tuple(pairs)), epsilon)
            if privacy.holds(claim):
                return parameter, channel, privacy
        return None

    def _find_deciding_pairs(self, channel: Channel, epsilon: Fraction) -> list[Pair]:
        """Find pairs that include the largest hockey stick, the largest mass above e^ε and the largest ratio.

        By floats with room for their rounding, which that of the masses' logarithms is well within. What breaks no
        budget has no hockey stick.
        """
        p, q = channel.matrix[self._p], channel.matrix[self._q]
        logs = np.stack([row.logs - math.log2(row.total) for row in channel.rows])
        with np.errstate(invalid="ignore"):
            losses = logs[self._p] - logs[self._q] - float(epsilon) / math.log(2)
        surely, perhaps = (
            np.where(losses > level, p, 0.0).sum(axis=1)
            for level in (LOG2_TOLERANCE, -LOG2_TOLERANCE)
        )
        sticks, largest = (
            np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=1),
            np.nanmax(losses, axis=1),
        )
        broken = (perhaps >= surely.max() - _TIE_TOLERANCE) | (
            sticks >= sticks.max() - _TIE_TOLERANCE
        )
        decide = (broken & (perhaps > 0)) | (largest >= largest.max() - LOG2_TOLERANCE)
        return [*compress(self.pairs, decide)]

    def _propose(
        self, epsilon: Fraction, delta: Fraction, notion: str | Notion
    ) -> Iterator[tuple[float, Channel]]:
        """Propose parameters that are private in floats, the smallest first, each with its channel."""
        required = make_ratio_bounds(notion, {(): epsilon}, delta)
        ratio, weight = (
            math.exp(required.epsilons[()]),
            1.0 if required.kind == HOCKEY_STICK else 0.0,
        )
        allowed = float(required.delta)
        # Sums are rounded; the exact audit decides below. Without a delta no sum counts, but every ratio.
        allowed += min(1e-12, 1e-6 * allowed) * weight if named(notion).has_delta else 0.0
        good = np.flatnonzero(self._scanned_deltas(ratio, weight) <= allowed)
        if not good.size:
            return
        low, high = self.grid[[max(good[0] - 1, 0), good[0]]].tolist()
        table = partial(self.family.table, self.n)
        _, high = bisect(
            lambda x: bool(self._compute_deltas(table(x), ratio, weight) <= allowed),
            low,
            high,
            max_steps=60,
        )
        near = (
            4 * _TIE_TOLERANCE / float(epsilon) if epsilon else 1.0
        )  # what a ratio that is a tie is of the parameter
        for slack in sorted(
            (1e-9, 1e-7, 1e-5, near)
        ):  # off the tie, so that exact arithmetic agrees
            parameter = self.family.parameter(high) * (1 + slack)
            yield parameter, self.family.build(self.n, parameter)


def compute_data_independent_error(
    order: int, epsilon: Fraction, delta: Fraction, notion: str | Notion
) -> Fraction:
    """Compute ρ of the best data-independent mechanism on N = `order` noise values; e^ε is rounded down."""
    required = make_ratio_bounds(notion, {(): epsilon}, delta)
    odds = exp_interval(required.epsilons[()], 80)[0]
    private, share = (order - 1) / (order - 1 + odds), 1 - required.delta
    return share * private if required.kind == HOCKEY_STICK else min(share, private)


def list_distances(question: ModuloNoise) -> list[int]:
    """List the distances of neighbours. A shift μ > N/2 may mean μ - N, so both are protected."""
    order, given = question.order, {shift[0] for shift in question.shifts}
    return sorted(given | {order - s for s in given if 2 * s > order})


@lru_cache(maxsize=8)
def get_scan(name: str, question: ModuloNoise) -> Scan:
    """Return the scan of a family, one for all tasks of a process."""
    return Scan(name, question.order - 1, list_distances(question))


@lru_cache(maxsize=8)
def _make_finite_query(question: ModuloNoise) -> FiniteQuery:
    """Make the query of channels with the same answers, without wrapping."""
    order, near = question.order, list_distances(question)
    consecutive = near == [*range(1, len(near) + 1)]
    pairs = [(q, q + d) for d in near for q in range(order - d)]
    relation = {"max_distance": len(near)} if consecutive else pairs
    return FiniteQuery(range(order), neighbours=relation)


def list_laws(request: Any) -> dict[str, tuple[Any, Vector]]:
    """List laws of published mechanisms at one budget, for plots, as name -> (noise values, masses).

    They are the law of data-independent noise, and of the others what they add to an answer in the middle.
    """
    question, epsilon, delta = request.question, request.claim.epsilon, request.claim.delta or ZERO
    if (
        not isinstance(epsilon, Fraction)
        or not bounds_one_ratio(request.claim.notion)
        or request.aim.runs > 1
    ):
        return {}
    if (
        not question.is_scalar
        or question.order > _MAX_SCANNED_ANSWERS
        or request.aim.minimise != "loss"
    ):
        return {}
    order, middle = question.order, question.order // 2
    rho = float(compute_data_independent_error(order, epsilon, delta, request.claim.notion.name))
    laws = {"data-independent": np.append(1 - rho, np.full(order - 1, rho / (order - 1)))}
    for name in _SCANNED_FAMILIES:
        if (
            best := get_scan(name, question).find_private(epsilon, delta, request.claim.notion.name)
        ) is not None:
            laws[f"{name}, of the answer {middle}"] = np.roll(best[1].matrix[middle], -middle)
    return {name: (np.arange(order), law) for name, law in laws.items()}


def _cost_data_independent(request: Any) -> Reference:
    if request.aim.loss == "worst-squared":
        raise NotApplicable("its loss is a mean, not that of the worst noise")
    delta = request.claim.delta or ZERO
    rho = float(
        compute_data_independent_error(
            request.question.order, request.claim.epsilon, delta, request.claim.notion.name
        )
    )
    return Reference(rho * float(request.losses[1:].mean()), value=rho)


def _cost_clamped(name: str, request: Any) -> Reference:
    """Scan for a law of one parameter; for more answers take the law of channels, proven on the line."""
    question, notion, loss = request.question, request.claim.notion.name, request.aim.loss
    if not question.is_scalar:
        raise NotApplicable("it publishes one number, and the answers are tuples")
    if loss not in ("error-rate", "squared"):
        raise NotApplicable(
            "its loss is the error rate or the square, of which alone clamping is worked out"
        )
    epsilon, delta = request.claim.epsilon, request.claim.delta or ZERO
    if question.order > _MAX_SCANNED_ANSWERS:
        query = Query(
            question=_make_finite_query(question),
            claim=Claim(notion, epsilon, delta),
            aim=Aim(loss=loss),
        )
        return _FOR_ANSWERS[_WIDE_NAMES[name]].make_reference(query)
    best = get_scan(name, question).find_private(epsilon, delta, notion)
    if best is None:
        raise NotApplicable("no parameter of the scan meets the budget", "infeasible")
    parameter, channel, privacy = best
    exact = {
        "pdp_delta": round_up(privacy.pdp_delta),
        "dp_delta": privacy.dp_delta.upper,
        "pure_epsilon": privacy.pure_epsilon,
    }
    return Reference(channel.error_rate if loss == "error-rate" else channel.mse, value=parameter, status="scan",
                     extra_columns=exact)  # fmt: skip


PUBLISHED = (
    Published("data-independent", "Kadam et al. 2024", _cost_data_independent),
    *(
        Published(name, _FOR_ANSWERS[wide].source, partial(_cost_clamped, name))
        if name in _SCANNED_FAMILIES
        else replace(
            _FOR_ANSWERS[wide],
            name=name,
            make_reference=partial(_cost_clamped, name),
            serves=lambda request: request.question.order > _MAX_SCANNED_ANSWERS,
        )
        for name, wide in _WIDE_NAMES.items()
    ),
)
