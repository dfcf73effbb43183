"""What a notion of privacy is: it measures one comparison exactly, says whether a claim is met, words the verdict and
reads its own budget. Nothing else in the workbench branches on a notion's name.

    parameters      of a budget, such as epsilon and delta; the first may differ from neighbour to neighbour
    measure         (P, Q) and a budget -> a value: a δ, a ratio, a divergence; exact, or an interval that decides
    meets           value and budget -> whether the claim holds there
    requires        budget -> what a model of an optimisation must state about (P, Q), as plain data; a notion that
                    amounts to infinitely many of them gives some (`relaxed`) and those an answer breaks (`cuts`)

A mechanism meets a claim when all its comparisons do. On real inputs the laws between two knots are mixtures of those
at the knots: a measure that is quasi-convex in the pair (P, Q) is then largest at knots (`convex`); any other must be
measured on segments.

To add a notion: subclass `Notion` in one file and name it in `workbench.notions`, or `register` it there.
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

Label = tuple[int, ...]  # of a comparison: a shift, an ordered pair of rows


@dataclass(frozen=True)
class HockeyStick:
    """Σ max(0, P - e^epsilon Q) <= delta. With delta = 0: P <= e^epsilon Q everywhere."""

    epsilon: Fraction
    delta: Fraction = ZERO
    kind = "hockey-stick"


@dataclass(frozen=True)
class SlopedHockeyStick(HockeyStick):
    """Σ max(0, P - slope Q) <= delta for a rational slope >= 1, which is e^ε of no rational ε > 0.

    epsilon: the largest float at most ln(slope), for what raises masses to a ratio; nothing is decided by it.
    """

    slope: Fraction = ONE

    @classmethod
    def from_slope(cls, slope: Fraction, delta: Fraction) -> SlopedHockeyStick:
        """The one of a slope."""
        return cls(-Fraction(log_upper_bound(1 / slope)), delta, slope)


@dataclass(frozen=True)
class MassAboveRatio:
    """Σ P over the outcomes with P > e^epsilon Q <= delta. With delta = 0: P <= e^epsilon Q everywhere."""

    epsilon: Fraction
    delta: Fraction = ZERO
    kind = "mass-above-ratio"


@dataclass(frozen=True)
class PowerCone:
    """Σ P^alpha Q^(1-alpha) <= e^exponent, alpha > 1."""

    alpha: Fraction
    exponent: Fraction
    kind = "power-cone"


@dataclass(frozen=True)
class RelativeEntropy:
    """Σ P ln(P/Q) <= limit."""

    limit: Fraction
    kind = "relative-entropy"


Requirement: TypeAlias = HockeyStick | MassAboveRatio | PowerCone | RelativeEntropy


@dataclass(frozen=True)
class ComparisonResult:
    """What a notion measured of one comparison. label: of the comparison, () for a mechanism measured as a whole."""

    label: Label
    measurement: Any
    budget: Values


class Notion(ABC):
    """A notion of privacy. Subclasses are stateless: two of one class are the same notion.

    name: in requests, files and tables; title: in sentences and plots; parameters: of a budget, as they are written;
    defaults: of parameters that may be left out; quantity: what is measured. Two notions that measure the same thing
    share its name, and with it the measurement.
    convex: whether the measure is quasi-convex in the pair (P, Q), so that laws at knots decide mechanisms on real
    inputs.
    series_work: what the logarithms, powers or quantiles of one outcome take at least, in such comparisons; what more a
    claim needs is counted while it is decided (`count_work`).
    per_distance: whether on real inputs the first parameter is per unit of |x - x'|.
    composes: whether designs for many runs are proven in it, by the composition of dominating pairs.
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

    # The budget.

    @abstractmethod
    def parse(self, parameter: str, value: Any) -> Any:
        """One parameter in exact numbers. Raises InvalidRequest."""

    @property
    def has_delta(self) -> bool:
        """Whether a budget of this notion has a δ that may be positive."""
        return "delta" in self.parameters

    # The measurement.

    def is_decided_by_ratio(self, budget: Values) -> bool:
        """Whether a claim holds, with one budget for all, just when the largest ratio of masses is within it."""
        return False

    @abstractmethod
    def measure(self, laws: Laws, budget: Values) -> Any:
        """What the claim is about, measured of P against Q."""

    def measure_segments(self, segments: Sequence[Any], budget: Values) -> Any | None:
        """The same over all pairs of inputs of a law that is affine on segments (low, high, left, right); None where
        the comparisons of laws at knots decide it. Raises InvalidRequest where nothing decides it."""
        if self.is_convex:
            return None
        raise InvalidRequest(
            f"The notion {self.name} is not decided for mechanisms on real inputs."
        )

    def segment_work(self, segments: int, outputs: int, bits: int) -> int:
        """What `measure_segments` takes, in comparisons of short numbers; bits: of the integers."""
        return 0

    def work_per_outcome(self, budget: Values) -> int:
        """What one outcome of a comparison takes at a budget, in comparisons of short numbers."""
        return 1

    @abstractmethod
    def is_within_budget(self, measurement: Any, budget: Values) -> bool:
        """Whether a measured value is within a budget. Decided, never guessed."""

    @abstractmethod
    def severity(self, measurement: Any, budget: Values) -> Any:
        """How bad a measured value is at a budget, comparable among the comparisons of a mechanism."""

    def worst_result(self, results: Sequence[ComparisonResult]) -> ComparisonResult:
        """The result to report of several."""
        return (
            results[0]
            if len(results) == 1
            else max(results, key=lambda r: self.severity(r.measurement, r.budget))
        )

    def worst_violation(self, results: Sequence[ComparisonResult]) -> ComparisonResult:
        """Of the results that miss their budgets, the one to show."""
        return self.worst_result(results)

    # The words.

    @abstractmethod
    def describe_finding(self, measurement: Any, values: Values, budget_text: str) -> str:
        """What was measured beside what was asked. budget: the first parameter in words, such as "epsilon = 1"."""

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """An outcome that shows why a result misses its budget; None where there is none to show."""
        return None

    # The models.

    def requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """What must hold of (P, Q), all at once, as plain data. Raises InvalidRequest where no model can state it."""
        raise InvalidRequest(
            f"The notion {self.name} cannot be designed for, only measured and certified."
        )

    def initial_requirements(self, budget: Values) -> tuple[Requirement, ...]:
        """Requirements that a budget implies, for a design to start from: all of them where there are finitely many."""
        return self.requirements(budget)

    def gaussian_variance(self, budget: Values) -> Fraction | None:
        """σ² at which the discrete Gaussian of integer answers 1 apart meets a budget, a published bound; None where
        none is known."""
        return None

    def gaussian_mu(self, budget: Values) -> Fraction | None:
        """The μ of N(0, 1) against N(μ, 1) where that is the budget; None where it is none of this kind."""
        return None

    def find_cuts(self, p: Vector, q: Vector, budget: Values) -> Sequence[Requirement]:
        """More requirements that a budget implies, those that masses p, q break most, by floats; none where they break
        none, or `relaxed` says all. What is implied is safe: bounds are never tighter than the budget."""
        return ()

    def hockey_stick_grid(self, budget: Values) -> tuple[tuple[HockeyStick, HockeyStick], ...]:
        """Hockey sticks that a budget implies, each with a tighter one at the same ε: all of these nearly amount to the
        budget, or are more. None where `levels` says more, or `relaxed` all."""
        return ()

    def requirement_range(
        self, budget: Values
    ) -> tuple[float, float, Callable[[float], Requirement]] | None:
        """(low, high, the requirement of a level between) of a budget that amounts to a smooth range of requirements,
        none broken beyond it but by little; None of any other."""
        return None


class SmallestParameterNotion(Notion):
    """A notion whose first parameter is a number >= 0, and which measures the least one that a pair of laws has."""

    is_convex = True

    def parse(self, parameter: str, value: Any) -> Fraction:
        """A number >= 0."""
        return read_positive(value, parameter, or_zero=True)

    def worst_violation(self, results: Sequence[ComparisonResult]) -> ComparisonResult:
        """The one that needs most beyond its own budget."""
        name = self.parameters[0]
        return max(
            results,
            key=lambda result: (
                self.severity(result.measurement, result.budget) - float(result.budget[name])
            ),
        )

    def describe_smallest(self, measured: Any, values: Values) -> str:
        """The least number that holds, in words, with what is known of it."""
        return f"{self.severity(measured, values)!r} (rounded up)"

    def quantity_title(self, values: Values) -> str:
        """What is measured, in words."""
        return f"the least {self.title} {self.parameters[0]}"

    def describe_finding(self, measurement: Any, values: Values, budget_text: str) -> str:
        """The least budget beside the one asked."""
        text = (
            "unbounded" if measurement.is_unbounded else self.describe_smallest(measurement, values)
        )
        return f"{self.quantity_title(values)} is {text}, asked {budget_text}"

    def describe_witness(self, laws: Laws, result: ComparisonResult, names: Names) -> str | None:
        """The pair of laws: what breaks the budget is no single outcome."""
        high, low = names(0)
        return f"between the laws of {high} and {low}"


# Numbers that are enclosed until they decide, and the work that this may take where it is limited: for a file, not for
# a request of one's own. Units are those of `workbench.privacy.audit_work`.

_left: ContextVar[float] = ContextVar("left", default=math.inf)


@contextmanager
def limit_work(units: float) -> Iterator[None]:
    """At most so many units inside, and no more than a limit around this one leaves."""
    before = _left.get()
    allowed = min(before, units)
    _left.set(allowed)
    try:
        yield
    finally:
        _left.set(before - (allowed - _left.get()))


def reserve_work(units: float) -> bool:
    """Take units before they are worked off; False, and nothing is taken, where fewer are left."""
    left = _left.get() - units
    if left >= 0:
        _left.set(left)
    return left >= 0


def decide_at_most(
    name: str, budget: Fraction, ends: Callable[[int], Interval], limit: Fraction,
    work: Callable[[int], int], bits: int = 128, most: float = math.inf,
) -> bool:  # fmt: skip
    """Whether a number is at most a limit, by enclosures `ends` of growing precision: bits, up to `most`.

    name, budget: what is enough or not; work: of an enclosure. Raises NotProven where the bits or the work do not tell.
    """
    while bits <= most and reserve_work(work(bits)):
        low, high = ends(bits)
        if high <= limit or low > limit:
            return high <= limit
        bits *= 2
    tried = f"balls of {most}" if most < math.inf else str(bits // 2)
    raise NotProven(
        f"Whether {name} = {nearest_float(budget):g} is enough is not decided by {tried} bits."
    )


def format_rational(value: Fraction) -> str:
    """A rational in at most 17 digits."""
    return (
        f"{float(value):.17g}"
        if read_number(f"{float(value):.6g}", "value") != value
        else f"{float(value):.6g}"
    )


def format_delta(value: Fraction, budget: Fraction) -> str:
    """A δ rounded up to 6 digits, or to as many as show how far on which side of the asked one it lies."""
    text = ""
    for digits in (6, 9, 12, 17):
        up = Context(prec=digits, rounding=ROUND_CEILING)
        text = f"{up.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(up):g}"
        if value == budget or 10 * (Fraction(text) - value) <= abs(value - budget):
            return text
    side = "above" if value > budget else "below"
    return f"{text} ({float(abs(value - budget)):.2g} {side} the one asked)"
