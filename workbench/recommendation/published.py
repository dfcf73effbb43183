"""How far published mechanisms are from the best possible: their losses over proven optima, on a grid of budgets.

setting     what is published                                                the optimum is over
reals       noise on the reals, Δ = 1                                        all noise on the reals
integers    noise on the integers, D = 1                                     all noise on the integers
counts      answers 0..10 under a uniform prior, neighbours 1 apart          all channels that publish answers
labels      answers 0..7 under a uniform prior, every two neighbours         all channels that publish answers
range       a value uniform on [0, 1], every two neighbours; pure            all channels of the range
unbiased    the same, mean the value                                         all unbiased randomizers

Every optimum lies in [lower, upper]: lower is a proven bound on the class, upper the least loss of a mechanism at hand,
designed or published. A mechanism is at most objective/lower - 1 above the optimum, and at least objective/upper - 1.
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
from operator import itemgetter
from typing import Any

from workbench.errors import NotProven, WorkbenchError
from workbench.exact.numbers import ZERO
from workbench.exact.objects import Values
from workbench.families.channel.family import FAMILY as CHANNEL
from workbench.families.channel.range import bound_by_bins
from workbench.families.noise.family import FAMILY as NOISE
from workbench.families.quantizer.family import FAMILY as QUANTIZER
from workbench.families.quantizer.limit import compute_mae_limit
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

MAX_OPTIMUM_GAP = Fraction(
    1, 50
)  # of the optimum, that its two sides must be apart at most for a ratio to be told
_MAX_DESIGNED_SUPPORT = (
    600  # of a support of truncated Laplace noise, in sensitivities, up to which noise is designed
)
_MAX_DENSITY_EPSILON = 4  # ε beyond which densities fall within a cell
_CELLS_PER_SUPPORT, _MIN_CELLS_PER_SENSITIVITY, _MAX_CELLS_PER_SENSITIVITY = (
    64,
    2,
    24,
)  # cells of about a support, of a sensitivity at least and at most
_FIRST_EPSILONS = (
    "0.1",
    "0.2",
    "0.5",
    "1",
    "2",
    "4",
)  # ε at which a function of one's own is compared first
_MAX_DISTANCE_RATIO, _MAX_COMPARED_EPSILONS = (
    1.1,
    150,
)  # times the largest distance at an ε, up to which that between them may be; of all such ε
_MIN_SHOWN_PERCENT = 1e-6  # percent, below which a distance is not told
Interval = tuple[float, float]


@dataclass(frozen=True)
class Setting:
    """A question whose published mechanisms are compared with the proven optimum.

    Attributes:
        losses: Names of the losses.
        family: Family whose published mechanisms are compared.
        request: Function of (ε, δ, loss) that returns the request, or the query, that they serve.
        optimum: Function of that request that returns the proven [lower, upper]; upper is what a design attains.
        has_deltas: Whether δ > 0 is compared.
        is_unbiased: Whether unbiased mechanisms alone are compared.
    """

    losses: tuple[str, ...]
    family: Family
    make_request: Callable[[Fraction, Fraction, str], Any]
    bound_optimum: Callable[[Any], Interval]
    has_deltas: bool = True
    is_unbiased: bool = False

    def list_serving_entries(self, request: Any) -> list[Published]:
        """List the published mechanisms of the setting that serve a request."""
        entries = published_for(request, self.family)
        return [entry for entry in entries if entry.is_unbiased or not self.is_unbiased]

    def make_rows(self, epsilon: Fraction, delta: Fraction, loss: str) -> list[Row]:
        """Make a row of each entry that applies at one budget, with its distance from the optimum if that is known."""
        request = self.make_request(epsilon, delta, loss)
        entries = self.list_serving_entries(request)
        known_costs = compute_references(entries, request)
        sources = {entry.name: entry.source for entry in entries}
        lower, upper = self.bound_optimum(request)
        upper = min([upper, *(cost.objective for cost in known_costs.values())])
        known = lower > 0 and upper - lower <= MAX_OPTIMUM_GAP * upper
        return [
            {
                "loss": loss,
                "epsilon": float(epsilon),
                "delta": float(delta),
                "mechanism": name,
                "source": sources[name],
                "parameter": cost.parameter_text,
                "objective": cost.objective,
                "lower": lower if known else None,
                "upper": upper,
                "most_percent": _compute_excess_percent(cost.objective, lower) if known else None,
                "least_percent": _compute_excess_percent(cost.objective, upper) if known else None,
            }
            for name, cost in known_costs.items()
        ]


def compare_setting(
    name: str, epsilons: Iterable[Fraction], deltas: Iterable[Fraction]
) -> list[Row]:
    """The rows of a setting on a grid."""
    setting = SETTINGS[name]
    budgets = itertools.product(setting.losses, deltas if setting.has_deltas else [ZERO], epsilons)
    return [
        row for loss, delta, epsilon in budgets for row in setting.make_rows(epsilon, delta, loss)
    ]


def summarise_setting(name: str, rows: Iterable[Row]) -> list[Row]:
    """For each mechanism and loss: its worst and median distance from the optimum, what none of all ε from .1 to 4 at
    δ = 0 is above, and where it is within 1 %."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["loss"], row["mechanism"]), []).append(row)
    return [_summarise_group(name, *key, group) for key, group in groups.items()]


def _compute_excess_percent(loss: float, optimum: float) -> float:
    """In percent; a loss and a bound of it that are one but for rounding are not apart."""
    return max(0.0, 100 * (loss / optimum - 1))


def describe_baseline_distances(query: Query) -> Iterator[str]:
    """How far the user's own baselines, and published ones that were named, are above the best channel with the query's
    outputs: at its budget, and what there is of every ε for every ε of a range, as near as there is time for."""
    deadline = Deadline(None if query.time is None else query.time.solver_seconds)
    entries = index_by_name(
        list_entries(CHANNEL, make_baselines(query.user_baselines, CHANNEL.name))
    )
    laws: Values = {**dict.fromkeys(query.compared_names), **dict(query.user_baselines)}
    for name, law in laws.items():
        measured = partial(_measure_entry, query, entries[name])
        loss, lower = measured(query.claim.epsilon)
        if not lower or loss == math.inf:
            continue
        along = ""
        if (law is None or callable(law)) and query.claim.epsilon is not None:
            along = f"; {_describe_every_epsilon(measured, deadline)}"
        here = f"at most {_format_percent_up(_compute_excess_percent(loss, lower))} % above the proven optimum on the same outputs"
        yield f"{name}: {here} at this budget{along}."


def _describe_every_epsilon(measured: Callable[[Fraction], Interval], deadline: Deadline) -> str:
    if (between := _bound_excess_between(measured, deadline)) is None:
        return "not private, or not known, at others"
    worst, epsilons = between
    ends = f"[{float(epsilons[0]):g}, {float(epsilons[-1]):g}]"
    which = f"its mechanisms for {len(epsilons)} of these, each up to the next"
    return f"at most {_format_percent_up(worst)} % for every epsilon in {ends}, by {which} (proof: monotone in epsilon)"


def _bound_excess_between(
    measured: Callable[[Fraction], Interval], deadline: Deadline
) -> tuple[float, list[Fraction]] | None:
    """(how far above the optimum at most, for every ε from the first to the last of these). measured: ε -> (loss, bound
    of the optimum), inf and 0 where these are not known.

    A mechanism made for a is private at every ε >= a, and the optimum V falls with ε: so on [a, b] the best that was
    made for up to a is at most min L(a') / V(b) - 1 above the optimum, a' <= a, whatever the function does between a
    and b. The interval of the largest such bound is cut until it is hardly above what was seen at one ε.
    """
    known = {epsilon: measured(epsilon) for epsilon in map(Fraction, _FIRST_EPSILONS)}
    while True:
        epsilons = sorted(epsilon for epsilon, (_, proven) in known.items() if proven)
        served = [*itertools.accumulate((known[epsilon][0] for epsilon in epsilons), min)]
        first = next((i for i, loss in enumerate(served) if loss < math.inf), len(served))
        proven = [known[epsilon][1] for epsilon in epsilons]
        between = [*map(_compute_excess_percent, served[first:-1], proven[first + 1 :])]
        if not between:
            return None
        worst = max(between)
        at = first + between.index(worst)
        middle = (epsilons[at] + epsilons[at + 1]) / 2
        seen = max(map(_compute_excess_percent, served[first:], proven[first:]))
        if (
            worst <= _MAX_DISTANCE_RATIO * seen + 1
            or middle in known
            or deadline.has_passed
            or len(known) >= _MAX_COMPARED_EPSILONS
        ):
            return worst, epsilons[first:]
        known[middle] = measured(middle)


def _format_percent_up(percent: float) -> str:
    """In three digits, rounded up."""
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(max(percent, _MIN_SHOWN_PERCENT))):g}"


def _measure_entry(query: Query, entry: Published, epsilon: Fraction) -> Interval:
    """What it costs, inf where it is not private, and the bound, 0 where none is known."""
    query = replace(query, claim=query.claim.with_values(epsilon=epsilon))
    loss, proven = math.inf, 0.0
    with suppress(WorkbenchError):
        loss = evaluate_published(entry, query).objective
    with suppress(WorkbenchError):
        proven = max(0.0, _bound_channels(query)[0])
    return loss, proven


@cache
def _measure_pure_setting(
    name: str, loss: str, epsilon: Fraction
) -> tuple[float, dict[str, Reference]]:
    """(the bound of the optimum, what each mechanism costs) in a setting at δ = 0."""
    setting = SETTINGS[name]
    request = setting.make_request(epsilon, ZERO, loss)
    return setting.bound_optimum(request)[0], compute_references(
        setting.list_serving_entries(request), request
    )


def _bound_excess_everywhere(name: str, loss: str, mechanism: str) -> float | None:
    """How far a mechanism of a setting is above the optimum at most, for every ε of _ALONG's range, at δ = 0."""

    def measured(epsilon: Fraction) -> Interval:
        lower, known = _measure_pure_setting(name, loss, epsilon)
        return known[mechanism].objective if mechanism in known else math.inf, lower

    between = _bound_excess_between(measured, Deadline())
    return (
        None
        if between is None or between[1][0] > Fraction(_FIRST_EPSILONS[0])
        else float(_format_percent_up(between[0]))
    )


def _summarise_group(name: str, loss: str, mechanism: str, group: list[Row]) -> Row:
    known = [row for row in group if row["most_percent"] is not None]
    close = [row for row in known if row["most_percent"] <= 1]
    worst = max(
        known, key=lambda row: float(f"{row['most_percent']:.3g}"), default=None
    )  # the first of equals
    return {
        "setting": name,
        "loss": loss,
        "mechanism": mechanism,
        "source": group[0]["source"],
        "budgets": len(group),
        "proven": len(known),
        "worst_percent": worst and worst["most_percent"],
        "worst_at": "ε = {epsilon:g}, δ = {delta:g}".format(**worst) if worst else "",
        "every_percent": _bound_excess_everywhere(name, loss, mechanism),
        "median_percent": statistics.median(row["most_percent"] for row in known)
        if known
        else None,
        "within_1_percent": len(close),
        "where": _describe_budgets(close),
    }


def _describe_budgets(close: list[Row]) -> str:
    """The ε of every δ, in words."""
    by_delta = itertools.groupby(
        sorted((row["delta"], row["epsilon"]) for row in close), itemgetter(0)
    )
    return "; ".join(
        f"δ = {d:g}: ε = {', '.join(f'{e:g}' for _, e in pairs)}" for d, pairs in by_delta
    )


def _bound_by_design(kind: Family, request: Any) -> Interval:
    """Loss and bound of a design, of one that is not proven what is known of it."""
    try:
        with translate_errors():
            design = kind.design_request(request)
        return float(design.bound or 0), float(design.objective)
    except NotProven as error:
        if error.interrupted:
            raise KeyboardInterrupt from None
        return float(error.bound or 0), math.inf if error.incumbent is None else float(
            error.incumbent
        )


def _has_long_support(request: Any) -> bool:
    """Whether a design would take long: its noise reaches far."""
    return (
        bool(request.claim.delta)
        and line_noise.truncated_laplace_support(
            float(request.claim.epsilon), float(request.claim.delta)
        )
        > _MAX_DESIGNED_SUPPORT
    )


def _bound_real_noise(request: Any) -> Interval:
    epsilon, loss = float(request.claim.epsilon), request.loss_name
    if not request.claim.delta:
        least = line_noise.staircase_reals(epsilon, 1.0, loss)
        return least, least
    if _has_long_support(request) or epsilon > _MAX_DENSITY_EPSILON:
        return 0.0, math.inf
    steps = min(
        max(
            round(
                _CELLS_PER_SUPPORT
                / line_noise.truncated_laplace_support(epsilon, float(request.claim.delta))
            ),
            _MIN_CELLS_PER_SENSITIVITY,
        ),
        _MAX_CELLS_PER_SENSITIVITY,
    )
    given = {
        "epsilon": request.claim.epsilon,
        "delta": request.claim.delta,
        "loss": loss,
        "steps": steps,
    }
    return _bound_by_design(
        NOISE, NOISE.make_request(request.question, **given, certify=False, gap="0.2")
    )


def _bound_integer_noise(request: Any) -> Interval:
    return (0.0, math.inf) if _has_long_support(request) else _bound_by_design(NOISE, request)


def _bound_channels(query: Query) -> Interval:
    return _bound_by_design(
        CHANNEL,
        query.make_request(CHANNEL, query.question, loss=query.aim.loss, **query.budget_options),
    )


def _bound_range_channels(query: Query) -> Interval:
    with translate_errors():
        return bound_by_bins(
            CHANNEL.make_request(
                query.question, loss=query.aim.loss, certify=False, **query.budget_options
            )
        )


def _bound_unbiased(query: Query) -> Interval:
    """On [-1, 1], which is twice as wide."""
    with translate_errors():
        limit = compute_mae_limit(float(query.claim.epsilon))
    return limit.lower / 2, limit.upper / 2


def _make_noise_request(question: Any) -> Callable[[Fraction, Fraction, str], Any]:
    return lambda epsilon, delta, loss: NOISE.make_request(
        question, epsilon=epsilon, delta=delta, loss=loss
    )


def _make_finite_query(question: FiniteQuery) -> Callable[[Fraction, Fraction, str], Query]:
    return lambda epsilon, delta, loss: Query(
        question=question, claim=Claim("dp", epsilon, delta), aim=Aim(loss=loss)
    )


_POWER_LOSSES = ("absolute", "squared")
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
    ),
}
