"""Compute exactly how private a mechanism with rational masses is.

A comparison is an ordered pair of neighbours. Notation: f(η) is the mass of the outcome η for the
first neighbour, and f(η+μ) is its mass for the second. (If the mechanism adds noise with the law f,
μ is the difference of the two answers.) An audit at a budget ε measures every comparison by three
quantities:

    pdp_delta   Σ f(η) over {η : f(η) > e^ε f(η+μ)}      (3), (5), (8) of Kadam et al. 2024
    dp_delta    Σ max(0, f(η) - e^ε f(η+μ))              the hockey stick
    ratio       max f(η) / f(η+μ)                        its logarithm is the smallest ε of pure DP

Other notions are measured on request. The notion (`workbench.notions`) decides whether a claim
holds and writes the verdict. No comparison relies on floating point alone. Floats in reports are
rounded so that they never understate a δ or an ε.

To report another notion in every audit, add it to `REPORTED_NOTIONS`, and add its number to
`Privacy.facts` and `Privacy.to_dict`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
from workbench.mechanisms.joint_noise import JointNoise
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


# A notebook draws an audit by itself if all comparisons have at most this many outcomes in total.
_MAX_DRAWN_MASSES = 20_000

# Every audit at a budget reports these notions.
REPORTED_NOTIONS = tuple(map(get_notion, ("pdp", "dp", "pure")))


@dataclass(frozen=True)
class ClaimMeasurement:
    """The measurements of all comparisons by the notion of a claim.

    Attributes:
        claim: The claim, with a budget for every comparison.
        results: One measurement for each comparison.
    """

    claim: Claim
    results: tuple[ComparisonResult, ...]

    @cached_property
    def is_met(self) -> bool:
        """Return whether every comparison meets the claim, decided exactly."""
        meets = self.claim.notion.is_within_budget
        return all(meets(result.measurement, result.budget) for result in self.results)


@dataclass(frozen=True)
class PairAudit:
    """The audit of one comparison: one difference, or one ordered pair of rows.

    Attributes:
        label: Label of the comparison.
        epsilon: Budget ε of the comparison.
        quantities: Measured values by quantity ("pdp_delta", "dp_delta", "ratio").
    """

    label: Label
    epsilon: Fraction
    quantities: Values

    @property
    def pdp_delta(self) -> Fraction:
        """Return the exact PDP δ."""
        # It is a sum of masses, so it is the number a - b e^ε with b = 0.
        delta: ExpNumber = self.quantities["pdp_delta"]
        return delta.a

    @property
    def dp_delta(self) -> ExpNumber:
        """Return the exact DP δ, a - b e^ε."""
        delta: ExpNumber = self.quantities["dp_delta"]
        return delta

    @property
    def ratio(self) -> Fraction | None:
        """Return the largest ratio of masses, or None if it is unbounded."""
        ratio: Fraction | None = self.quantities["ratio"].value
        return ratio


@dataclass(frozen=True, repr=False)
class Privacy(Shown):
    """The audit of a mechanism at a budget ε. All comparisons are decided exactly.

    Attributes:
        pairs: Audit of each difference, or of each ordered pair of rows.
        mechanism: The audited mechanism.
        error: Exact expected loss. None if no loss was requested.
        epsilon: Common budget. None if the pairs have different budgets.
        pdp_delta: Largest PDP δ, exact.
        dp_delta: Largest DP δ, the exact number a - b e^ε with float bounds `.lower`, `.upper`.
        pure_ratio: Largest ratio of masses. None if it is unbounded.
        pure_epsilon: Logarithm of `pure_ratio`, rounded up. Infinity if it is unbounded.
    """

    pairs: tuple[PairAudit, ...]
    mechanism: Mechanism = field(repr=False, compare=False)
    error: ExpectedError | None = field(default=None, repr=False, compare=False)
    # Whether only `mechanism.extremes()` were audited: comparisons that decide the largest ratio.
    # They may be all comparisons.
    _only_extremes: bool = field(default=False, repr=False, compare=False)
    _measurements: list[ClaimMeasurement] = field(default_factory=list, repr=False, compare=False)

    @cached_property
    def epsilon(self) -> Fraction | None:
        """Return the common budget, or None if the pairs have different budgets."""
        budgets = [pair.epsilon for pair in self.pairs]
        if budgets.count(budgets[0]) == len(budgets):
            return budgets[0]
        return None

    def __repr__(self) -> str:
        budget = "separate budgets"
        if self.epsilon is not None:
            budget = f"epsilon={float(self.epsilon):g}"
        count = len(self.pairs)
        return f"Privacy({count} comparisons at {budget}, pure_epsilon={self.pure_epsilon!r})"

    def facts(self) -> Facts:
        """Return rows (label, text) of a report. Numbers are rounded up."""
        budget = "a separate epsilon for each pair"
        if self.epsilon is not None:
            budget = f"epsilon = {format_fraction(self.epsilon)}"
        values = self.to_dict()
        rows = [
            ("mechanism", self.mechanism.describe()),
            ("neighbours", f"{len(self.pairs)} ordered pairs"),
            ("exact pure epsilon", f"{values['pure_epsilon']} (rounded up)"),
        ]
        for name, key in (("PDP", "pdp_delta"), ("DP", "dp_delta")):
            if values[key] is not None:
                rows.append((f"exact {name} delta", f"{values[key]!r} at {budget}"))
        if values["metric_epsilon"] is not None:
            rows.append(("metric epsilon", f"{values['metric_epsilon']} for |x - x'|"))
        if values["bias"] is not None:
            rows.append(("largest bias", repr(values["bias"])))
        if self.mechanism.is_one_sided:
            rows.append(ONE_SIDED_NOTE)
        if self.error is None:
            return rows
        return rows + self.error.facts()

    def to_dict(self) -> Record:
        """Return the audit as data for JSON.

        Every number is rounded so that it never overstates privacy. Unbounded numbers are "inf".

        Returns:
            kind (class of the mechanism), neighbours (number of comparisons), one_sided,
            pure_epsilon, epsilon (None if it differs between neighbours), pdp_delta, dp_delta,
            metric_epsilon and bias (both None unless inputs are real). If a loss was requested,
            also the entries of `ExpectedError.to_dict`.
        """
        segments = self.mechanism.segments  # None: no affine pieces. Empty: the comparisons decide.
        pdp_delta = None  # The PDP δ of a law without affine pieces cannot be decided.
        if segments is not None:
            pdp_delta = self.worst_result("pdp").measurement.upper
        means = None
        if segments:
            means = getattr(self.mechanism, "unbiased_means", None)
        bias = None
        if means is not None:
            bias = float(Bias.measure(self.mechanism, *means).worst)
        return {
            "kind": type(self.mechanism).__name__,
            "neighbours": len(self.pairs),
            "one_sided": self.mechanism.is_one_sided,
            "pure_epsilon": to_jsonable(self.pure_epsilon),
            "epsilon": None if self.epsilon is None else float(self.epsilon),
            "pdp_delta": pdp_delta,
            "dp_delta": self.dp_delta.upper,
            "metric_epsilon": to_jsonable(self.metric_epsilon) if segments else None,
            "bias": bias,
            **({} if self.error is None else self.error.to_dict()),
        }

    @property
    def drawable(self) -> bool:
        """Return whether the privacy profiles can be drawn within a second or so."""
        return len(self.pairs) * len(self.mechanism.outputs) <= _MAX_DRAWN_MASSES

    def figure(self) -> Figure:
        """Draw the exact privacy profiles, with the budget marked."""
        from workbench.privacy.curve import draw_profiles

        return draw_profiles(self.mechanism, [self.epsilon] if self.epsilon else [])

    def save(self, path: str | Path) -> None:
        """Write the report and the budgets as a JSON file.

        Args:
            path: Path of the file.
        """
        budgets = [[list(label), format_fraction(value)] for label, value in self.budgets.items()]
        write_json(path, {**dict(self.facts()), "budgets": budgets})

    @property
    def budgets(self) -> Budgets:
        """Return the budget of each difference, or of each ordered pair of rows."""
        return {pair.label: pair.epsilon for pair in self.pairs}

    @cached_property
    def is_complete(self) -> bool:
        """Return whether all comparisons of the mechanism were audited, not only the extremes."""
        return not self._only_extremes or self.budgets.keys() == self.mechanism.budgets(0).keys()

    def worst_result(
        self,
        notion_or_name: str | Notion,
        epsilon: Budget | None = None,
        delta: Real | None = None,
        **parameters: Any,
    ) -> ComparisonResult:
        """Return the measurement of the comparison that a notion considers the least private.

        On real inputs it may be one measurement over all pairs of inputs.

        Args:
            notion_or_name: A notion, or its name such as "dp".
            epsilon: A number, or a mapping label -> number. None for the budgets of this audit.
            delta: δ in [0, 1]. None for the default of the notion.
            **parameters: Further parameters of the notion by name.

        Raises:
            InvalidRequest: A parameter is wrong, or the notion cannot be decided for the mechanism.
        """
        measuring_notion = get_notion(notion_or_name)
        if epsilon is None and "epsilon" in measuring_notion.parameters:
            epsilon = self.budgets if self.epsilon is None else self.epsilon
        claim = self.claim(measuring_notion, epsilon, delta, **parameters)
        return measuring_notion.worst_result(self.measure_comparisons(claim))

    @cached_property
    def pdp_delta(self) -> Fraction:
        """Return the exact PDP δ.

        Raises InvalidRequest on real inputs, where it need not be rational (see `worst_result`).
        """
        if has_real_inputs(self.mechanism):
            raise InvalidRequest(
                "The PDP delta on real inputs is no rational number. Use worst_result('pdp')."
            )
        return Fraction(self.worst_result("pdp").measurement.a)

    @cached_property
    def dp_delta(self) -> ExpNumber:
        """Return the exact DP δ."""
        delta: ExpNumber = self.worst_result("dp").measurement
        return delta

    @cached_property
    def pure_ratio(self) -> Fraction | None:
        """Return the largest ratio of masses, or None if it is unbounded."""
        ratio: Fraction | None = self.worst_result("pure").measurement.value
        return ratio

    @cached_property
    def pure_epsilon(self) -> float:
        """Return the ε of pure DP, rounded up. It is infinity if a ratio of masses is unbounded."""
        return float(self.worst_result("pure").measurement.privacy_loss)

    @cached_property
    def metric_epsilon(self) -> float:
        """Return the smallest ε for the distance |x - x'| on real inputs, rounded up.

        It is infinity if there is none. Raises InvalidRequest for mechanisms on other inputs.
        """
        if not self.mechanism.segments:
            raise InvalidRequest(
                "metric_epsilon must be read from the audit of a mechanism on real inputs."
            )
        steepest = self.worst_result("metric").measurement.value
        if steepest is None:
            return math.inf
        return round_up(steepest)

    def audit_at(self, epsilon: Budget) -> Privacy:
        """Return the audit of all comparisons at another budget.

        Args:
            epsilon: A number, or a mapping label -> number.

        Returns:
            This audit if it has the same budget. An audit of the extremes alone is returned as it
            is if its PDP δ is 0, because all δ are then 0.
        """
        if not isinstance(epsilon, Mapping) and self.epsilon == read_positive(
            epsilon, "epsilon", or_zero=True
        ):
            return self._complete_audit
        if self.mechanism.budgets(epsilon) == self.budgets:
            return self
        return audit(self.mechanism, epsilon)

    @cached_property
    def _complete_audit(self) -> Privacy:
        """Return an audit whose δ are right, which audits all comparisons if that is necessary."""
        # If no outcome exceeds e^ε, every δ is 0.
        is_pure = not any(pair.pdp_delta for pair in self.pairs)
        if is_pure or self.is_complete:
            return self
        return audit(self.mechanism, self.epsilon)

    def measure_comparisons(self, claim: Claim) -> tuple[ComparisonResult, ...]:
        """Measure every comparison by the notion of a claim. Equal claims are measured once.

        Args:
            claim: Notion of privacy with the exact values of its parameters.

        Raises:
            InvalidRequest: The notion cannot be decided for the mechanism.
        """
        return self._measurement_of(claim).results

    def _measurement_of(self, claim: Claim) -> ClaimMeasurement:
        """Return the measurement of a claim. Copies of this audit share the measurements."""
        claim = claim.adapt_to(self.mechanism)
        for measurement in self._measurements:
            if measurement.claim == claim:
                return measurement
        self._measurements.append(ClaimMeasurement(claim, tuple(self._compute_results(claim))))
        return self._measurements[-1]

    def _compute_results(self, claim: Claim) -> Iterable[ComparisonResult]:
        """Measure the comparisons, or reuse the quantities that the audit has measured already."""
        quantity = claim.notion.quantity
        identity = _measurement_identity(claim.notion)
        is_measured = any(
            quantity == other.quantity and identity == _measurement_identity(other)
            for other in REPORTED_NOTIONS
        )
        if not is_measured or (has_real_inputs(self.mechanism) and not claim.notion.is_convex):
            return measure_mechanism(self.mechanism, claim)
        if claim.is_decided_by_ratio and quantity == "ratio":
            pairs = self.pairs  # The largest ratio is the same at every budget.
        else:
            pairs = self.audit_at(claim.values["epsilon"]).pairs
        common = claim.common_values
        results = []
        for pair in pairs:
            values = claim.values_at(pair.label) if common is None else common
            results.append(ComparisonResult(pair.label, pair.quantities[quantity], values))
        return results

    def meets(
        self,
        notion_or_name: str | Notion,
        epsilon: Budget | None = None,
        delta: Real | None = None,
        **parameters: Any,
    ) -> bool:
        """Return whether the mechanism satisfies a notion of privacy, decided exactly.

        Args:
            notion_or_name: A notion, or its name such as "dp".
            epsilon: ε >= 0, or a mapping label -> ε, as `audit` accepts. None for a notion
                without ε.
            delta: δ in [0, 1]. It must be 0 for "pure" and "metric". None for the default of the
                notion.
            **parameters: Further parameters of the notion by name.

        Raises:
            InvalidRequest: A parameter is wrong, or the notion cannot be decided for the mechanism.
        """
        return self.holds(self.claim(notion_or_name, epsilon, delta, **parameters))

    def verdict(
        self,
        notion_or_name: str | Notion,
        epsilon: Budget | None = None,
        delta: Real | None = None,
        *,
        subject: str = "The mechanism",
        **parameters: Any,
    ) -> str:
        """Return the result of `meets` as a sentence.

        It states the measured and the requested numbers, and one outcome that exceeds the budget.

        Args:
            notion_or_name: A notion, or its name such as "dp".
            epsilon: ε >= 0, or a mapping label -> ε, as `audit` accepts. None for a notion
                without ε.
            delta: δ in [0, 1]. It must be 0 for "pure" and "metric". None for the default of the
                notion.
            subject: Subject of the sentence.
            **parameters: Further parameters of the notion by name.

        Raises:
            InvalidRequest: A parameter is wrong, or the notion cannot be decided for the mechanism.
        """
        claim = self.claim(notion_or_name, epsilon, delta, **parameters)
        return self.describe_verdict(claim, subject)

    def claim(
        self,
        notion_or_name: str | Notion,
        epsilon: Budget | None = None,
        delta: Real | None = None,
        **parameters: Any,
    ) -> Claim:
        """Build a claim about this mechanism.

        Args:
            notion_or_name: A notion, or its name such as "dp".
            epsilon: ε >= 0, or a mapping label -> ε, as `audit` accepts. None for a notion
                without ε.
            delta: δ in [0, 1]. None for the default of the notion.
            **parameters: Further parameters of the notion by name.

        Raises:
            InvalidRequest: A parameter is missing, unknown or has a wrong value.
        """
        values = {"epsilon": epsilon, "delta": delta, **parameters}
        return Claim.for_mechanism(notion_or_name, self.mechanism, values)

    def holds(self, claim: Claim) -> bool:
        """Return whether every comparison meets a claim, decided exactly.

        Args:
            claim: Notion of privacy with the exact values of its parameters.
        """
        return self._measurement_of(claim).is_met

    def describe_verdict(self, claim: Claim, subject: str = "The mechanism") -> str:
        """Return a sentence that states whether a claim holds, and by which numbers.

        Args:
            claim: Notion of privacy with the exact values of its parameters.
            subject: Subject of the sentence.
        """
        claimed_notion = claim.notion
        results = self.measure_comparisons(claim)
        failed_results = [result for result in results if not claim.is_met_by(result)]
        worst_result = claimed_notion.worst_result(results)
        budget = claim.describe_budget(one_sided=self.mechanism.is_one_sided)
        finding = claimed_notion.describe_finding(
            worst_result.measurement, worst_result.budget, budget
        )
        verdict = "is private"
        if failed_results:
            verdict = "is NOT private"
        sentence = f"{subject} {verdict} at the requested budget: {finding}"
        if not failed_results or not worst_result.label:
            # A mechanism that is measured as a whole has no single comparison to name.
            return sentence
        violation = claimed_notion.worst_violation(failed_results)
        comparison = next(
            comparison
            for comparison in self.mechanism.comparisons()
            if comparison.label == violation.label
        )
        laws = Laws(comparison.p, comparison.q)
        witness = claimed_notion.describe_witness(laws, violation, comparison.describe)
        if witness is None:
            return sentence
        return f"{sentence} ({witness})"


def _measurement_identity(measuring_notion: Notion) -> tuple[Any, ...]:
    """Return the methods that define a measurement. Notions with equal methods measure the same.

    A method that a notion inherits is the same object in both classes.
    """
    notion_class = type(measuring_notion)
    coefficients = getattr(notion_class, "coefficients", None)
    return notion_class.measure, coefficients, getattr(notion_class, "counts_excess", None)


def measure_mechanism(
    mechanism: Mechanism, claim: Claim, comparisons: Iterable[Comparison] | None = None
) -> Iterator[ComparisonResult]:
    """Measure the comparisons that decide a claim, one after the other.

    Args:
        mechanism: Mechanism with exact masses and a neighbour relation.
        claim: Notion and exact parameters, with a budget for every comparison of the mechanism.
        comparisons: Comparisons that decide the claim. None for all that are needed.

    Yields:
        One measurement for each comparison, or a single one over all pairs of real inputs.

    Raises:
        InvalidRequest: The notion cannot be decided for the mechanism.
    """
    overall_result = _measure_segments(mechanism, claim)
    if overall_result is not None:
        yield overall_result
        return
    if comparisons is None:
        comparisons = mechanism.extremes() if claim.is_decided_by_ratio else mechanism.comparisons()
    common = claim.common_values
    for position, comparison in enumerate(comparisons):
        if position % ITEMS_PER_CLOCK_CHECK == 0:
            check_time_limit()
        values = claim.values_at(comparison.label) if common is None else common
        measured = claim.notion.measure(Laws(comparison.p, comparison.q), values)
        yield ComparisonResult(comparison.label, measured, values)


def _measure_segments(mechanism: Mechanism, claim: Claim) -> ComparisonResult | None:
    """Measure all pairs of real inputs at once, or return None if the comparisons decide."""
    measuring_notion = claim.notion
    segments = mechanism.segments  # None: no affine pieces. Empty: the comparisons decide.
    if segments is None and not measuring_notion.is_convex:
        raise InvalidRequest(
            f"The notion {measuring_notion.name} cannot be decided for a law that is not affine in "
            "its input."
        )
    if not segments:
        return None
    measured = measuring_notion.measure_segments(segments, claim.values)
    if measured is None:
        return None
    return ComparisonResult((), measured, claim.values)


def satisfies_claim(
    mechanism: Mechanism, claim: Claim, comparisons: Iterable[Comparison] | None = None
) -> bool:
    """Return whether a mechanism meets a claim, decided exactly.

    The search ends at the first comparison that exceeds its budget.

    Args:
        mechanism: Mechanism with exact masses and a neighbour relation.
        claim: Notion and exact parameters, with a budget for every comparison of the mechanism.
        comparisons: Comparisons that decide the claim. None for all that are needed.

    Raises:
        InvalidRequest: The notion cannot be decided for the mechanism.
        NotProven: A comparison stays undecided.
    """
    meets = claim.notion.is_within_budget
    return all(
        meets(result.measurement, result.budget)
        for result in measure_mechanism(mechanism, claim, comparisons)
    )


def provably_satisfies_claim(
    mechanism: Mechanism, claim: Claim, comparisons: Iterable[Comparison] | None = None
) -> bool:
    """Return whether a mechanism provably meets a claim. Undecided claims count as not met.

    A repair uses this function: it moves the mechanism further as long as the claim stays
    undecided.

    Args:
        mechanism: Mechanism with exact masses and a neighbour relation.
        claim: Notion and exact parameters, with a budget for every comparison of the mechanism.
        comparisons: Comparisons that decide the claim. None for all that are needed.

    Raises:
        InvalidRequest: The notion cannot be decided for the mechanism.
    """
    try:
        return satisfies_claim(mechanism, claim, comparisons)
    except NotProven:
        return False


def audit_for_claim(mechanism: Mechanism, claim: Claim) -> Privacy:
    """Audit the comparisons that decide a claim, at its ε (at 0 for a notion without ε).

    A notion that is measured over all real inputs at once needs no complete audit.

    Args:
        mechanism: Mechanism with exact masses and a neighbour relation.
        claim: The claim, adapted to the mechanism.

    Raises:
        InvalidRequest: The budgets do not fit the mechanism.
    """
    epsilon = claim.values.get("epsilon", 0)
    is_measured_at_once = (
        bool(mechanism.segments) and not claim.notion.is_convex and not isinstance(epsilon, Mapping)
    )
    if claim.is_decided_by_ratio or is_measured_at_once:
        return audit_extremes(mechanism, epsilon)
    return audit(mechanism, epsilon)


def audit(
    mechanism: Any, epsilon: Budget | None = None, *, loss: str | None = None, data: Any = None
) -> Privacy:
    """Audit all comparisons of a mechanism exactly, each at its budget.

    Args:
        mechanism: A mechanism, or a Design or Certificate of one.
        epsilon: A finite number >= 0, or a mapping label -> number. None for the ε of the
            certificate, otherwise 0.
        loss: Name of a loss, as `compute_expected_error` accepts. None: no loss is reported,
            except "absolute" if data are given.
        data: Inputs to average over, as `compute_expected_error` accepts. None for its default.

    Raises:
        InvalidRequest: An argument is wrong or does not fit the mechanism.
    """
    subject = as_mechanism(mechanism)
    if epsilon is None:
        # A design has a certificate, a certificate has a claim, and a bare mechanism has neither.
        certificate = getattr(mechanism, "certificate", mechanism)
        claim: Any = getattr(certificate, "claim", None)
        # An ε per unit of distance is no budget of a pair of inputs.
        if claim is None or (subject.segments and claim.notion.is_per_distance):
            epsilon = 0
        else:
            epsilon = claim.values.get("epsilon", 0)
    error = measure_requested_error(subject, loss, data)
    budgets = subject.budgets(epsilon)
    pairs = []
    # A joint release compares the same two objects at many shift vectors. Other comparisons are
    # not kept, as their laws need much memory together.
    has_shared_laws = isinstance(subject, JointNoise)
    shared_audits: dict[tuple[int, int, Fraction], tuple[Comparison, PairAudit]] = {}
    for position, comparison in enumerate(subject.comparisons()):
        budget = budgets[comparison.label]
        key = (id(comparison.p), id(comparison.q), budget)
        if key in shared_audits:
            pairs.append(replace(shared_audits[key][1], label=comparison.label))
            continue
        pair = _audit_pair(comparison, budget, position)
        if has_shared_laws:
            # The stored comparison keeps both laws alive, so that no other has their identities.
            shared_audits[key] = comparison, pair
        pairs.append(pair)
    return Privacy(tuple(pairs), subject, error)


def measure_requested_error(mechanism: Any, loss: str | None, data: Any) -> ExpectedError | None:
    """Compute the expected loss that an audit reports.

    Args:
        mechanism: The mechanism.
        loss: Name of a loss, as `compute_expected_error` accepts. With data alone: "absolute".
        data: Inputs to average over, as `compute_expected_error` accepts.

    Returns:
        The exact expected loss. None without a loss and data.

    Raises:
        InvalidRequest: The loss or the data do not fit the mechanism.
    """
    if loss is None and data is None:
        return None
    from workbench.privacy.expected_error import compute_expected_error

    return compute_expected_error(mechanism, "absolute" if loss is None else loss, data)


def audit_extremes(mechanism: Any, epsilon: Real) -> Privacy:
    """Audit only the comparisons that decide pure ε.

    This takes linear time for a channel whose rows are all neighbours. The pure ε of the audit is
    the pure ε of the mechanism. If it exceeds `epsilon`, all comparisons are audited before a δ is
    returned, so the δ are those of the mechanism as well.

    Args:
        mechanism: A mechanism, or a Design or Certificate of one.
        epsilon: A finite number >= 0.

    Raises:
        InvalidRequest: ε is no such number.
    """
    subject = as_mechanism(mechanism)
    value = read_positive(epsilon, "epsilon", or_zero=True)
    pairs = []
    for position, comparison in enumerate(subject.extremes()):
        pairs.append(_audit_pair(comparison, value, position))
    return Privacy(tuple(pairs), subject, _only_extremes=True)


def _audit_pair(comparison: Comparison, epsilon: Fraction, position: int) -> PairAudit:
    """Measure one comparison at ε. `position` is its number in the audit, from 0."""
    if position % ITEMS_PER_CLOCK_CHECK == 0:
        check_time_limit()
    laws = Laws(comparison.p, comparison.q)
    values = {"epsilon": epsilon}
    quantities = {}
    for reported_notion in REPORTED_NOTIONS:
        quantities[reported_notion.quantity] = reported_notion.measure(laws, values)
    return PairAudit(comparison.label, epsilon, quantities)
