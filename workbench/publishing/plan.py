"""Publish several statistics of one table under one budget, with one booking.

The budgets add up: ε = Σ ε_i and δ = Σ δ_i (basic composition). A plan splits ε in one of two ways:

    weights             ε_i is proportional to the weight of statistic i
    equal errors        RMSE_i(ε_i) / s_i is the same number for all i

s_i is the public guess `expected` of the size of the statistic. Without it, s_i is taken from the
public guess n of the number of rows:

    count   n          histogram   n / number of cells          sum   n max(|lo|, |hi|)
    mean    hi - lo    groups of a sum   n max(|lo|, |hi|) / number of groups

The errors are those of noise at δ = 0. They are made equal by the iteration ε_i <- c ε_i r_i, where
r_i is the relative error and c keeps the sum. At an error proportional to 1/ε one step is enough.

A plan is a TOML file, or a mapping with the same entries:

    data = "people.csv"             # A path is relative to the folder of the plan.
    expected-rows = 2000            # Entries of the plan, such as neighbours, hold for all.
    [[statistic]]
    kind = "count"
    where = "smoker=yes"
    [[statistic]]
    kind = "mean"
    column = "age"
    range = "18..95"
    weight = 2                      # Weights are given for all statistics or for none.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO, read_positive, read_probability, round_up
from workbench.exact.objects import Record
from workbench.io.files import format_fraction, read_text, write_atomically
from workbench.io.shown import Facts, render_document, render_facts
from workbench.publishing.booking import BOOKING_OPTIONS, Booking
from workbench.publishing.guarantee import (
    bound_advantage,
    count_right_guesses,
    describe_guarantee,
    list_warnings,
)
from workbench.publishing.release import (
    LedgerStatus,
    Release,
    describe_ledger,
    describe_persons,
    format_budget,
    format_error,
)
from workbench.publishing.request import BudgetOptions, ReleaseRequest, StatisticOptions
from workbench.publishing.run import publish_requests
from workbench.publishing.statistic import HISTOGRAM, MEAN, SUM

_MAX_STATISTICS = 100  # A plan of more statistics is refused.
_MAX_ITERATIONS = 60  # The split of ε ends after this many steps.
# The split of ε ends when the largest relative error exceeds the least by at most this share.
_ERROR_TOLERANCE = 1e-4
_EPSILON_UNIT = Fraction(1, 10**9)  # Every ε_i but the largest is rounded down to a multiple of it.
# Entries of a plan that are options of every statistic, unless the statistic gives its own.
_SHARED_NAMES = frozenset(
    (
        "neighbours",
        "person",
        "rows_per_person",
        "drop_missing",
        "drop_unlisted",
        "expected_rows",
        "rows",
    )
)
_PLAN_NAMES = _SHARED_NAMES | {"data", "statistic", "epsilon", "delta", "header"}
# Entries of one statistic that are no fields of `StatisticOptions`.
_OWN_NAMES = frozenset(("kind", "weight", "expected", "loss"))


@dataclass(frozen=True)
class PlannedStatistic:
    """A statistic of a plan.

    Attributes:
        request: The statistic and its budget, which is ε = 1 and δ = 0 until `split_budget` has
            split the budget of the plan.
        weight: Weight in the split. None: errors are made equal.
        expected: Public guess of the size of the statistic. None: from the number of rows.
    """

    request: ReleaseRequest
    weight: Fraction | None
    expected: Fraction | None

    @property
    def scale(self) -> float:
        """Return s_i, the size that errors are relative to. Raises InvalidRequest."""
        statistic = self.request.statistic
        if self.expected is not None:
            return float(self.expected)
        if statistic.kind == MEAN:
            return float(statistic.high - statistic.low)
        rows = self.request.expected_rows
        if rows is None:
            rule = "given for equal relative errors, or else expected or weight in each statistic"
            must("expected_rows", rule, "none")
        size = float(rows) / max(1, len(statistic.labels))
        if statistic.kind == SUM:
            size *= float(max(abs(statistic.low), abs(statistic.high)))
        return size

    def measure_relative_error(self, epsilon: Fraction) -> float:
        """Return the relative error of the statistic at an ε and δ = 0.

        Args:
            epsilon: ε > 0.

        Raises:
            InvalidRequest: The error depends on a number of rows that is not given.
        """
        error = replace(self.request, epsilon=epsilon, delta=ZERO).choose_noise().rmse
        if error is None:
            must("expected_rows", "given for a mean with a private number of rows", "none")
        return error / self.scale


@dataclass(frozen=True, repr=False)
class PlanRelease:
    """The releases of a plan.

    Attributes:
        releases: The releases, in the order of the plan.
        epsilon: ε of all together.
        delta: δ of all together.
        ledger: What the ledger says. None without a ledger.
    """

    releases: tuple[Release, ...]
    epsilon: Fraction
    delta: Fraction
    ledger: LedgerStatus | None = None

    @property
    def value(self) -> list[Any]:
        """Return the value of every release."""
        return [release.value for release in self.releases]

    @property
    def advantage(self) -> Fraction:
        """Return an upper bound on δ(0) of all releases together."""
        return bound_advantage(self.epsilon, self.delta)

    @property
    def persons(self) -> list[str]:
        """Return the sentences that say whose privacy is protected."""
        sentences = (describe_persons(release.statistic) for release in self.releases)
        return list(dict.fromkeys(sentences))

    @property
    def guarantee(self) -> tuple[str, str]:
        """Return the guarantee of all releases together, in two sentences."""
        statistic = self.releases[0].statistic
        numbers = sum(max(1, len(release.labels)) for release in self.releases)
        return describe_guarantee(
            self.advantage,
            statistic.person.neighbours,
            numbers,
            has_one_row=statistic.person_column is None,
        )

    @property
    def not_promised(self) -> tuple[str, ...]:
        """Return sentences that say what the guarantee does not promise."""
        return self.releases[0].not_promised

    @property
    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return statistic, ε, value, interval and error of every number, as texts."""
        rows = []
        for release in self.releases:
            name = release.statistic.describe()
            budget = f"{float(release.epsilon):.4g}"
            error = "-" if release.rmse is None else format_error(release.rmse)
            cells = release.rows
            if not cells:
                value = release.format_value() or "-"
                interval = release.format_interval() or "-"
                rows.append((name, budget, value, interval, error))
            for label, value, interval in cells:
                rows.append((f"{name}: {label}", budget, value, interval, error))
        return rows

    def facts(self) -> Facts:
        """Return rows (label, text) of a report. The numbers are in `rows`."""
        facts = []
        if self.releases[0].published is None:
            facts.append(("dry run", "no data were read and no budget was used"))
        ledger_facts = [] if self.ledger is None else self.ledger.facts()
        return [
            *facts,
            *(("privacy", sentence) for sentence in self.persons),
            ("guarantee", " ".join(self.guarantee)),
            *(("warning", sentence) for sentence in list_warnings(self.advantage)),
            *(("limits", sentence) for sentence in self.not_promised),
            ("budget", format_budget(self.epsilon, self.delta) + describe_ledger(self.ledger)),
            *ledger_facts,
        ]

    def to_dict(self) -> Record:
        """Return everything but the certificates and the ledger as data for JSON."""
        members = []
        for release in self.releases:
            member = release.to_dict()
            # The guarantee of one release alone would be taken for that of the plan.
            for name in ("guarantee", "right_guesses", "not_promised", "notes"):
                del member[name]
            members.append(member)
        return {
            "releases": members,
            "epsilon": round_up(self.epsilon),
            "delta": round_up(self.delta),
            "exact_budget": [format_fraction(self.epsilon), format_fraction(self.delta)],
            "right_guesses": count_right_guesses(self.advantage),
            "guarantee": [*self.guarantee],
            "not_promised": [*self.not_promised],
            "notes": [*self.persons, *list_warnings(self.advantage)],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    def save(self, path: str | Path) -> list[Path]:
        """Write one certificate for each statistic: plan.json gives plan-1.json, plan-2.json, ...

        Args:
            path: Path of the files without their numbers.

        Returns:
            The paths of the files.
        """
        paths = list_certificate_paths(path, len(self.releases))
        for target, release in zip(paths, self.releases, strict=True):
            write_atomically(target, release.certificate.content())
        return paths

    def __str__(self) -> str:
        lines = [", ".join(row) for row in self.rows]
        return "\n".join([*lines, *(f"{label}: {text}" for label, text in self.facts())])

    def __repr__(self) -> str:
        return f"PlanRelease({len(self.releases)} statistics, epsilon = {float(self.epsilon):g})"

    def _repr_html_(self) -> str:
        """Return the values and facts of the plan as HTML for a notebook."""
        rows = [(name, f"{value} ({interval})") for name, _, value, interval, _ in self.rows]
        return render_document("Plan", render_facts([*rows, *self.facts()]))


def list_certificate_paths(path: str | Path, count: int) -> list[Path]:
    """List the paths of the certificates of a plan.

    Args:
        path: Path without numbers.
        count: Number of certificates.
    """
    base = Path(path)
    return [base.with_name(f"{base.stem}-{k + 1}{base.suffix}") for k in range(count)]


def read_plan(plan: Any) -> dict[str, Any]:
    """Read a plan, with underscores in the names of its entries.

    Args:
        plan: Path of a TOML file, or a mapping.

    Returns:
        The entries. The path of the data is relative to the folder of the plan.

    Raises:
        InvalidRequest: The file is no TOML, or an entry is unknown.
    """
    entries: Any = plan
    if isinstance(plan, (str, Path)):
        try:
            entries = tomllib.loads(read_text(plan, name="plan"))
        except tomllib.TOMLDecodeError as error:
            must("plan", "a TOML file", f"{Path(plan).name}: {error}")
    if not isinstance(entries, Mapping):
        must("plan", "a TOML file or a mapping", type(plan).__name__)
    renamed_entries = _rename(entries, _PLAN_NAMES, "plan")
    if isinstance(plan, (str, Path)) and isinstance(renamed_entries.get("data"), str):
        renamed_entries["data"] = Path(plan).parent / renamed_entries["data"]
    statistics = renamed_entries.get("statistic")
    if not isinstance(statistics, (list, tuple)) or not 0 < len(statistics) <= _MAX_STATISTICS:
        must("plan", f"1 to {_MAX_STATISTICS} tables [[statistic]]", "another form")
    names = _OWN_NAMES | {field.name for field in fields(StatisticOptions)}
    names -= {"neighbours", "person"}  # These hold for the whole plan.
    renamed_entries["statistic"] = [
        _rename(statistic, names, "statistic") for statistic in statistics
    ]
    return renamed_entries


def _rename(entries: Any, names: frozenset[str] | set[str], place: str) -> dict[str, Any]:
    """Return entries with underscores in their names.

    Args:
        entries: The entries by name. Names may have hyphens instead of underscores.
        names: The names that are allowed, with underscores.
        place: Where the entries stand, for errors: "plan" or "statistic".

    Raises:
        InvalidRequest: `entries` is no mapping, or an entry has another name.
    """
    if not isinstance(entries, Mapping):
        must(place, "a table of entries", type(entries).__name__)
    renamed = {}
    for name, value in entries.items():
        plain_name = str(name).replace("-", "_")
        if plain_name not in names:
            must(f"entry of a {place}", f"one of {', '.join(sorted(names))}", repr(name))
        if plain_name in renamed:
            must(f"entry {plain_name} of a {place}", "given once", "it with - and with _")
        renamed[plain_name] = value
    return renamed


def read_planned_statistics(entries: Mapping[str, Any]) -> list[PlannedStatistic]:
    """Read the statistics of a plan. Their budgets are not split yet.

    Args:
        entries: The entries of the plan, by `read_plan`.

    Raises:
        InvalidRequest: An entry is wrong, or some statistics have weights and others have none.
    """
    shared = {name: entries[name] for name in _SHARED_NAMES & entries.keys()}
    expected_rows = shared.pop("expected_rows", None)
    planned = []
    for entry in entries["statistic"]:
        options = dict(entry)
        kind = options.pop("kind", None)
        InvalidRequest.check_choice(("count", SUM, MEAN, HISTOGRAM), "kind", kind)
        weight = options.pop("weight", None)
        expected = options.pop("expected", None)
        loss = options.pop("loss", None)
        merged = {**_select_shared(shared, kind, options), **options}
        statistic = StatisticOptions(**merged).read(kind)
        # `split_budget` replaces this ε.
        budget = BudgetOptions(epsilon=1, expected_rows=expected_rows, loss=loss)
        request = budget.read(statistic)
        exact_weight = None if weight is None else read_positive(weight, "weight")
        exact_size = None if expected is None else read_positive(expected, "expected")
        planned.append(PlannedStatistic(request, weight=exact_weight, expected=exact_size))
    if len({statistic.weight is None for statistic in planned}) > 1:
        must("weight", "given for all statistics of a plan or for none", "some")
    relations = {statistic.request.statistic.person.neighbours for statistic in planned}
    if len(relations) > 1:
        must("neighbours", "given in a plan that has a mean with rows: replace", "none")
    return planned


def _select_shared(
    shared: Mapping[str, Any], kind: str, own_options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the shared options that apply to a statistic.

    Args:
        shared: Options of the plan for all statistics.
        kind: Kind of the statistic.
        own_options: Options of this statistic alone.
    """
    options = dict(shared)
    if "bins_per_person" in own_options:
        options.pop("rows_per_person", None)
    if kind in (SUM, HISTOGRAM) or (kind == MEAN and "by" in own_options):
        options.pop("rows", None)
    if kind != HISTOGRAM and "by" not in own_options:
        options.pop("drop_unlisted", None)
    return options


def split_budget(
    planned: Sequence[PlannedStatistic], epsilon: Fraction, delta: Fraction
) -> list[ReleaseRequest]:
    """Split a budget over the statistics of a plan.

    Args:
        planned: The statistics.
        epsilon: ε > 0 of all together.
        delta: δ in [0, 1) of all together. Means with private n get none of it.

    Returns:
        The statistics with their budgets, whose sums are exactly ε and δ.

    Raises:
        InvalidRequest: A statistic would get an ε of 0, its error is not known before the release,
            or δ > 0 and no statistic can use it.
    """
    if planned[0].weight is not None:
        weights = [statistic.weight or ZERO for statistic in planned]
        budgets = [epsilon * weight / sum(weights) for weight in weights]
    else:
        budgets = _equalise_errors(planned, epsilon)
    uses_delta_flags = [not statistic.request.statistic.is_pair for statistic in planned]
    if delta and not any(uses_delta_flags):
        rule = "left out if all statistics are means with a private number of rows"
        must("delta", rule, float(delta))
    requests = []
    for statistic, budget, uses_delta in zip(planned, budgets, uses_delta_flags, strict=True):
        share = delta / sum(uses_delta_flags) if uses_delta else ZERO
        requests.append(replace(statistic.request, epsilon=budget, delta=share))
    return requests


def _equalise_errors(planned: Sequence[PlannedStatistic], epsilon: Fraction) -> list[Fraction]:
    """Return ε_i with about equal relative errors, whose sum is exactly ε.

    Raises InvalidRequest if some ε_i would be 0.
    """
    budgets = [float(epsilon) / len(planned)] * len(planned)
    for _ in range(_MAX_ITERATIONS):
        errors = [
            statistic.measure_relative_error(Fraction(f"{budget:.12g}"))
            for statistic, budget in zip(planned, budgets, strict=True)
        ]
        if max(errors) <= min(errors) * (1 + _ERROR_TOLERANCE):
            break
        products = [budget * error for budget, error in zip(budgets, errors, strict=True)]
        scale = float(epsilon) / sum(products)
        budgets = [product * scale for product in products]
    rounded = [Fraction(budget) // _EPSILON_UNIT * _EPSILON_UNIT for budget in budgets]
    largest = rounded.index(max(rounded))
    rounded[largest] += epsilon - sum(rounded)
    if min(rounded) <= 0:
        must("epsilon", "larger, as a statistic of the plan gets almost nothing of it", epsilon)
    return rounded


def publish_plan(
    plan: Any,
    data: Any = None,
    *,
    epsilon: Any = None,
    delta: Any = None,
    expected_rows: Any = None,
    **options: Any,
) -> PlanRelease:
    """Publish several statistics of one table under one budget.

    Args:
        plan: Path of a TOML file, or a mapping with the same entries.
        data: The private table. None: the entry `data` of the plan.
        epsilon: ε > 0 of all together. None: the entry `epsilon` of the plan.
        delta: δ in [0, 1) of all together. None: the entry `delta` of the plan, or 0.
        expected_rows: Public guess of the number of rows. None: the entry of the plan.
        **options: Options of `Booking.read`, and `header`.

    Raises:
        InvalidRequest: The plan, an option or the data are wrong, or the ledger has too little
            budget left.
    """
    entries = read_plan(plan)
    if expected_rows is not None:
        entries["expected_rows"] = expected_rows
    header = options.pop("header", entries.get("header"))
    for name in options:
        if name not in BOOKING_OPTIONS:
            must("option", f"one of {', '.join(BOOKING_OPTIONS)}, header", repr(name))
    booking = Booking.read(**options)
    given_epsilon = entries.get("epsilon") if epsilon is None else epsilon
    if given_epsilon is None:
        must("epsilon", "given on the command line or in the plan", "none")
    total_epsilon = read_positive(given_epsilon, "epsilon")
    given_delta = entries.get("delta", 0) if delta is None else delta
    total_delta = read_probability(given_delta, "delta")
    table = entries.get("data") if data is None else data
    if table is None and not booking.dry_run:
        must("data", "given, or named in the plan", "none")
    requests = split_budget(read_planned_statistics(entries), total_epsilon, total_delta)

    def assemble(releases: Sequence[Release]) -> PlanRelease:
        """Return the releases with the budget of the plan, without a ledger."""
        return PlanRelease(tuple(releases), total_epsilon, total_delta)

    releases, ledger = publish_requests(
        table, requests, booking, header, lambda releases: assemble(releases).to_json()
    )
    return replace(assemble(releases), ledger=ledger)
