"""Bound δ of a joint release whose privacy losses are too many for an exact convolution.

The privacy losses of every coordinate are placed on a grid, and convolved in integers that are
rounded to one side (`workbench.privacy.loss_law`). So δ at ε is enclosed from both sides, for every
shift vector. A claim (ε, δ) is proven if all upper bounds are at most δ, and refuted if a lower
bound exceeds δ. Otherwise it stays undecided.

The basic step of the grid is h = 7 L / (10 · 1024). L is the largest |bits of k - bits of l| + 1
over all ratios k/l of one coordinate in lowest terms, without 0. Such a ratio is below 2^L, and its
logarithm below L ln 2 < 7 L / 10. So the privacy losses of one coordinate lie within 1024 steps of
0, and the grid has at most a few thousand points. Let N be the largest L1 norm of a shift vector.
The losses of noise for a pure budget are often multiples of ε/N, whose sums reach ε. So the first
step that is tried is ε / (N ⌈ε/(N h)⌉), if it is at least h/4. If it does not prove a claim, h is
tried.
`tools/check_certificate.py` uses the same steps, so that its bounds are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest, NotProven
from workbench.exact.numbers import ONE, ZERO, Real, round_down, round_up
from workbench.exact.objects import Record
from workbench.exact.time_limit import check_time_limit
from workbench.io.files import format_fraction
from workbench.io.shown import Facts
from workbench.mechanisms.joint_noise import JointNoise
from workbench.mechanisms.mechanism import Budget, as_mechanism
from workbench.notions import Notion
from workbench.notions.notion import ComparisonResult, HockeyStick, format_rational
from workbench.privacy.audit import Privacy, measure_requested_error
from workbench.privacy.audit_work import MAX_WORK_UNITS
from workbench.privacy.claim import Claim
from workbench.privacy.loss_law import PrivacyLossLaw
from workbench.questions.joint_query import ShiftVector

if TYPE_CHECKING:
    from workbench.privacy.expected_error import ExpectedError

# The work of the law of one shift is this for each outcome, and more for each digit
# (`workbench.privacy.audit_work`).
_UNITS_PER_OUTCOME = 500
_UNITS_PER_DIGIT = 10
_GRID_POINTS = 1024  # The largest privacy loss of one coordinate is at most this many steps.
_MAX_REFINEMENT = 4  # A step for which ε is a point of the grid is at most this many times finer.
_MASS_BITS = 160  # Bits of the masses, to which the bits of 1/δ are added.
_DEFAULT_RESOLUTION = Fraction(1, 10**9)  # Masses are resolved for this δ without a claim.
_MASS_DIGITS = 30  # The independent checker computes with this many digits, and those of 1/δ.


class GridConvolutions:
    """The distributions of the privacy loss of every shift vector, on one grid.

    Args:
        mechanism: The joint release.
        epsilon: ε >= 0, at which δ is bounded.
        delta: The masses are resolved for a δ of about this size, > 0.
        is_upper: Whether everything is rounded for upper bounds on δ.
        is_aligned: Whether ε is a point of the grid, if the module header allows it.
    """

    def __init__(
        self,
        mechanism: JointNoise,
        epsilon: Fraction,
        delta: Fraction,
        *,
        is_upper: bool,
        is_aligned: bool = True,
    ) -> None:
        self._mechanism = mechanism
        self._epsilon = epsilon
        self._is_aligned = is_aligned
        self._bits = _MASS_BITS + (delta.denominator // delta.numerator).bit_length()
        self._digits = _MASS_DIGITS + len(str(delta.denominator // delta.numerator))
        self._is_upper = is_upper
        self._laws: dict[ShiftVector, PrivacyLossLaw] = {}
        self._used_units = 0

    @cached_property
    def step(self) -> Fraction:
        """Return the step of the grid."""
        largest = 1
        for shift in {part for vector in self._mechanism.question.shifts for part in vector}:
            for k, l in self._mechanism.atoms_at_shift(shift):
                if k and l:
                    largest = max(largest, abs(k.bit_length() - l.bit_length()) + 1)
        basic_step = Fraction(7 * largest, 10 * _GRID_POINTS)
        share = self._epsilon / self._mechanism.question.max_norm
        if self._is_aligned and share >= basic_step / _MAX_REFINEMENT:
            return share / math.ceil(share / basic_step)
        return basic_step

    def law_of(self, vector: ShiftVector) -> PrivacyLossLaw:
        """Return the distribution of the privacy loss at a shift vector.

        Args:
            vector: A shift vector.

        Raises:
            NotProven: The convolutions of all shift vectors so far need too much work.
        """
        key = self._mechanism.convolution_key(vector)
        if key not in self._laws:
            last = self._law_at_shift(key[-1])
            if len(key) > 1:
                last = self._multiply(self.law_of(key[:-1]), last)
            self._laws[key] = last
        return self._laws[key]

    def _law_at_shift(self, shift: int) -> PrivacyLossLaw:
        """Return the distribution of one coordinate."""
        key = (shift,)
        if key not in self._laws:
            outcomes = len(self._mechanism.noise.weights) + 2 * abs(shift)
            self._use_units(outcomes * (_UNITS_PER_OUTCOME + _UNITS_PER_DIGIT * self._digits))
            check_time_limit()
            atoms = self._mechanism.atoms_at_shift(shift)
            total = sum(k * count for (k, _), count in atoms.items())
            self._laws[key] = PrivacyLossLaw.from_laws(
                (Fraction(k * count, total) for (k, _), count in atoms.items()),
                (Fraction(l * count, total) for (_, l), count in atoms.items()),
                self.step,
                is_upper=self._is_upper,
                moves_down=not self._is_upper,
                bits=self._bits,
            )
        return self._laws[key]

    def _multiply(self, left: PrivacyLossLaw, right: PrivacyLossLaw) -> PrivacyLossLaw:
        """Return the distribution of the sum of two losses, and count its work."""
        check_time_limit()
        points = len(left.masses) + len(right.masses)
        # This is the work of a product of polynomials in `workbench.privacy.audit_work`.
        self._use_units(7 * points * (20 + 3 * self._digits))
        return left * right

    def _use_units(self, units: int) -> None:
        """Count work before it is done."""
        self._used_units += units
        if self._used_units > MAX_WORK_UNITS:
            remedy = "Use fewer rows, or geometric noise."
            if self._mechanism.is_geometric:
                remedy = "Use fewer rows."
            raise NotProven(
                f"Convolutions of more than {MAX_WORK_UNITS} units of work are refused as too "
                f"large. {remedy}"
            )


def bound_joint_delta(
    mechanism: JointNoise,
    epsilon: Fraction,
    delta: Fraction,
    vectors: Iterable[ShiftVector] | None = None,
) -> Fraction:
    """Prove an upper bound on δ at ε over shift vectors.

    Args:
        mechanism: The joint release.
        epsilon: ε >= 0.
        delta: The masses are resolved for a δ of about this size, > 0.
        vectors: Some shift vectors. Default: all of the release.

    Raises:
        NotProven: The convolutions need too much work.
    """
    convolutions = GridConvolutions(mechanism, epsilon, delta, is_upper=True)
    if vectors is None:
        vectors = mechanism.question.shifts
    bound, _ = _find_worst_bound(vectors, convolutions.law_of, epsilon)
    return bound


def _find_worst_bound(
    vectors: Iterable[ShiftVector],
    law_of: Callable[[ShiftVector], PrivacyLossLaw],
    epsilon: Fraction,
) -> tuple[Fraction, ShiftVector]:
    """Return the largest bound on δ, and its shift vector."""
    bounds: dict[int, Fraction] = {}
    # No bound is below 0, so the bound of the first vector replaces this one.
    worst: tuple[Fraction, ShiftVector] = (-ONE, ())
    for vector in vectors:
        law = law_of(vector)
        if id(law) not in bounds:  # Many vectors share one law.
            bounds[id(law)] = law.delta(epsilon)
        if bounds[id(law)] > worst[0]:
            worst = (bounds[id(law)], vector)
    return worst


@dataclass(frozen=True, repr=False)
class JointBounds(Privacy):
    """Proven bounds on δ of a joint release at a budget, in place of an exact audit.

    Attributes:
        budget: ε.
        resolution: The masses are resolved for a δ of about this size, > 0.
    """

    budget: Fraction = ZERO
    resolution: Fraction = field(default=_DEFAULT_RESOLUTION, repr=False)
    # Upper bounds on δ by whether the grid is aligned, with their shift vectors.
    _upper_bounds: dict[bool, tuple[Fraction, ShiftVector]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def for_mechanism(
        cls,
        mechanism: JointNoise,
        epsilon: Fraction,
        resolution: Fraction,
        error: ExpectedError | None = None,
    ) -> JointBounds:
        """Bound δ of a mechanism.

        Args:
            mechanism: The joint release.
            epsilon: ε >= 0.
            resolution: The masses are resolved for a δ of about this size, > 0.
            error: Exact expected loss. None if no loss was requested.
        """
        return cls((), mechanism, error, budget=epsilon, resolution=resolution)

    @cached_property
    def epsilon(self) -> Fraction:
        """Return ε of the budget."""
        return self.budget

    @cached_property
    def is_complete(self) -> bool:
        """Return True: all shift vectors are compared."""
        return True

    def _bound_delta(self, *, is_aligned: bool) -> tuple[Fraction, ShiftVector]:
        """Return an upper bound on δ at ε, and the shift vector that has it. Compute it once."""
        if is_aligned not in self._upper_bounds:
            release: Any = self.mechanism
            laws = GridConvolutions(
                release, self.budget, self.resolution, is_upper=True, is_aligned=is_aligned
            )
            bound = _find_worst_bound(release.question.shifts, laws.law_of, self.budget)
            self._upper_bounds[is_aligned] = bound
        return self._upper_bounds[is_aligned]

    @property
    def delta_bounds(self) -> tuple[Fraction, Fraction]:
        """Return a lower and an upper bound on δ at ε, exact rationals.

        Raises:
            NotProven: The convolutions need too much work.
        """
        self._bound_delta(is_aligned=True)
        upper = min(bound for bound, _ in self._upper_bounds.values())
        return self._lower_bound, upper

    @cached_property
    def _lower_bound(self) -> Fraction:
        """Return a lower bound on δ at ε, from the worst vector of the first grid."""
        release: Any = self.mechanism
        _, vector = self._bound_delta(is_aligned=True)
        laws = GridConvolutions(release, self.budget, self.resolution, is_upper=False)
        return laws.law_of(vector).delta(self.budget)

    def holds(self, claim: Claim) -> bool:
        """Return whether a claim (ε, δ) is proven. False: it is refuted.

        Args:
            claim: The claim, of the notion dp with δ > 0 and the ε of these bounds.

        Raises:
            InvalidRequest: The claim is of another notion.
            NotProven: The bounds do not decide the claim.
        """
        if not can_bound_claim(claim) or claim.values["epsilon"] != self.budget:
            raise InvalidRequest(
                "claim must be dp with delta > 0 and this epsilon, as the release has too many "
                f"privacy losses for an exact audit. Got {claim.notion.name}."
            )
        delta = claim.values["delta"]
        # The lower bound takes time, so it is computed only for claims that are not proven.
        aligned_bound, _ = self._bound_delta(is_aligned=True)
        if aligned_bound <= delta:
            return True
        if self._lower_bound > delta:
            return False
        unaligned_bound, _ = self._bound_delta(is_aligned=False)
        if unaligned_bound <= delta:
            return True
        lower, upper = self.delta_bounds
        raise NotProven(
            f"The grid of privacy losses does not decide whether delta = {round_up(delta)!r} is "
            f"enough: it lies between {round_down(lower)!r} and {round_up(upper)!r}."
        )

    def describe_verdict(self, claim: Claim, subject: str = "The mechanism") -> str:
        """Return a sentence that states whether a claim holds, and by which numbers.

        Args:
            claim: The claim, of the notion dp with δ > 0.
            subject: Subject of the sentence.
        """
        verdict = "is private" if self.holds(claim) else "is NOT private"
        lower, upper = self.delta_bounds
        bounds = f"between {round_down(lower)!r} and {round_up(upper)!r}"
        return (
            f"{subject} {verdict} at the requested budget: the DP delta lies {bounds} at "
            f"{claim.describe_budget()}, requested {format_rational(claim.values['delta'])}"
        )

    def worst_result(
        self,
        notion_or_name: str | Notion,
        epsilon: Budget | None = None,
        delta: Real | None = None,
        **parameters: Any,
    ) -> ComparisonResult:
        """Refuse, as no number of these bounds is exact. Arguments: see `Privacy.worst_result`."""
        raise InvalidRequest(
            "delta_bounds must be read, as the release has too many privacy losses for an exact "
            "audit. The bounds on delta are proven. No other number is known."
        )

    def audit_at(self, epsilon: Budget) -> JointBounds:
        """Return the bounds at another budget.

        Args:
            epsilon: One number >= 0.
        """
        return bound_release(self.mechanism, epsilon)

    def measure_comparisons(self, claim: Claim) -> tuple[ComparisonResult, ...]:
        """Return the bounds on δ as one result over all shift vectors.

        Args:
            claim: The claim, whose parameters the result repeats.
        """
        return (ComparisonResult((), self.delta_bounds, claim.values),)

    def facts(self) -> Facts:
        """Return rows (label, text) of a report."""
        lower, upper = self.delta_bounds
        release: Any = self.mechanism
        rows = [
            ("mechanism", self.mechanism.describe()),
            ("neighbours", f"{len(release.question.shifts)} shift vectors"),
            (
                "DP delta",
                f"between {round_down(lower)!r} and {round_up(upper)!r} at epsilon = "
                f"{format_fraction(self.budget)} (proven)",
            ),
        ]
        if self.error is None:
            return rows
        return rows + self.error.facts()

    def to_dict(self) -> Record:
        """Return the bounds as data for JSON: kind, neighbours, epsilon, dp_delta, dp_delta_low.

        If a loss was requested, also the entries of `ExpectedError.to_dict`.
        """
        lower, upper = self.delta_bounds
        release: Any = self.mechanism
        return {
            "kind": type(self.mechanism).__name__,
            "neighbours": len(release.question.shifts),
            "one_sided": False,
            "epsilon": float(self.budget),
            "dp_delta": round_up(upper),
            "dp_delta_low": round_down(lower),
            **({} if self.error is None else self.error.to_dict()),
        }

    def __repr__(self) -> str:
        return f"JointBounds(epsilon={float(self.budget):g})"


def bound_release(
    subject: Any, epsilon: Budget | None = None, *, loss: str | None = None, data: Any = None
) -> JointBounds:
    """Bound δ of a joint release that has too many privacy losses for an exact audit.

    Args:
        subject: The release, or its Certificate.
        epsilon: One number ε >= 0. None: the ε of the certificate, otherwise 0.
        loss: "absolute" or "squared", the loss whose exact expectation is reported. None: no loss.
        data: None. Joint noise has the same expected loss at every input.

    Raises:
        InvalidRequest: If ε is no such number, or there is another loss, or data.
    """
    claim = getattr(subject, "claim", None)
    resolution = _DEFAULT_RESOLUTION
    budget = None
    if epsilon is not None:
        # All shift vectors have one budget.
        budget = next(iter(as_mechanism(subject).budgets(epsilon).values()))
    if claim is not None:
        resolution = claim.values.get("delta") or resolution
        if budget is None:
            budget = claim.values["epsilon"]
    mechanism: Any = as_mechanism(subject)
    error = measure_requested_error(mechanism, loss, data)
    return JointBounds.for_mechanism(mechanism, budget or ZERO, resolution, error)


def is_bounded_on_grid(mechanism: Any, claim: Claim | None = None) -> bool:
    """Return whether δ of a mechanism is bounded on a grid, because an exact audit is too large.

    Args:
        mechanism: The mechanism.
        claim: The claim to be decided, which bounds on δ must be able to decide. None: no claim.
    """
    if not isinstance(mechanism, JointNoise) or not mechanism.needs_grid:
        return False
    return claim is None or can_bound_claim(claim)


def can_bound_claim(claim: Claim) -> bool:
    """Return whether bounds on δ can decide a claim: one hockey stick of (ε, δ) with δ > 0.

    Args:
        claim: The claim.
    """
    if "epsilon" not in claim.values or not claim.values.get("delta"):
        return False
    requirements = claim.notion.requirements(claim.values)
    # A subclass of HockeyStick has a slope instead of a rational ε.
    return len(requirements) == 1 and type(requirements[0]) is HockeyStick
