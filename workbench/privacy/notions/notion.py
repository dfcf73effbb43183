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

To add a notion: subclass `Notion` in one file and name it in `workbench.privacy.notions`, or `register` it there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidRequest
from workbench.exact.numbers import exp_bounds, ln_up
from workbench.privacy.notions.laws import Laws

__all__ = [
    "HockeyStick",
    "MassAboveRatio",
    "Notion",
    "PowerCone",
    "RelativeEntropy",
    "Requirement",
    "Result",
    "SlopedHockeyStick",
    "Values",
]

Values: TypeAlias = Mapping[str, Any]  # parameter of a budget -> exact number
Names: TypeAlias = Callable[[int], tuple[str, str]]  # outcome -> how its mass in P and in Q is written


@dataclass(frozen=True)
class HockeyStick:
    """Σ max(0, P - e^epsilon Q) <= delta. With delta = 0: P <= e^epsilon Q everywhere."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    kind: ClassVar[str] = "hockey-stick"

    def ratio_up(self, bits: int) -> Fraction:
        """e^epsilon, rounded up to a multiple of 2^-bits."""
        return Fraction(exp_bounds(self.epsilon, bits)[1], 1 << bits)


@dataclass(frozen=True)
class SlopedHockeyStick(HockeyStick):
    """Σ max(0, P - slope Q) <= delta for a rational slope >= 1, which is e^ε of no rational ε > 0.

    epsilon: the largest float at most ln(slope), for what raises masses to a ratio; nothing is decided by it.
    """

    slope: Fraction = Fraction(1)

    def ratio_up(self, bits: int) -> Fraction:
        """The slope, exactly."""
        return self.slope

    @classmethod
    def of(cls, slope: Fraction, delta: Fraction) -> SlopedHockeyStick:
        """The one of a slope."""
        return cls(-Fraction(ln_up(1 / slope)), delta, slope)


@dataclass(frozen=True)
class MassAboveRatio:
    """Σ P over the outcomes with P > e^epsilon Q <= delta. With delta = 0: P <= e^epsilon Q everywhere."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    kind: ClassVar[str] = "mass-above-ratio"


@dataclass(frozen=True)
class PowerCone:
    """Σ P^alpha Q^(1-alpha) <= e^exponent, alpha > 1."""

    alpha: Fraction
    exponent: Fraction
    kind: ClassVar[str] = "power-cone"


@dataclass(frozen=True)
class RelativeEntropy:
    """Σ P ln(P/Q) <= limit."""

    limit: Fraction
    kind: ClassVar[str] = "relative-entropy"


Requirement: TypeAlias = HockeyStick | MassAboveRatio | PowerCone | RelativeEntropy


@dataclass(frozen=True)
class Result:
    """What a notion measured of one comparison. label: of the comparison, () for a mechanism measured as a whole."""

    label: tuple[int, ...]
    measured: Any
    values: Values


class Notion(ABC):
    """A notion of privacy. Subclasses are stateless: two of one class are the same notion.

    name: in requests, files and tables; title: in sentences and plots; parameters: of a budget, as they are written;
    defaults: of parameters that may be left out; quantity: what is measured. Two notions that measure the same thing
    share its name, and with it the measurement.
    convex: whether the measure is quasi-convex in the pair (P, Q), so that laws at knots decide mechanisms on real
    inputs.
    ratio_decides: whether a claim with one budget for all holds when it does for the comparison of largest ratio.
    series_work: what the logarithms, powers or quantiles of one outcome take at least, in such comparisons; what more a
    claim needs is counted while it is decided (`work.count_work`).
    per_distance: whether on real inputs the first parameter is per unit of |x - x'|.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    defaults: ClassVar[Values] = {}
    quantity: ClassVar[str] = ""
    convex: ClassVar[bool] = False
    ratio_decides: ClassVar[bool] = False
    per_distance: ClassVar[bool] = False
    series_work: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    # The budget.

    @abstractmethod
    def parse(self, parameter: str, value: Any) -> Any:
        """One parameter in exact numbers. Raises InvalidRequest."""

    def budget(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters in exact numbers, in their order; None means not given. Raises InvalidRequest."""
        named = {name: value for name, value in given.items() if value is not None}
        for name in named:
            if name not in self.parameters:
                raise InvalidRequest(
                    f"The parameters of the notion {self.name} must be {', '.join(self.parameters)}. Got {name}."
                )
        values = {}
        for name in self.parameters:
            if name not in named and name not in self.defaults:
                raise InvalidRequest(f"{name} must be given for the notion {self.name}. Got none.")
            values[name] = self.parse(name, named[name]) if name in named else self.defaults[name]
        return values

    @property
    def has_delta(self) -> bool:
        """Whether a budget of this notion has a δ that may be positive."""
        return "delta" in self.parameters

    # The measurement.

    @abstractmethod
    def measure(self, laws: Laws, values: Values) -> Any:
        """What the claim is about, measured of P against Q."""

    def measure_segments(self, segments: Sequence[Any], values: Values) -> Any | None:
        """The same over all pairs of inputs of a law that is affine on segments (low, high, left, right); None where
        the comparisons of laws at knots decide it. Raises InvalidRequest where nothing decides it."""
        if self.convex:
            return None
        raise InvalidRequest(f"The notion {self.name} is not decided for mechanisms on real inputs.")

    def segment_work(self, segments: int, outputs: int, bits: int) -> int:
        """What `measure_segments` takes, in comparisons of short numbers; bits: of the integers."""
        return 0

    def work_per_outcome(self, values: Values) -> int:
        """What one outcome of a comparison takes at a budget, in comparisons of short numbers."""
        return 1

    @abstractmethod
    def meets(self, measured: Any, values: Values) -> bool:
        """Whether a measured value is within a budget. Decided, never guessed."""

    @abstractmethod
    def worst(self, results: Sequence[Result]) -> Result:
        """The result to report of several."""

    def most_broken(self, results: Sequence[Result]) -> Result:
        """Of the results that miss their budgets, the one to show."""
        return self.worst(results)

    # The words.

    @abstractmethod
    def finding(self, worst: Any, values: Values, budget: str) -> str:
        """What was measured beside what was asked. budget: the first parameter in words, such as "epsilon = 1"."""

    def witness(self, laws: Laws, result: Result, names: Names) -> str | None:
        """An outcome that shows why a result misses its budget; None where there is none to show."""
        return None

    # The models.

    def requires(self, values: Values) -> tuple[Requirement, ...]:
        """What must hold of (P, Q), all at once, as plain data. Raises InvalidRequest where no model can state it."""
        raise InvalidRequest(f"The notion {self.name} cannot be designed for, only measured and certified.")

    def relaxed(self, values: Values) -> tuple[Requirement, ...]:
        """Requirements that a budget implies, for a design to start from: all of them where there are finitely many."""
        return self.requires(values)

    def gaussian_variance(self, values: Values) -> Fraction | None:
        """σ² at which the discrete Gaussian of integer answers 1 apart meets a budget, a published bound; None where
        none is known."""
        return None

    def cuts(self, p: NDArray[np.float64], q: NDArray[np.float64], values: Values) -> Sequence[Requirement]:
        """More requirements that a budget implies, those that masses p, q break most, by floats; none where they break
        none, or `relaxed` says all. What is implied is safe: bounds are never tighter than the budget."""
        return ()
