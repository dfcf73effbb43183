"""Compute how far published mechanisms are from the proven optimum, on a grid of budgets.

A setting is a question with its losses. Δ and D are sensitivities, the largest difference of
neighbouring answers. To add a setting, add an entry to `SETTINGS`.

setting     what is published                                         the optimum is over
reals       noise on the reals, Δ = 1                                 all noise on the reals
integers    noise on the integers, D = 1                              all noise on the integers
counts      answers 0..10 under a uniform prior, neighbours 1 apart   all channels onto answers
labels      answers 0..7 under a uniform prior, all neighbours        all channels onto answers
range       a value uniform on [0, 1], all neighbours; pure           all channels of the range
unbiased    the same, with the value as mean                          all unbiased randomizers

Every optimum lies in [lower, upper]. The lower end is a proven bound on the class, and the upper
end is the smallest loss of a designed or published mechanism. The *distance* of a mechanism from
the optimum is its loss divided by the optimum, minus 1, in percent. For example, a loss of 1.05 and
an optimum in [0.99, 1] give a distance between 5 % and 6.1 %.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import cache, partial
from typing import Any, NamedTuple

from workbench.errors import NotProven, WorkbenchError
from workbench.exact.numbers import ZERO
from workbench.exact.objects import Values
from workbench.families.channel.family import FAMILY as CHANNEL
from workbench.families.channel.range import bound_by_bins
from workbench.families.noise.family import FAMILY as NOISE
from workbench.families.quantizer.family import FAMILY as QUANTIZER
from workbench.families.quantizer.limit import bound_least_mae, compute_mae_limit
from workbench.io.result import Row
from workbench.models.oracles import line_noise
from workbench.pipeline.family import Family
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.published import (
    Published,
    Reference,
    compute_references,
    index_by_name,
    list_entries,
    published_for,
)
from workbench.pipeline.recommendation import Query, evaluate_published
from workbench.pipeline.request import Aim
from workbench.pipeline.user_baselines import make_baselines
from workbench.privacy.claim import Claim
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.range_query import RangeQuery
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise
from workbench.solvers.search import Deadline

# A distance is stated if the two ends of the optimum differ by at most this share.
MAX_OPTIMUM_GAP = Fraction(1, 50)
# Noise with δ > 0 is not designed if truncated Laplace noise, which is about as wide as the optimal
# noise, has a support of more sensitivities than this.
_MAX_DESIGNED_SUPPORT = 600
# Densities change too much within a cell above this ε.
_MAX_DENSITY_EPSILON = 4
# A support is divided into about this many cells.
_CELLS_PER_SUPPORT = 64
# A sensitivity is divided into at least this many cells.
_MIN_CELLS_PER_SENSITIVITY = 2
# A sensitivity is divided into at most this many cells.
_MAX_CELLS_PER_SENSITIVITY = 24
# A mechanism is compared at these ε first.
_FIRST_EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "4")
# ε are added until the bound on the distance between them is at most this times the largest
# distance at one of them, plus 1 percentage point.
_MAX_DISTANCE_RATIO = 1.1
# A mechanism is compared at no more than this many ε.
_MAX_COMPARED_EPSILONS = 150
# Smaller distances are printed as this many percent, so that rounding never prints 0.
_MIN_SHOWN_PERCENT = 1e-6
# A mechanism within this many percent of the optimum is called close.
_CLOSE_PERCENT = 1
_POWER_LOSSES = ("absolute", "squared")

# The proven (lower, upper) ends of an optimum.
Interval = tuple[float, float]


class _LossAndBound(NamedTuple):
    """A mechanism beside the optimum at one ε.

    Attributes:
        loss: expected loss of the mechanism made for this ε. inf if it is not private.
        lower: lower bound on the optimum. 0 if none is known.
    """

    loss: float
    lower: float


# Function of ε.
_Measure = Callable[[Fraction], _LossAndBound]


@dataclass(frozen=True)
class Setting:
    """A question whose published mechanisms are compared with the proven optimum.

    Attributes:
        losses: Names of the losses.
        family: Family whose published mechanisms are compared.
        make_request: Function of (ε, δ, loss) that returns what the mechanisms serve: a request of
            the family for noise, and a `Query` for all other settings.
        bound_optimum: Function of the result of `make_request` that returns the proven
            [lower, upper]. A design has the loss `upper`.
        has_deltas: Whether δ > 0 is compared.
        is_unbiased: Whether only unbiased mechanisms are compared.
        bound_from_below: Function of the result of `make_request` that returns the lower end only,
            in less time. None: there is no faster function than `bound_optimum`.
    """

    losses: tuple[str, ...]
    family: Family
    make_request: Callable[[Fraction, Fraction, str], Any]
    bound_optimum: Callable[[Any], Interval]
    has_deltas: bool = True
    is_unbiased: bool = False
    bound_from_below: Callable[[Any], float] | None = None

    def list_serving_entries(self, request: Any) -> list[Published]:
        """List the published mechanisms of the setting that serve a request or query.

        Args:
            request: result of `make_request`.
        """
        entries = published_for(request, self.family)
        return [entry for entry in entries if entry.is_unbiased or not self.is_unbiased]

    def make_rows(self, epsilon: Fraction, delta: Fraction, loss: str) -> list[Row]:
        """Make a row of each mechanism that applies at one budget.

        Args:
            epsilon: ε of the budget.
            delta: δ of the budget.
            loss: name of the loss.

        Returns:
            One row for each mechanism: loss, epsilon, delta, mechanism, source, parameter,
            objective (its expected loss), and the interval [lower, upper] of the optimum. The
            distance from the optimum is between least_percent and most_percent. They and `lower`
            are None if the interval is wider than MAX_OPTIMUM_GAP.
        """
        request = self.make_request(epsilon, delta, loss)
        entries = self.list_serving_entries(request)
        references = _compute_setting_references(self, epsilon, delta, loss)
        sources = {entry.name: entry.source for entry in entries}
        lower, upper = _bound_setting_optimum(self, epsilon, delta, loss)
        upper = min([upper, *(reference.objective for reference in references.values())])
        is_known = lower > 0 and upper - lower <= MAX_OPTIMUM_GAP * upper
        rows: list[Row] = []
        for name, reference in references.items():
            row: Row = {
                "loss": loss,
                "epsilon": float(epsilon),
                "delta": float(delta),
                "mechanism": name,
                "source": sources[name],
                "parameter": reference.parameter_text,
                "objective": reference.objective,
                "lower": None,
                "upper": upper,
                "most_percent": None,
                "least_percent": None,
            }
            if is_known:
                row["lower"] = lower
                row["most_percent"] = _compute_excess_percent(reference.objective, lower)
                row["least_percent"] = _compute_excess_percent(reference.objective, upper)
            rows.append(row)
        return rows


# The results of both functions are cached, because the table of `compare_setting` and the bounds of
# `_bound_excess_everywhere` need some budgets twice.


@cache
def _compute_setting_references(
    setting: Setting, epsilon: Fraction, delta: Fraction, loss: str
) -> dict[str, Reference]:
    """Return the published mechanisms of a setting at a budget by name."""
    request = setting.make_request(epsilon, delta, loss)
    return compute_references(setting.list_serving_entries(request), request)


@cache
def _bound_setting_optimum(
    setting: Setting, epsilon: Fraction, delta: Fraction, loss: str
) -> Interval:
    """Return the proven [lower, upper] of a setting at a budget."""
    return setting.bound_optimum(setting.make_request(epsilon, delta, loss))


def compare_setting(
    name: str, epsilons: Iterable[Fraction], deltas: Iterable[Fraction]
) -> list[Row]:
    """Make the rows of a setting on a grid of budgets.

    Args:
        name: name of the setting.
        epsilons: values of ε.
        deltas: values of δ. Settings without δ use 0.
    """
    setting = SETTINGS[name]
    used_deltas = deltas if setting.has_deltas else [ZERO]
    rows_by_loss: dict[str, list[Row]] = {loss: [] for loss in setting.losses}
    # The losses of a budget come one after the other, because they share fitted laws.
    for delta, epsilon, loss in itertools.product(used_deltas, epsilons, setting.losses):
        rows_by_loss[loss] += setting.make_rows(epsilon, delta, loss)
    return [*itertools.chain.from_iterable(rows_by_loss.values())]


def summarise_setting(name: str, rows: Iterable[Row]) -> list[Row]:
    """Compute the summary of a setting for each mechanism and loss.

    Args:
        name: name of the setting.
        rows: rows of `compare_setting`.

    Returns:
        One row for each mechanism and loss: setting, loss, mechanism, source; budgets (number of
        rows) and proven (those with a known distance); worst_percent, worst_at and median_percent,
        the largest and the median distance; every_percent, a bound on the distance for all ε from
        0.1 to 4 at δ = 0; within_1_percent and where, the number and the list of budgets at which
        the distance is at most 1 %. None: not known.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["loss"], row["mechanism"]), []).append(row)
    return [_summarise_group(name, *key, group) for key, group in groups.items()]


def _compute_excess_percent(loss: float, optimum: float) -> float:
    """Return the distance of a loss from the optimum in percent, at least 0."""
    return max(0.0, 100 * (loss / optimum - 1))


def describe_baseline_distances(query: Query) -> Iterator[str]:
    """Yield the distance of each user-defined or named baseline from the best channel.

    The channel has the outputs of the query. The distance is stated at the budget of the query, and
    for every ε of a range, as far as the time limit allows.

    Args:
        query: a finite query with baselines.
    """
    deadline = Deadline(None if query.time is None else query.time.solver_seconds)
    baselines = make_baselines(query.user_baselines, CHANNEL.name)
    entries = index_by_name(list_entries(CHANNEL, baselines))
    # Name -> function of the budget or matrix of a user-defined baseline; None for a named one.
    laws: Values = {**dict.fromkeys(query.compared_names), **dict(query.user_baselines)}
    for name, law in laws.items():
        measure = partial(_measure_entry, query, entries[name])
        loss, optimum_bound = measure(query.claim.epsilon)
        if not optimum_bound or loss == math.inf:
            continue
        percent = _format_percent_up(_compute_excess_percent(loss, optimum_bound))
        sentences = (
            f"{name}: at this budget its expected loss is at most {percent} % above the proven "
            "optimum on the same outputs."
        )
        # A matrix is made for one budget only.
        has_every_budget = law is None or callable(law)
        if has_every_budget and query.claim.epsilon is not None:
            sentences += f" {_describe_every_epsilon(measure, deadline)}"
        yield sentences


def _describe_every_epsilon(measure: _Measure, deadline: Deadline) -> str:
    """Return a sentence on the distance of a mechanism for every ε of a range."""
    result = _bound_excess_between(measure, deadline)
    if result is None:
        return "At other budgets it is not private, or its distance is not known."
    percent, epsilons = result
    interval = f"[{float(epsilons[0]):g}, {float(epsilons[-1]):g}]"
    return (
        f"For every epsilon in {interval} it is at most {_format_percent_up(percent)} % above the "
        f"optimum (computed at {len(epsilons)} epsilons; proven between them by monotonicity)."
    )


def _bound_excess_between(
    measure: _Measure, deadline: Deadline
) -> tuple[float, list[Fraction]] | None:
    """Bound the distance from the optimum, in percent, for every ε of a range.

    Let L(a) be the loss of the mechanism made for the budget ε = a, and V(a) the optimum there. The
    mechanism is private at every ε >= a, and V decreases with ε. So for every ε of [a, b] one of
    the mechanisms made for budgets a' <= a may be used, and the best of them is at most
    min L(a') / V(b) - 1 above the optimum. Nothing is assumed about mechanisms made for budgets
    between a and b. The interval with the largest bound is halved until the bound is close to the
    largest distance at one ε.

    Returns the bound and the compared ε. None if the range is empty.
    """
    results = {epsilon: measure(epsilon) for epsilon in map(Fraction, _FIRST_EPSILONS)}
    while True:
        epsilons = sorted(epsilon for epsilon, result in results.items() if result.lower)
        losses = [results[epsilon].loss for epsilon in epsilons]
        lower_bounds = [results[epsilon].lower for epsilon in epsilons]
        # The smallest loss of the mechanisms made for this ε or a smaller one.
        smallest_losses = [*itertools.accumulate(losses, min)]
        # The first ε have no private mechanism and are left out. In every later interval [a, b],
        # the smallest loss at a is compared with the lower bound on the optimum at b.
        start = sum(loss == math.inf for loss in smallest_losses)
        excesses = [
            *map(_compute_excess_percent, smallest_losses[start:-1], lower_bounds[start + 1 :])
        ]
        if not excesses:
            return None
        largest_excess = max(excesses)
        position = start + excesses.index(largest_excess)
        middle = (epsilons[position] + epsilons[position + 1]) / 2
        largest_at_point = max(
            map(_compute_excess_percent, smallest_losses[start:], lower_bounds[start:])
        )
        is_close = largest_excess <= _MAX_DISTANCE_RATIO * largest_at_point + 1
        is_exhausted = deadline.has_passed or len(results) >= _MAX_COMPARED_EPSILONS
        if is_close or middle in results or is_exhausted:
            return largest_excess, epsilons[start:]
        results[middle] = measure(middle)


def _format_percent_up(percent: float) -> str:
    """Format a percentage with three digits, rounded up."""
    context = Context(prec=3, rounding=ROUND_CEILING)
    rounded_percent = context.create_decimal_from_float(max(percent, _MIN_SHOWN_PERCENT))
    return f"{float(rounded_percent):g}"


def _measure_entry(query: Query, entry: Published, epsilon: Fraction) -> _LossAndBound:
    """Return the loss of a published mechanism at an ε, and a lower bound on the optimum."""
    query = replace(query, claim=query.claim.with_values(epsilon=epsilon))
    loss = math.inf
    lower = 0.0
    with suppress(WorkbenchError):
        loss = evaluate_published(entry, query).objective
    with suppress(WorkbenchError):
        channel_bound, _ = _bound_channels(query)
        lower = max(0.0, channel_bound)
    return _LossAndBound(loss, lower)


def _measure_pure_setting(
    name: str, loss: str, epsilon: Fraction
) -> tuple[float, dict[str, Reference]]:
    """Return (lower bound on the optimum of a setting at δ = 0, name -> published mechanism)."""
    setting = SETTINGS[name]
    if setting.bound_from_below is None:
        lower, _ = _bound_setting_optimum(setting, epsilon, ZERO, loss)
    else:
        lower = setting.bound_from_below(setting.make_request(epsilon, ZERO, loss))
    return lower, _compute_setting_references(setting, epsilon, ZERO, loss)


def _bound_excess_everywhere(name: str, loss: str, mechanism: str) -> float | None:
    """Bound the distance of a mechanism, in percent, for every ε of `_FIRST_EPSILONS` at δ = 0.

    None if the bound does not hold from the first ε on.
    """

    def measure(epsilon: Fraction) -> _LossAndBound:
        """Return the loss of the mechanism, and a lower bound on the optimum."""
        lower, references = _measure_pure_setting(name, loss, epsilon)
        if mechanism in references:
            return _LossAndBound(references[mechanism].objective, lower)
        return _LossAndBound(math.inf, lower)

    result = _bound_excess_between(measure, Deadline())
    if result is None:
        return None
    percent, epsilons = result
    if epsilons[0] > Fraction(_FIRST_EPSILONS[0]):
        return None
    return float(_format_percent_up(percent))


def _summarise_group(name: str, loss: str, mechanism: str, group: list[Row]) -> Row:
    """Return the summary of one mechanism and loss."""
    known_rows = [row for row in group if row["most_percent"] is not None]
    close_rows = [row for row in known_rows if row["most_percent"] <= _CLOSE_PERCENT]
    summary: Row = {
        "setting": name,
        "loss": loss,
        "mechanism": mechanism,
        "source": group[0]["source"],
        "budgets": len(group),
        "proven": len(known_rows),
        "worst_percent": None,
        "worst_at": "",
        "every_percent": _bound_excess_everywhere(name, loss, mechanism),
        "median_percent": None,
        "within_1_percent": len(close_rows),
        "where": _describe_budgets(close_rows),
    }
    if known_rows:
        # The first of equal distances, as they are printed, is named.
        worst_row = max(known_rows, key=lambda row: float(f"{row['most_percent']:.3g}"))
        summary["worst_percent"] = worst_row["most_percent"]
        summary["worst_at"] = "ε = {epsilon:g}, δ = {delta:g}".format(**worst_row)
        summary["median_percent"] = statistics.median(row["most_percent"] for row in known_rows)
    return summary


def _describe_budgets(rows: list[Row]) -> str:
    """Return the ε of every δ as a text."""
    epsilons_by_delta: dict[float, list[str]] = {}
    for delta, epsilon in sorted((row["delta"], row["epsilon"]) for row in rows):
        epsilons_by_delta.setdefault(delta, []).append(f"{epsilon:g}")
    parts = [f"δ = {d:g}: ε = {', '.join(texts)}" for d, texts in epsilons_by_delta.items()]
    return "; ".join(parts)


# Intervals of optima.


def _bound_by_design(family: Family, request: Any) -> Interval:
    """Return the lower bound and the loss of a design, also if it is not proven optimal."""
    try:
        with translate_errors():
            design = family.design_request(request)
        return float(design.bound or 0), float(design.objective)
    except NotProven as error:
        if error.interrupted:
            raise KeyboardInterrupt from None
        loss = math.inf
        if error.incumbent is not None:
            loss = float(error.incumbent)
        return float(error.bound or 0), loss


def _compute_laplace_support(request: Any) -> float:
    """Return the support of truncated Laplace noise, in sensitivities."""
    epsilon = float(request.claim.epsilon)
    return line_noise.truncated_laplace_support(epsilon, float(request.claim.delta))


def _has_long_support(request: Any) -> bool:
    """Return whether a design would take long, because its noise has a long support."""
    if not request.claim.delta:
        return False
    return _compute_laplace_support(request) > _MAX_DESIGNED_SUPPORT


def _bound_real_noise(request: Any) -> Interval:
    """Return the interval of the optimum over all noise on the reals."""
    epsilon = float(request.claim.epsilon)
    loss = request.loss_name
    if not request.claim.delta:
        optimum = line_noise.staircase_reals(epsilon, 1.0, loss)
        return optimum, optimum
    if _has_long_support(request) or epsilon > _MAX_DENSITY_EPSILON:
        return 0.0, math.inf
    steps = round(_CELLS_PER_SUPPORT / _compute_laplace_support(request))
    steps = min(max(steps, _MIN_CELLS_PER_SENSITIVITY), _MAX_CELLS_PER_SENSITIVITY)
    design_request = NOISE.make_request(
        request.question,
        epsilon=request.claim.epsilon,
        delta=request.claim.delta,
        loss=loss,
        steps=steps,
        certify=False,
        gap="0.2",
    )
    return _bound_by_design(NOISE, design_request)


def _bound_integer_noise(request: Any) -> Interval:
    """Return the interval of the optimum over all noise on the integers."""
    if _has_long_support(request):
        return 0.0, math.inf
    return _bound_by_design(NOISE, request)


def _bound_channels(query: Query) -> Interval:
    """Return the interval of the optimum over all channels onto the outputs."""
    # The query keeps its requests, so equal ones are the same object.
    request = query.make_request(
        CHANNEL, query.question, loss=query.aim.loss, **query.budget_options
    )
    return _bound_by_design(CHANNEL, request)


def _bound_range_channels(query: Query) -> Interval:
    """Return the interval of the optimum over all channels of a range."""
    with translate_errors():
        request = CHANNEL.make_request(
            query.question, loss=query.aim.loss, certify=False, **query.budget_options
        )
        return bound_by_bins(request)


def _bound_unbiased(query: Query) -> Interval:
    """Return the interval of the optimum over all unbiased randomizers.

    The limit is for inputs in [-1, 1], which is twice as wide as the range.
    """
    with translate_errors():
        limit = compute_mae_limit(float(query.claim.epsilon))
    return limit.lower / 2, limit.upper / 2


def _bound_unbiased_from_below(query: Query) -> float:
    """Return the lower end of `_bound_unbiased`."""
    with translate_errors():
        return bound_least_mae(float(query.claim.epsilon)).lower / 2


def _make_noise_request(question: Any) -> Callable[[Fraction, Fraction, str], Any]:
    """Return a function of (ε, δ, loss) that makes a request for noise."""
    return lambda epsilon, delta, loss: NOISE.make_request(
        question, epsilon=epsilon, delta=delta, loss=loss
    )


def _make_finite_query(question: FiniteQuery) -> Callable[[Fraction, Fraction, str], Query]:
    """Return a function of (ε, δ, loss) that makes a query."""
    return lambda epsilon, delta, loss: Query(
        question=question, claim=Claim("dp", epsilon, delta), aim=Aim(loss=loss)
    )


SETTINGS = {
    "reals": Setting(_POWER_LOSSES, NOISE, _make_noise_request(RealNoise(1)), _bound_real_noise),
    "integers": Setting(
        _POWER_LOSSES, NOISE, _make_noise_request(IntegerNoise(1)), _bound_integer_noise
    ),
    "counts": Setting(
        ("absolute", "squared", "error-rate"),
        CHANNEL,
        _make_finite_query(FiniteQuery("0..10", max_shift=1)),
        _bound_channels,
    ),
    "labels": Setting(
        ("error-rate", "squared"),
        CHANNEL,
        _make_finite_query(FiniteQuery("0..7", neighbours="all")),
        _bound_channels,
    ),
    "range": Setting(
        _POWER_LOSSES,
        QUANTIZER,
        _make_finite_query(RangeQuery("0..1")),
        _bound_range_channels,
        has_deltas=False,
    ),
    "unbiased": Setting(
        ("absolute",),
        QUANTIZER,
        _make_finite_query(RangeQuery("0..1")),
        _bound_unbiased,
        has_deltas=False,
        is_unbiased=True,
        bound_from_below=_bound_unbiased_from_below,
    ),
}
