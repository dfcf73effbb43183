"""Define the base class of the notions of privacy, which measures two laws and decides a claim.

A notion also reads its budget, describes the result in words, and lists the constraints that a
model must state. Nothing else in the workbench branches on the name of a notion.

Notation: P and Q are the laws of two neighbouring inputs; a budget is the set of parameters of a
claim, such as ε and δ. On real inputs the law is affine between consecutive knots.

    parameters         the names of a budget's parameters, such as epsilon and delta; the first may
                       differ from neighbour to neighbour
    measure            (P, Q) and a budget -> a measurement: a δ, a ratio or a divergence. It is
                       exact, or an interval that decides the claim
    is_within_budget   measurement and budget -> whether the claim holds for this comparison
    requirements       budget -> the constraints on (P, Q) in an optimization model, as plain data.
                       A notion with infinitely many constraints gives some of them at first
                       (`initial_requirements`), and later those that a solution violates
                       (`find_cuts`)

A mechanism satisfies a claim if all its comparisons do. On real inputs the laws between two knots
are mixtures of the laws at the knots. A measure that is quasi-convex in the pair (P, Q) is
therefore largest at knots (`is_convex`). Any other measure must be computed on segments.

To add a notion to this package, subclass `Notion` in one file and list it in `workbench.notions`.
Other packages call `register_notion`. A requirement of a new kind also needs a class here and its
rows in the models (`models/convex/requirements.py`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from workbench.errors import InvalidRequest, NotProven
from workbench.exact.arrays import Vector
from workbench.exact.numbers import (
    ONE,
    ZERO,
    Interval,
    log_upper_bound,
    nearest_float,
    read_number,
    read_positive,
)
from workbench.exact.objects import Values as Values
from workbench.notions.laws import Laws, Names

Label = tuple[int, ...]  # The label of a comparison: a shift, or an ordered pair of rows.

# A δ is written with the smallest of these numbers of digits that shows whether it exceeds its
# budget.
_DELTA_DIGITS = (6, 9, 12, 17)


@dataclass(frozen=True)
class HockeyStick:
    """The requirement Σ max(0, P - e^ε Q) <= δ. With δ = 0 it is P <= e^ε Q everywhere.

    Attributes:
        epsilon: ε, exact.
        delta: δ in [0, 1], exact.
    """

    epsilon: Fraction
    delta: Fraction = ZERO
    kind = "hockey-stick"


@dataclass(frozen=True)
class SlopedHockeyStick(HockeyStick):
    """Σ max(0, P - slope Q) <= delta for a rational slope >= 1, which is e^ε of no rational ε > 0.

    Attributes:
        epsilon: The largest float that is at most ln(slope), as a Fraction. It is for code that
            raises masses to a ratio e^ε. No claim is decided with it.
        slope: Factor of Q, an exact rational >= 1.
    """

    slope: Fraction = ONE

    @classmethod
    def from_slope(cls, slope: Fraction, delta: Fraction) -> SlopedHockeyStick:
        """Build the requirement from its slope.

        Args:
            slope: The slope, a rational >= 1.
            delta: The largest allowed hockey stick δ, in [0, 1].
        """
        return cls(-Fraction(log_upper_bound(1 / slope)), delta, slope)


@dataclass(frozen=True)
class MassAboveRatio:
    """The requirement that the outcomes with P > e^ε Q have a total mass P of at most δ.

    With δ = 0 it is P <= e^ε Q everywhere.

    Attributes:
        epsilon: ε, exact.
        delta: δ in [0, 1], exact.
    """

    epsilon: Fraction
    delta: Fraction = ZERO
    kind = "mass-above-ratio"


@dataclass(frozen=True)
class PowerCone:
    """The requirement Σ P^α Q^(1-α) <= e^exponent.

    Attributes:
        alpha: The order α > 1, exact.
        exponent: The exponent, exact: (α - 1) times the largest Rényi divergence.
    """

    alpha: Fraction
    exponent: Fraction
    kind = "power-cone"


@dataclass(frozen=True)
class RelativeEntropy:
    """The requirement Σ P ln(P/Q) <= limit.

    Attributes:
        limit: The largest relative entropy, exact.
    """

    limit: Fraction
    kind = "relative-entropy"


Requirement: TypeAlias = HockeyStick | MassAboveRatio | PowerCone | RelativeEntropy


@dataclass(frozen=True)
class ComparisonResult:
    """The measurement of one comparison, with the budget of the claim.

    Attributes:
        label: A shift, or an ordered pair of rows. It is () for a mechanism that is measured as a
            whole, over all pairs of real inputs.
        measurement: The value that `Notion.measure` returned.
        budget: The parameters of the claim by name.
    """

    label: Label
    measurement: Any
    budget: Values


class Notion(ABC):
    """A notion of privacy.

    Subclasses are stateless: two instances of one class are the same notion.

    Attributes:
        name: The name in requests, files and tables.
        title: The name in sentences and plots.
        parameters: The names of the parameters of a budget.
        defaults: The values of parameters that may be left out.
        quantity: The name of the measured quantity. Notions with the same quantity share its
            measurement.
        is_convex: Whether the measure is quasi-convex in the pair (P, Q), so that laws at knots
            decide mechanisms on real inputs.
        is_per_distance: Whether on real inputs the first parameter is per unit of |x - x'|.
        can_compose: Whether designs for many runs are possible. Their privacy is proven by the
            composition of dominating pairs.
        series_work: The least work for the logarithms, powers or quantiles of one outcome, in units
            of `workbench.privacy.audit_work`. Further work for a claim is counted while the claim
            is decided (`reserve_work`).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    defaults: ClassVar[Values] = {}
    quantity = ""
    is_convex = False
    is_per_distance = False
    can_compose = False
    series_work = 0

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    # Budget.

    @abstractmethod
    def parse(self, parameter: str, value: Any) -> Any:
        """Read one parameter of a budget as exact numbers.

        Args:
            parameter: One of `parameters`.
            value: Number, or text of a number, as the user gave it.

        Raises:
            InvalidRequest: If the value is not allowed for this parameter of the notion.
        """

    @property
    def has_delta(self) -> bool:
        """Return whether a budget of this notion has a δ that may be positive."""
        return "delta" in self.parameters

    # Measurement.

    def is_decided_by_ratio(self, budget: Values) -> bool:
        """Return whether the largest ratio of masses decides a claim.

        This is asked for a claim with one budget for all comparisons. If it is true, the comparison
        with the largest P/Q decides the claim, and no other one is measured.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return False

    @abstractmethod
    def measure(self, laws: Laws, budget: Values) -> Any:
        """Measure how much P exceeds Q, in the quantity of the notion.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """

    def measure_segments(self, segments: Sequence[Any], budget: Values) -> Any | None:
        """Measure all pairs of inputs of a law that is affine on segments.

        Args:
            segments: Pieces of the input range, with the attributes low and high (their ends) and
                left and right (the laws of the output at these ends).
            budget: Exact values of the parameters by name, such as epsilon and delta.

        Returns:
            The measurement; None if the comparisons of laws at knots decide the claim.

        Raises:
            InvalidRequest: If nothing decides it.
        """
        if self.is_convex:
            return None
        raise InvalidRequest(
            f"The notion {self.name} is not decided for mechanisms on real inputs."
        )

    def segment_work(self, segments: int, outputs: int, bits: int) -> int:
        """Return the work of `measure_segments`, in comparisons of short numbers.

        Args:
            segments: The number of segments.
            outputs: The number of outputs.
            bits: The bits of the integers of the laws.
        """
        return 0

    def work_per_outcome(self, budget: Values) -> int:
        """Return the work for one outcome of a comparison, in comparisons of short numbers.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return 1

    @abstractmethod
    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Decide exactly whether a measurement is within a budget.

        A notion that cannot decide it raises NotProven.

        Args:
            measurement: The value that `measure` returned for a comparison.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """

    @abstractmethod
    def severity(self, measurement: Any, budget: Values) -> Any:
        """Return a sort key of measurements, which is the larger the less private a comparison is.

        Keys are compared among the comparisons of one mechanism.

        Args:
            measurement: The value that `measure` returned for a comparison.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """

    def worst_result(self, results: Sequence[ComparisonResult]) -> ComparisonResult:
        """Return the result with the largest `severity`, which reports state.

        Args:
            results: Results of the comparisons of a mechanism, at least one.
        """
        if len(results) == 1:
            return results[0]
        return max(results, key=lambda result: self.severity(result.measurement, result.budget))

    def worst_violation(self, results: Sequence[ComparisonResult]) -> ComparisonResult:
        """Return the violation that an error message shows.

        Args:
            results: Results that are outside their budgets, at least one.
        """
        return self.worst_result(results)

    # Words.

    @abstractmethod
    def describe_finding(self, measurement: Any, budget: Values, budget_text: str) -> str:
        """Describe a measurement beside the requested budget, as part of a sentence.

        Args:
            measurement: The value that `measure` returned for a comparison.
            budget: Exact values of the parameters by name, such as epsilon and delta.
            budget_text: The first parameter in words, such as "epsilon = 1".
        """

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """Describe an outcome that shows why a result is outside its budget.

        None if no single outcome shows it.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            result: Measurement of this pair, with its budget.
            names: Maps an outcome to the texts that stand for its mass in P and in Q.
        """
        return None

    # Models.

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """Return the constraints on (P, Q) that together are equivalent to the budget.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.

        Raises:
            InvalidRequest: If no model can state the notion.
        """
        raise InvalidRequest(
            f"The notion {self.name} cannot be designed for, only measured and certified."
        )

    def initial_requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """Return requirements that a budget implies, for a design to start from.

        If the budget has finitely many requirements, all of them are returned.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return self.requirements(budget)

    def gaussian_variance(self, budget: Values) -> Fraction | None:
        """Return a variance σ² at which discrete Gaussian noise is within the budget.

        The noise is for integer answers whose neighbours differ by 1. The variance is a published
        bound, or None if there is none.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return None

    def gaussian_mu(self, budget: Values) -> Fraction | None:
        """Return μ if the budget is that of Gaussian DP, else None.

        Its hardest pair of laws is N(0, 1) against N(μ, 1).

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return None

    def find_cuts(self, p: Vector, q: Vector, budget: Values) -> Sequence[Requirement]:
        """Find the requirements of the budget that the masses p, q violate most, in floats.

        Every requirement is implied by the budget, so adding it to a model excludes no private
        mechanism.

        Args:
            p: The masses of P, shape (m,).
            q: The masses of Q, shape (m,).
            budget: Exact values of the parameters by name, such as epsilon and delta.

        Returns:
            The violated requirements. Empty if none is violated, or if `initial_requirements`
            already has all requirements.
        """
        return ()

    def hockey_stick_grid(self, budget: Values) -> tuple[tuple[HockeyStick, HockeyStick], ...]:
        """Return hockey sticks that a budget implies, each with a tighter one at the same ε.

        All tighter hockey sticks together imply the budget, or nearly so. Empty if the budget has a
        `requirement_range`, or if `initial_requirements` has all requirements.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return ()

    def requirement_range(
        self, budget: Values
    ) -> tuple[float, float, Callable[[float], Requirement]] | None:
        """Return a range of levels, each of which stands for one requirement.

        Some budgets are equivalent to infinitely many requirements, which depend smoothly on one
        number, the level (for zCDP it is ln(α - 1) for the order α).

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.

        Returns:
            (lowest level, highest level, function from a level to its requirement). Requirements of
            levels outside the range are violated by little at most. None for a budget that has
            finitely many requirements.
        """
        return None


class SmallestParameterNotion(Notion):
    """A notion whose first parameter is a number >= 0. It measures the smallest valid number."""

    is_convex = True

    def parse(self, parameter: str, value: Any) -> Fraction:
        """Read a number >= 0.

        Args:
            parameter: One of `parameters`, the names of the parameters of the notion.
            value: Number, or text of a number, as the user gave it.

        Raises:
            InvalidRequest: If the value is negative, or no finite number.
        """
        return read_positive(value, parameter, or_zero=True)

    def worst_violation(self, results: Sequence[ComparisonResult]) -> ComparisonResult:
        """Return the result that exceeds its budget most.

        Args:
            results: Results of comparisons, at least one.
        """
        name = self.parameters[0]

        def excess(result: ComparisonResult) -> float:
            """Return by how much the smallest value that holds exceeds the budget."""
            smallest_value = self.severity(result.measurement, result.budget)
            return float(smallest_value - float(result.budget[name]))

        return max(results, key=excess)

    def describe_smallest(self, measurement: Any, budget: Values) -> str:
        """Describe the smallest number that holds, and how exact it is.

        Args:
            measurement: The value that `measure` returned for a comparison.
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return f"{self.severity(measurement, budget)!r} (rounded up)"

    def quantity_title(self, budget: Values) -> str:
        """Return what is measured, in words.

        Args:
            budget: Exact values of the parameters by name, such as epsilon and delta.
        """
        return f"the smallest {self.title} {self.parameters[0]}"

    def describe_finding(self, measurement: Any, budget: Values, budget_text: str) -> str:
        """Describe the smallest parameter beside the requested one.

        Args:
            measurement: The value that `measure` returned for a comparison.
            budget: Exact values of the parameters by name, such as epsilon and delta.
            budget_text: The first parameter of the budget in words.
        """
        text = "unbounded"
        if not measurement.is_unbounded:
            text = self.describe_smallest(measurement, budget)
        return f"{self.quantity_title(budget)} is {text}, requested {budget_text}"

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """Describe the pair of laws: no single outcome is outside the budget.

        Args:
            laws: Laws P and Q of the output for two neighbouring inputs.
            result: Measurement of this pair, with its budget.
            names: Maps an outcome to the texts that stand for its mass in P and in Q.
        """
        high, low = names(0)
        return f"between the laws of {high} and {low}"


# Work that remains for deciding claims, in units of `workbench.privacy.audit_work`. It is limited
# while a file is checked, and unlimited for a request of the user.
_remaining_work: ContextVar[float] = ContextVar("remaining_work", default=math.inf)


@contextmanager
def limit_work(units: float) -> Iterator[None]:
    """Limit the work of deciding claims inside this context.

    A surrounding limit remains valid as well.

    Args:
        units: Largest work, in units of `workbench.privacy.audit_work`.
    """
    previous_limit = _remaining_work.get()
    new_limit = min(previous_limit, units)
    _remaining_work.set(new_limit)
    try:
        yield
    finally:
        used_work = new_limit - _remaining_work.get()
        _remaining_work.set(previous_limit - used_work)


def reserve_work(units: float) -> bool:
    """Reserve work before it is done.

    Args:
        units: Work, in units of `workbench.privacy.audit_work`.

    Returns:
        False if less work than this remains. Nothing is reserved then.
    """
    remaining = _remaining_work.get() - units
    if remaining < 0:
        return False
    _remaining_work.set(remaining)
    return True


def decide_at_most(
    name: str,
    budget: Fraction,
    enclosure: Callable[[int], Interval],
    limit: Fraction,
    work: Callable[[int], int],
    bits: int = 128,
    max_bits: float = math.inf,
) -> bool:
    """Decide whether a number is at most a limit, by enclosures of growing precision.

    Args:
        name: Name of the parameter, such as "epsilon", for the error message.
        budget: Value of this parameter, for the error message.
        enclosure: Maps a precision in bits to an interval around the number.
        limit: Number with which it is compared.
        work: bits -> the work of an enclosure, in units of `reserve_work`.
        bits: The precision of the first enclosure; it is doubled until the enclosure decides.
        max_bits: The largest precision that is tried.

    Returns:
        Whether the number is at most the limit.

    Raises:
        NotProven: If the precision or the allowed work does not decide it.
    """
    while bits <= max_bits and reserve_work(work(bits)):
        low, high = enclosure(bits)
        if high <= limit or low > limit:
            return high <= limit
        bits *= 2
    # `bits` is twice the precision of the last enclosure. Only enclosures by balls have `max_bits`.
    precision = f"balls of {max_bits}" if max_bits < math.inf else str(bits // 2)
    raise NotProven(
        f"Whether {name} = {nearest_float(budget):g} is enough is not decided by {precision} bits."
    )


def format_rational(value: Fraction) -> str:
    """Format a rational with 6 significant digits if these are exact, otherwise with 17."""
    short_text = f"{float(value):.6g}"
    if read_number(short_text, "value") == value:
        return short_text
    return f"{float(value):.17g}"


def format_delta(value: Fraction, budget: Fraction) -> str:
    """Round a δ up to the fewest digits that show whether, and how far, it exceeds the request.

    Args:
        value: The δ to write.
        budget: The requested δ.
    """
    text = ""
    for digits in _DELTA_DIGITS:
        context = Context(prec=digits, rounding=ROUND_CEILING)
        quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
        text = f"{quotient.normalize(context):g}"
        # The rounding changes the distance to the request by at most a tenth.
        if value == budget or 10 * (Fraction(text) - value) <= abs(value - budget):
            return text
    side = "above" if value > budget else "below"
    return f"{text} ({float(abs(value - budget)):.2g} {side} the requested one)"
