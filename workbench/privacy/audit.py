"""The exact audit: what a mechanism with exact masses is private for, as rationals and decided comparisons.

Every comparison is measured once, by every notion that an audit at a budget ε reports

    pdp_delta   Σ f(η) over {η : f(η) > e^ε f(η+μ)}      (3), (5), (8) of Kadam et al. 2024
    dp_delta    Σ max(0, f(η) - e^ε f(η+μ))              the hockey stick
    ratio       max f(η) / f(η+μ)                        e^ε of pure and metric privacy

and by any other when it is asked for. Whether a claim holds, and the sentence that says so, are the notion's
(`workbench.notions`). Nothing is compared in floating point alone, and the floats given for reports are
rounded so that they never understate a δ or an ε.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest, NotProven
from workbench.exact.numbers import ExpNumber, Real, read_positive, round_up, to_jsonable
from workbench.exact.objects import Record, Values
from workbench.exact.time_limit import ITEMS_PER_CLOCK_CHECK, check_time_limit
from workbench.io.files import format_fraction, write_json
from workbench.io.shown import Facts, Shown
from workbench.mechanisms.mechanism import (
    ONE_SIDED_NOTE,
    Bias,
    Budget,
    Budgets,
    Comparison,
    Mechanism,
    as_mechanism,
    has_real_inputs,
)
from workbench.notions import Notion, get_notion
from workbench.notions.laws import Laws
from workbench.notions.notion import ComparisonResult, Label
from workbench.privacy.claim import Claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from workbench.privacy.expected_error import ExpectedError


REPORTED_NOTIONS = tuple(map(get_notion, ("pdp", "dp", "pure")))  # by every audit at a budget


@dataclass(frozen=True)
class ClaimMeasurement:
    """What the notion of a claim measures of every comparison."""

    claim: Claim
    results: tuple[ComparisonResult, ...]

    @cached_property
    def is_met(self) -> bool:
        """Whether every one meets the claim, decided exactly."""
        meets = self.claim.notion.is_within_budget
        return all(meets(result.measurement, result.budget) for result in self.results)


@dataclass(frozen=True)
class PairAudit:
    """One difference or ordered pair of rows: its budget ε and what was measured there, by quantity."""

    label: Label
    epsilon: Fraction
    quantities: Values

    @property
    def pdp_delta(self) -> Fraction:
        """The exact PDP δ."""
        delta: ExpNumber = self.quantities["pdp_delta"]
        return delta.a

    @property
    def dp_delta(self) -> ExpNumber:
        """The exact DP δ, a - b e^ε."""
        delta: ExpNumber = self.quantities["dp_delta"]
        return delta

    @property
    def ratio(self) -> Fraction | None:
        """The largest ratio of masses; None: unbounded."""
        ratio: Fraction | None = self.quantities["ratio"].value
        return ratio


@dataclass(frozen=True, repr=False)
class Privacy(Shown):
    """The audit of a mechanism at a budget ε. Every comparison it answers is decided exactly.

    epsilon: the common budget, None when the pairs have different ones (see `pairs`);
    pdp_delta: the largest PDP δ, exact; dp_delta: the largest DP δ, the exact number a - b e^ε with float bounds
    `.lower` and `.upper`; pure_ratio: the largest ratio e^ε must reach, None when a zero mass is reachable;
    pure_epsilon: its logarithm rounded up, inf for None; pairs: the details for each difference or pair of rows;
    error: the expected loss, where one was asked for.
    """

    pairs: tuple[PairAudit, ...]
    mechanism: Mechanism = field(repr=False, compare=False)
    error: ExpectedError | None = field(default=None, repr=False, compare=False)
    _only_extremes: bool = field(
        default=False, repr=False, compare=False
    )  # of `extremes`, which may be all there are
    _measurements: list[ClaimMeasurement] = field(default_factory=list, repr=False, compare=False)

    @cached_property
    def epsilon(self) -> Fraction | None:
        """The common budget."""
        each = [pair.epsilon for pair in self.pairs]
        return each[0] if each.count(each[0]) == len(each) else None

    def __repr__(self) -> str:
        at = "budgets of their own" if self.epsilon is None else f"epsilon={float(self.epsilon):g}"
        return f"Privacy({len(self.pairs)} comparisons at {at}, pure_epsilon={self.pure_epsilon!r})"

    def facts(self) -> Facts:
        """The exact values, rounded up."""
        at = (
            "each pair's own epsilon"
            if self.epsilon is None
            else f"epsilon = {format_fraction(self.epsilon)}"
        )
        values = self.to_dict()
        rows = [("mechanism", self.mechanism.describe()), ("neighbours", f"{len(self.pairs)} ordered pairs"),
                ("exact pure epsilon", f"{values['pure_epsilon']} (rounded up)")]  # fmt: skip
        rows += [
            (f"exact {name} delta", f"{values[key]!r} at {at}")
            for name, key in (("PDP", "pdp_delta"), ("DP", "dp_delta"))
            if values[key] is not None
        ]
        if values["metric_epsilon"] is not None:
            rows.append(("metric epsilon", f"{values['metric_epsilon']} for |x - x'|"))
        if values["bias"] is not None:
            rows.append(("largest bias", repr(values["bias"])))
        if self.mechanism.is_one_sided:
            rows.append(ONE_SIDED_NOTE)
        return rows if self.error is None else rows + self.error.facts()

    def to_dict(self) -> Record:
        """JSON-ready; every number rounded against the mechanism, "inf" for unbounded ones. metric_epsilon, bias: of
        mechanisms on real inputs; loss, data, mean_error, worst_error, worst_input: where a loss was asked for."""
        decided = self.mechanism.segments is not None
        means = getattr(self.mechanism, "unbiased_means", None) if self.mechanism.segments else None
        return {
            "kind": type(self.mechanism).__name__,
            "neighbours": len(self.pairs),
            "one_sided": self.mechanism.is_one_sided,
            "pure_epsilon": to_jsonable(self.pure_epsilon),
            "epsilon": None if self.epsilon is None else float(self.epsilon),
            "pdp_delta": self.worst_result("pdp").measurement.upper if decided else None,
            "dp_delta": self.dp_delta.upper,
            "metric_epsilon": to_jsonable(self.metric_epsilon) if self.mechanism.segments else None,
            "bias": None if means is None else float(Bias.measure(self.mechanism, *means).worst),
            **({} if self.error is None else self.error.to_dict()),
        }

    @property
    def drawable(self) -> bool:
        """Whether the profiles of so many comparisons are drawn in a moment."""
        return len(self.pairs) * len(self.mechanism.outputs) <= 20_000

    def figure(self) -> Figure:
        """The exact privacy profiles, the budget marked."""
        from workbench.privacy.curve import draw_profiles

        return draw_profiles(self.mechanism, [self.epsilon] if self.epsilon else [])

    def save(self, path: str | Path) -> None:
        """Write the facts and the budgets as JSON."""
        budgets = [[list(label), format_fraction(value)] for label, value in self.budgets.items()]
        write_json(path, {**dict(self.facts()), "budgets": budgets})

    @property
    def budgets(self) -> Budgets:
        """The budget of every difference or ordered pair of rows."""
        return {pair.label: pair.epsilon for pair in self.pairs}

    @cached_property
    def is_complete(self) -> bool:
        """Whether it is of all comparisons of the mechanism, not only of `extremes`."""
        return not self._only_extremes or self.budgets.keys() == self.mechanism.budgets(0).keys()

    def worst_result(
        self,
        named: str | Notion,
        epsilon: Budget | None = None,
        delta: Real | None = None,
        **parameters: Any,
    ) -> ComparisonResult:
        """The comparison that a notion finds worst, at these budgets unless others are given; on real inputs what it
        measures over all of them. Raises InvalidRequest."""
        measured_by = get_notion(named)
        if epsilon is None and "epsilon" in measured_by.parameters:
            epsilon = self.budgets if self.epsilon is None else self.epsilon
        return measured_by.worst_result(
            self.measure_comparisons(self.claim(measured_by, epsilon, delta, **parameters))
        )

    @cached_property
    def pdp_delta(self) -> Fraction:
        """The exact PDP δ. Raises InvalidRequest on real inputs, where it need not be rational (`worst`)."""
        if has_real_inputs(self.mechanism):
            raise InvalidRequest(
                "The PDP delta on real inputs is no rational number; worst('pdp') gives it."
            )
        return Fraction(self.worst_result("pdp").measurement.a)

    @cached_property
    def dp_delta(self) -> ExpNumber:
        """The exact DP δ."""
        delta: ExpNumber = self.worst_result("dp").measurement
        return delta

    @cached_property
    def pure_ratio(self) -> Fraction | None:
        """The largest ratio of masses; None: unbounded."""
        ratio: Fraction | None = self.worst_result("pure").measurement.value
        return ratio

    @cached_property
    def pure_epsilon(self) -> float:
        """The ε of pure DP, rounded up; inf when a zero mass is reachable."""
        return float(self.worst_result("pure").measurement.loss)

    @cached_property
    def metric_epsilon(self) -> float:
        """The least ε for the distance |x - x'| of a mechanism on real inputs, rounded up; inf where there is none.
        Raises InvalidRequest for any other."""
        if not self.mechanism.segments:
            raise InvalidRequest(
                "The least epsilon by distance is that of mechanisms on real inputs."
            )
        steepest = self.worst_result("metric").measurement.value
        return math.inf if steepest is None else round_up(steepest)

    def audit_at(self, epsilon: Budget) -> Privacy:
        """The audit of every comparison at a budget: this one where it is that, or where it is of `extremes` and finds
        nothing above the budget, so that every δ is 0 as here."""
        if not isinstance(epsilon, Mapping) and self.epsilon == read_positive(
            epsilon, "epsilon", or_zero=True
        ):
            return self._complete_audit
        return (
            self
            if self.mechanism.budgets(epsilon) == self.budgets
            else audit(self.mechanism, epsilon)
        )

    @cached_property
    def _complete_audit(self) -> Privacy:
        private = not any(pair.pdp_delta for pair in self.pairs)
        return self if private or self.is_complete else audit(self.mechanism, self.epsilon)

    def measure_comparisons(self, claim: Claim) -> tuple[ComparisonResult, ...]:
        """What the notion of a claim measures of every comparison, measured once. Raises InvalidRequest."""
        return self._measurement_of(claim).results

    def _measurement_of(self, claim: Claim) -> ClaimMeasurement:
        """That of a claim, one object for equal claims, in copies of this audit as well."""
        claim = claim.adapt_to(self.mechanism)
        for measured in self._measurements:
            if measured.claim == claim:
                return measured
        self._measurements.append(ClaimMeasurement(claim, tuple(self._compute_results(claim))))
        return self._measurements[-1]

    def _compute_results(self, claim: Claim) -> Iterable[ComparisonResult]:
        quantity, own = claim.notion.quantity, _measured_by(claim.notion)
        known = any(
            quantity == other.quantity and own == _measured_by(other) for other in REPORTED_NOTIONS
        )
        if not known or (has_real_inputs(self.mechanism) and not claim.notion.is_convex):
            return measure_mechanism(self.mechanism, claim)
        # the largest ratio is the same at every budget
        pairs = (
            self.pairs
            if claim.is_decided_by_ratio and quantity == "ratio"
            else self.audit_at(claim.values["epsilon"]).pairs
        )
        common = claim.common_values
        return (
            ComparisonResult(
                pair.label,
                pair.quantities[quantity],
                claim.values_at(pair.label) if common is None else common,
            )
            for pair in pairs
        )

    def meets(
        self,
        named: str | Notion,
        epsilon: Budget | None = None,
        delta: Real | None = None,
        **parameters: Any,
    ) -> bool:
        """Whether the mechanism is private in a notion, decided exactly.

        named: the notion, such as "dp"; epsilon: a number, or a mapping for each shift or pair, as `audit` takes;
        delta: 0 for "pure" and "metric"; parameters: of other notions, by name. Raises InvalidRequest.
        """
        return self.holds(self.claim(named, epsilon, delta, **parameters))

    def verdict(
        self,
        named: str | Notion,
        epsilon: Budget | None = None,
        delta: Real | None = None,
        *,
        subject: str = "The mechanism",
        **parameters: Any,
    ) -> str:
        """`meets` in words: what was measured beside what was asked, and one outcome that breaks the budget."""
        return self.describe_verdict(self.claim(named, epsilon, delta, **parameters), subject)

    def claim(
        self,
        named: str | Notion,
        epsilon: Budget | None = None,
        delta: Real | None = None,
        **parameters: Any,
    ) -> Claim:
        """A request about this mechanism as a claim. Raises InvalidRequest."""
        return Claim.for_mechanism(
            named, self.mechanism, {"epsilon": epsilon, "delta": delta, **parameters}
        )

    def holds(self, claim: Claim) -> bool:
        """Whether every comparison meets a claim, decided exactly."""
        return self._measurement_of(claim).is_met

    def describe_verdict(self, claim: Claim, subject: str = "The mechanism") -> str:
        """The verdict on a claim."""
        measuring, results = claim.notion, self.measure_comparisons(claim)
        broken = [result for result in results if not claim.is_met_by(result)]
        worst = measuring.worst_result(results)
        budget = claim.describe_budget(one_sided=self.mechanism.is_one_sided)
        finding = measuring.describe_finding(worst.measurement, worst.budget, budget)
        sentence = f"{subject} {'misses' if broken else 'meets'} the request: {finding}"
        if (
            not broken or not worst.label
        ):  # no single comparison stands for a mechanism measured as a whole
            return sentence
        result = measuring.worst_violation(broken)
        comparison = next(
            comparison
            for comparison in self.mechanism.comparisons()
            if comparison.label == result.label
        )
        witness = measuring.describe_witness(
            Laws(comparison.p, comparison.q), result, comparison.describe
        )
        return sentence if witness is None else f"{sentence} ({witness})"


def _measured_by(notion: Notion) -> tuple[Any, ...]:
    """Return what makes a measurement: equal results mean that two notions measure the same."""
    kind = type(notion)
    return kind.measure, getattr(kind, "coefficients", None), getattr(kind, "counts_excess", None)


def measure_mechanism(
    mechanism: Mechanism, claim: Claim, comparisons: Iterable[Comparison] | None = None
) -> Iterator[ComparisonResult]:
    """What the notion of a claim measures, as far as it decides the claim, one comparison after the other.

    listed: comparisons that decide it. Raises InvalidRequest where nothing decides it.
    """
    whole = _measure_segments(mechanism, claim)
    if whole is not None:
        yield whole
        return
    if comparisons is None:
        comparisons = mechanism.extremes() if claim.is_decided_by_ratio else mechanism.comparisons()
    common = claim.common_values
    for position, comparison in enumerate(comparisons):
        if position % ITEMS_PER_CLOCK_CHECK == 0:
            check_time_limit()
        values = claim.values_at(comparison.label) if common is None else common
        yield ComparisonResult(
            comparison.label, claim.notion.measure(Laws(comparison.p, comparison.q), values), values
        )


def _measure_segments(mechanism: Mechanism, claim: Claim) -> ComparisonResult | None:
    """What a notion measures over all pairs of real inputs at once; None where the comparisons decide it."""
    measuring = claim.notion
    if mechanism.segments is None and not measuring.is_convex:
        raise InvalidRequest(
            f"The notion {measuring.name} is not decided for a law that is not affine in its input."
        )
    whole = (
        measuring.measure_segments(mechanism.segments, claim.values) if mechanism.segments else None
    )
    return None if whole is None else ComparisonResult((), whole, claim.values)


def satisfies_claim(
    mechanism: Mechanism, claim: Claim, comparisons: Iterable[Comparison] | None = None
) -> bool:
    """Whether a mechanism meets a claim, decided exactly, as far as the first comparison that does not."""
    meets = claim.notion.is_within_budget
    return all(
        meets(result.measurement, result.budget)
        for result in measure_mechanism(mechanism, claim, comparisons)
    )


def provably_satisfies_claim(
    mechanism: Mechanism, claim: Claim, comparisons: Iterable[Comparison] | None = None
) -> bool:
    """`holds`, where what stays undecided counts as refused: a mechanism a little further away can be proven."""
    try:
        return satisfies_claim(mechanism, claim, comparisons)
    except NotProven:
        return False


def audit_for_claim(mechanism: Mechanism, claim: Claim) -> Privacy:
    """An audit that decides a claim, at its ε (at 0 for a notion without one): of the comparisons that do, and what a
    notion measures over all real inputs at once needs none. claim: `on` the mechanism. Raises InvalidRequest."""
    epsilon = claim.values.get("epsilon", 0)
    whole = (
        bool(mechanism.segments) and not claim.notion.is_convex and not isinstance(epsilon, Mapping)
    )
    return (
        audit_extremes(mechanism, epsilon)
        if claim.is_decided_by_ratio or whole
        else audit(mechanism, epsilon)
    )


def audit(
    mechanism: Any, epsilon: Budget | None = None, *, loss: str | None = None, data: Any = None
) -> Privacy:
    """The exact audit of a mechanism: every comparison of it, each under its own budget; what it gets wrong, too.

        >>> import workbench as wb
        >>> noise = wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1])
        >>> found = wb.audit(noise, 1, loss="squared", data=[0, 0, 2])
        >>> found.pure_epsilon, float(found.error.mean), float(found.error.worst), found.error.worst_input
        (0.6931471805599454, 1.25, 1.25, 0)

    mechanism: any, or a Design or Certificate of one; epsilon: a finite number >= 0, or a mapping label -> number
    (shifts of additive noise, pairs of rows of a channel), by default a certificate's own, else 0; loss, data: as
    `workbench.privacy.expected_error.expected_error` takes them, data also a CSV file of one column; with either, its
    exact expected loss is `error`. Raises InvalidRequest.
    """
    subject = as_mechanism(mechanism)
    if epsilon is None:
        claim: Any = getattr(getattr(mechanism, "certificate", mechanism), "claim", None)
        without = claim is None or (subject.segments and claim.notion.is_per_distance)
        epsilon = 0 if without else claim.values.get("epsilon", 0)
    error = None
    if loss is not None or data is not None:
        from workbench.privacy.expected_error import compute_expected_error

        error = compute_expected_error(subject, "absolute" if loss is None else loss, data)
    budgets = subject.budgets(epsilon)
    pairs = (
        _audit_pair(pair, budgets[pair.label], position)
        for position, pair in enumerate(subject.comparisons())
    )
    return Privacy(tuple(pairs), subject, error)


def audit_extremes(mechanism: Any, epsilon: Real) -> Privacy:
    """The audit of the comparisons that decide pure ε: linear in a channel whose rows are all neighbours. Its pure ε is
    that of all, and so are its δ's, for which all are compared where pure ε fails. Raises InvalidRequest."""
    subject, value = as_mechanism(mechanism), read_positive(epsilon, "epsilon", or_zero=True)
    pairs = (_audit_pair(pair, value, position) for position, pair in enumerate(subject.extremes()))
    return Privacy(tuple(pairs), subject, _only_extremes=True)


def _audit_pair(comparison: Comparison, epsilon: Fraction, position: int) -> PairAudit:
    """Measure one comparison at ε; `position` counts the comparisons of an audit."""
    if position % ITEMS_PER_CLOCK_CHECK == 0:
        check_time_limit()
    laws = Laws(comparison.p, comparison.q)
    values = {"epsilon": epsilon}
    measured = {notion.quantity: notion.measure(laws, values) for notion in REPORTED_NOTIONS}
    return PairAudit(comparison.label, epsilon, measured)
