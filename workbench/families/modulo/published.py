"""Find the smallest error of published mechanisms for count queries with answers 0..n, at (ε, δ).

A caller gets each published mechanism with the parameter at which its error is smallest and it is
proven private, for comparison with optimal modulo noise.

`PUBLISHED` is the table that the rest of the package reads. A scanned family (one parameter, tried
on a grid) is added in four places: its mechanism in `BASELINE_FAMILIES`
(`workbench.mechanisms.baselines.count_queries`), its name in `_SCANNED_FAMILIES`, its grid in
`_make_scan`, and its name among the mechanisms for channels in `_WIDE_NAMES`.

Notation. Pr[k|q] is the probability of the output k at the answer q, δ(ε) the smallest δ of the
mechanism at ε, N = n + 1 the number of noise values, f(0) the mass of the noise value 0, and
ρ = 1 - f(0) the error rate.

    clamped geometric, clamped discrete   the smallest parameter whose δ(ε) is at most δ
    Gaussian, exponential
    data-independent, f(0) = 1 - ρ,       pdp: ρ = min(1 - δ, (N-1)/(N-1+e^ε))
    the rest ρ/(N-1) each                 dp:  ρ = (1 - δ) (N-1)/(N-1+e^ε)

    δ(ε) = max over neighbouring answers q, q' of
           Σ_k Pr[k|q] over {Pr[k|q] > e^ε Pr[k|q']}      (pdp)
           Σ_k max(0, Pr[k|q] - e^ε Pr[k|q'])             (dp)

The error of a family grows with its parameter, so the smallest private parameter is the best. It is
found by a scan of parameters, which bisection refines, and the result is audited exactly. (δ(ε)
need not fall as the parameter grows, so the scan could miss a feasible interval that is narrower
than its step.) Neighbours are answers that differ by one of the given distances, without wrapping.
Optimal modulo noise also protects the pairs that wrap.
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
from workbench.notions import Notion, get_notion
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

# A probability that exceeds e^ε times another by at most this share counts as equal to it.
_TIE_TOLERANCE = 1e-11
# For more answers no parameters are scanned: the noise is proven private before it is clamped.
_MAX_SCANNED_ANSWERS = 60
_MIN_MASS = 1e-290  # Ratios of smaller masses are not seen in floats.
_SCAN_STEPS = 401  # A scan has this many steps of equal length.
_SMALL_STEPS = 12  # A scan has this many values below its steps of equal length.
_LARGE_STEPS = 25  # A scan has this many values above its steps of equal length.
_BISECTION_STEPS = 60  # The interval of a parameter is halved this many times.
# Float sums may exceed δ by this, or by this share of δ if that is less.
_DELTA_ROUNDING = 1e-12
_DELTA_ROUNDING_SHARE = 1e-6
# A bisected parameter is increased by these shares in turn, until the exact audit accepts it.
_PARAMETER_MARGINS = (1e-9, 1e-7, 1e-5)
_ODDS_BITS = 80  # e^ε is rounded down to this many bits.

# The names of these mechanisms among those for channels, which replace them for many answers.
_WIDE_NAMES = {
    "geometric": "clamped geometric",
    "gaussian": "clamped discrete Gaussian",
    "exponential": "exponential",
    "truncated geometric": "clamped truncated geometric",
    "staircase": "clamped staircase",
}

_CHANNEL_ENTRIES = index_by_name(CHANNEL_PUBLISHED)
_SCANNED_FAMILIES = ("geometric", "gaussian", "exponential")


def _extend_scan(
    low: float,
    middle: Vector,
    high: float,
    low_steps: int = _SMALL_STEPS,
    high_steps: int = _LARGE_STEPS,
) -> Vector:
    """Extend the values `middle` by a geometric sequence down to low and one up to high."""
    small_values = np.geomspace(low, middle[0], low_steps, endpoint=False)
    large_values = np.geomspace(middle[-1], high, high_steps + 1)[1:]
    return np.concatenate([small_values, middle, large_values])


def _make_scan(family: str, steps: int) -> Vector:
    """Make the values of a family's parameter to scan, in increasing order.

    At the least value a mechanism is not private at any allowed budget. `steps` values lie evenly
    where budgets usually need them. A few more lie below and above, ever farther apart. The values
    are α (geometric), log σ² (gaussian), and the scale of the exponential mechanism. The ends of
    the three parts were chosen by trial; they affect the speed and not the privacy of the result.
    """
    if family == "geometric":
        middle = np.linspace(0.002, 0.9995, steps)
        large_values = 1 - np.geomspace(1 - middle[-1], 1e-9, _LARGE_STEPS + 1)[1:]
        return np.append(_extend_scan(1e-12, middle, middle[-1], high_steps=0), large_values)
    if family == "gaussian":
        middle = np.linspace(math.log(0.01), math.log(1e4), steps)
        small_values = np.linspace(math.log(0.005), middle[0], _SMALL_STEPS, endpoint=False)
        large_values = np.linspace(middle[-1], math.log(1e7), _LARGE_STEPS)[1:]
        return np.concatenate([small_values, middle, large_values])
    return _extend_scan(low=0.01, middle=np.linspace(0.02, 60.0, steps), high=1e7)


class Scan:
    """Scan the parameter of one family of mechanisms on 0..n.

    The tables of the family are computed once for all budgets.

    Args:
        family: "geometric", "gaussian" or "exponential".
        n: the largest answer.
        distances: the distances of neighbouring answers.
        steps: the number of parameter values in the scan.
    """

    def __init__(
        self, family: str, n: int, distances: Sequence[int], steps: int = _SCAN_STEPS
    ) -> None:
        self.family = BASELINE_FAMILIES[family]
        self.n = n
        # One order of each pair is enough: the laws of (q', q) are the mirror images of the laws
        # of (n - q', n - q), which has the same distance.
        self.pairs = []
        for d in sorted(set(distances)):
            self.pairs += [(q, q + d) for q in range(n + 1 - d)]
        self._first_answers, self._second_answers = np.array(self.pairs).T
        self.grid = _make_scan(family, steps)
        # One table for each parameter, shape (steps, n + 1, outputs).
        tables = np.stack([self.family.table(n, float(x)) for x in self.grid])
        # The last δ are cached, as a frontier asks for several δ at one ε.
        self._scanned_deltas = lru_cache(maxsize=1)(partial(self._compute_deltas, tables))

    def _compute_deltas(self, tables: Vector, ratio: float, weight: float) -> Vector:
        """Compute δ of every table.

        Args:
            tables: the laws of all answers, shape (..., n + 1, outputs).
            ratio: the ratio r = e^ε.
            weight: the weight w: 1 for the hockey stick (dp), 0 for the mass above the ratio (pdp).

        Returns:
            For every table the largest Σ (P - w r Q) over {P > r Q} of the laws P and Q of two
            neighbours, shape (...).
        """
        p = tables.take(self._first_answers, axis=-2)
        q = tables.take(self._second_answers, axis=-2) * ratio
        exceeds = (p > q * (1 + _TIE_TOLERANCE)) & (p > _MIN_MASS)
        excess = np.where(exceeds, p - weight * q, 0.0)
        return np.asarray(excess.sum(axis=-1).max(axis=-1))

    def find_private(
        self, epsilon: Fraction, delta: Fraction, notion: str | Notion
    ) -> tuple[float, Channel, Privacy] | None:
        """Find the smallest parameter that the exact audit proves private.

        Args:
            epsilon: the budget ε >= 0.
            delta: the budget δ in [0, 1].
            notion: "pdp", "dp" or "pure".

        Returns:
            The parameter, its channel and the audit; None if no parameter of the scan is private.
        """
        claim = Claim(notion, epsilon, delta)
        for parameter, channel in self._propose(epsilon, delta, notion):
            pairs = self.pairs
            if claim.notion in REPORTED_NOTIONS:
                pairs = self._find_deciding_pairs(channel, epsilon)
            privacy = audit(replace(channel, neighbours=tuple(pairs)), epsilon)
            if privacy.holds(claim):
                return parameter, channel, privacy
        return None

    def _find_deciding_pairs(self, channel: Channel, epsilon: Fraction) -> list[Pair]:
        """Find the pairs that may have the largest hockey stick, mass above e^ε, or ratio.

        The pairs are chosen in floats, with tolerances larger than the rounding error, so no
        deciding pair is missed. Pairs within the budget have the hockey stick 0.
        """
        p = channel.matrix[self._first_answers]
        q = channel.matrix[self._second_answers]
        # These logarithms have base 2, and so have the privacy losses and ε here.
        logs = np.stack([row.logs - math.log2(row.total) for row in channel.rows])
        with np.errstate(invalid="ignore"):
            privacy_losses = logs[self._first_answers] - logs[self._second_answers]
            excesses = privacy_losses - float(epsilon) / math.log(2)
        certain_mass = np.where(excesses > LOG2_TOLERANCE, p, 0.0).sum(axis=1)
        possible_mass = np.where(excesses > -LOG2_TOLERANCE, p, 0.0).sum(axis=1)
        sticks = np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=1)
        max_excesses = np.nanmax(excesses, axis=1)
        may_have_max_mass = possible_mass >= certain_mass.max() - _TIE_TOLERANCE
        may_have_max_stick = sticks >= sticks.max() - _TIE_TOLERANCE
        may_decide_delta = (may_have_max_mass | may_have_max_stick) & (possible_mass > 0)
        may_decide_ratio = max_excesses >= max_excesses.max() - LOG2_TOLERANCE
        return [*compress(self.pairs, may_decide_delta | may_decide_ratio)]

    def _propose(
        self, epsilon: Fraction, delta: Fraction, notion: str | Notion
    ) -> Iterator[tuple[float, Channel]]:
        """Propose parameters that are private in floats, smallest first, with their channels."""
        ratio_bounds = make_ratio_bounds(notion, {(): epsilon}, delta)
        ratio = math.exp(ratio_bounds.epsilons[()])
        weight = 1.0 if ratio_bounds.kind == HOCKEY_STICK else 0.0
        max_delta = float(ratio_bounds.delta)
        if get_notion(notion).has_delta:
            # Float sums may exceed δ by rounding; the exact audit decides. A notion without δ gets
            # no tolerance, because it limits every ratio and not a sum.
            max_delta += min(_DELTA_ROUNDING, _DELTA_ROUNDING_SHARE * max_delta) * weight
        private_indices = np.flatnonzero(self._scanned_deltas(ratio, weight) <= max_delta)
        if not private_indices.size:
            return
        index = private_indices[0]
        low, high = self.grid[[max(index - 1, 0), index]].tolist()

        def is_private(x: float) -> bool:
            """Return whether the law at grid parameter `x` needs at most the allowed δ."""
            table = self.family.table(self.n, x)
            return bool(self._compute_deltas(table, ratio, weight) <= max_delta)

        _, high = bisect(is_private, low, high, max_steps=_BISECTION_STEPS)
        # At the bisected parameter some ratio equals e^ε up to rounding. A slightly larger one
        # makes the inequality strict, so that the exact audit accepts it.
        tie_share = 4 * _TIE_TOLERANCE / float(epsilon) if epsilon else 1.0
        for share in sorted((*_PARAMETER_MARGINS, tie_share)):
            parameter = self.family.parameter(high) * (1 + share)
            yield parameter, self.family.build(self.n, parameter)


def compute_data_independent_error(
    order: int, epsilon: Fraction, delta: Fraction, notion: str | Notion
) -> Fraction:
    """Compute the error rate ρ of the best data-independent mechanism.

    Args:
        order: N, the number of noise values.
        epsilon: the budget ε >= 0. e^ε is rounded down, so the error is an upper bound.
        delta: the budget δ in [0, 1].
        notion: "pdp", "dp" or "pure".

    Returns:
        The error rate as an exact number.
    """
    ratio_bounds = make_ratio_bounds(notion, {(): epsilon}, delta)
    odds, _ = exp_interval(ratio_bounds.epsilons[()], _ODDS_BITS)
    pure_error = (order - 1) / (order - 1 + odds)
    share = 1 - ratio_bounds.delta
    if ratio_bounds.kind == HOCKEY_STICK:
        return share * pure_error
    return min(share, pure_error)


def list_distances(question: ModuloNoise) -> list[int]:
    """List the distances of neighbours without wrapping.

    A shift μ > N/2 may mean μ - N, so both are protected.

    Args:
        question: a scalar question.
    """
    order = question.order
    shifts = {shift[0] for shift in question.shifts}
    return sorted(shifts | {order - shift for shift in shifts if 2 * shift > order})


@lru_cache(maxsize=8)
def get_scan(name: str, question: ModuloNoise) -> Scan:
    """Return the scan of a family, which all tasks of a process share.

    Args:
        name: "geometric", "gaussian" or "exponential".
        question: a scalar question.
    """
    return Scan(name, question.order - 1, list_distances(question))


@lru_cache(maxsize=8)
def _make_finite_query(question: ModuloNoise) -> FiniteQuery:
    """Make the query of channels with the same answers, without wrapping."""
    order = question.order
    distances = list_distances(question)
    if distances == [*range(1, len(distances) + 1)]:
        return FiniteQuery(range(order), neighbours={"max_distance": len(distances)})
    pairs = []
    for distance in distances:
        pairs += [(q, q + distance) for q in range(order - distance)]
    return FiniteQuery(range(order), neighbours=pairs)


def list_laws(request: Any) -> dict[str, tuple[Any, Vector]]:
    """List the laws of published mechanisms at the budget of a request, for plots.

    Args:
        request: the request for modulo noise.

    Returns:
        name -> (noise values (N,), masses (N,)). For data-independent noise this is its law; for
        the other mechanisms it is the law of published minus true answer (modulo N) at the answer
        in the middle. Empty if no published mechanism is computed for the request.
    """
    question = request.question
    epsilon = request.claim.epsilon
    delta = request.claim.delta or ZERO
    notion = request.claim.notion
    has_one_ratio = isinstance(epsilon, Fraction) and bounds_one_ratio(notion)
    if not has_one_ratio or request.aim.runs > 1 or request.aim.minimise != "loss":
        return {}
    if not question.is_scalar or question.order > _MAX_SCANNED_ANSWERS:
        return {}
    order = question.order
    middle = order // 2
    rho = float(compute_data_independent_error(order, epsilon, delta, notion.name))
    laws = {"data-independent": np.append(1 - rho, np.full(order - 1, rho / (order - 1)))}
    for name in _SCANNED_FAMILIES:
        result = get_scan(name, question).find_private(epsilon, delta, notion.name)
        if result is not None:
            _, channel, _ = result
            row = channel.matrix[middle]
            # Entry 0 is then the mass of publishing the true answer.
            laws[f"{name}, of the answer {middle}"] = np.roll(row, -middle)
    return {name: (np.arange(order), law) for name, law in laws.items()}


def _compute_data_independent_reference(request: Any) -> Reference:
    """Compute the loss of data-independent noise for a request."""
    if request.aim.loss == "worst-squared":
        raise NotApplicable("its loss is a mean, not that of the worst noise")
    delta = request.claim.delta or ZERO
    notion = request.claim.notion.name
    rho = float(
        compute_data_independent_error(request.question.order, request.claim.epsilon, delta, notion)
    )
    return Reference(rho * float(request.losses[1:].mean()), value=rho)


def _compute_clamped_reference(name: str, request: Any) -> Reference:
    """Compute the loss of a clamped law by a scan; for many answers, by the entry for channels.

    Args:
        name: the name of the mechanism, a key of _WIDE_NAMES.
        request: the request for modulo noise.

    Raises:
        NotApplicable: the answers are vectors, the loss is neither the error rate nor the squared
            loss, or no parameter is private at the budget.
    """
    question = request.question
    notion = request.claim.notion.name
    loss = request.aim.loss
    if not question.is_scalar:
        raise NotApplicable("it publishes one number, and the answers are tuples")
    if loss not in ("error-rate", "squared"):
        raise NotApplicable("its loss is only computed for the error rate and the squared error")
    epsilon = request.claim.epsilon
    delta = request.claim.delta or ZERO
    if question.order > _MAX_SCANNED_ANSWERS:
        query = Query(
            question=_make_finite_query(question),
            claim=Claim(notion, epsilon, delta),
            aim=Aim(loss=loss),
        )
        return _CHANNEL_ENTRIES[_WIDE_NAMES[name]].make_reference(query)
    result = get_scan(name, question).find_private(epsilon, delta, notion)
    if result is None:
        raise NotApplicable("no parameter of the scan meets the budget", "infeasible")
    parameter, channel, privacy = result
    verified_columns = {
        "pdp_delta": round_up(privacy.pdp_delta),
        "dp_delta": privacy.dp_delta.upper,
        "pure_epsilon": privacy.pure_epsilon,
    }
    error = channel.error_rate if loss == "error-rate" else channel.mse
    return Reference(error, value=parameter, status="scan", extra_columns=verified_columns)


def _has_many_answers(request: Any) -> bool:
    """Check whether a request has too many answers for a scan."""
    return bool(request.question.order > _MAX_SCANNED_ANSWERS)


def _make_clamped_entry(name: str, wide_name: str) -> Published:
    """Make the entry of a clamped law. Laws that are not scanned are for many answers only."""
    channel_entry = _CHANNEL_ENTRIES[wide_name]
    make_reference = partial(_compute_clamped_reference, name)
    if name in _SCANNED_FAMILIES:
        return Published(name, channel_entry.source, make_reference)
    return replace(
        channel_entry, name=name, make_reference=make_reference, serves=_has_many_answers
    )


PUBLISHED = (
    Published("data-independent", "Kadam et al. 2024", _compute_data_independent_reference),
    *(_make_clamped_entry(name, wide_name) for name, wide_name in _WIDE_NAMES.items()),
)
