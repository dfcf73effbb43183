"""Design noise on the integers for several runs under one budget (ε, δ) for all runs together.

Notation. T is the number of runs, f the PMF of the noise η of one run, and D the sensitivity. The
privacy loss of an outcome is the logarithm of the ratio of its probabilities at two neighbours.

D = 1. `workbench.models.noise.repeated_noise` finds the privacy losses of the best noise in floats.
Rounded to rational masses they are a mechanism. Its T-fold composition is bounded by a convolution
in integers (`workbench.privacy.composition`). If that bound exceeds δ, all privacy losses are
multiplied by a factor below 1, until it is at most δ.

D > 1. The candidates are f(η) ~ exp(-s L(|η|)), with the steepness s as large as the composition
allows. L is the negative log density of the best noise for D = 1, stretched by D and linear in
between, or that of published noise (`workbench.models.noise.repeated_wide_noise`). The staircases
at ε/T are candidates as well. The composition of a candidate is proven for every shift ±1..±D.

For every D, the best noise of one run at (ε/T, δ/T) is a candidate. The certificate claims the pure
ε of one run, and that all runs together are private at the budget. No lower bound on the expected
loss of noise for T runs is proven, and the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from workbench.errors import InvalidRequest, NotCertified, NotProven
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ZERO, round_up
from workbench.families.noise.expected_loss import make_certificate_loss
from workbench.families.noise.problem import NoiseProblem
from workbench.families.noise.request import NoiseRequest
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.models.noise.repeated_noise import (
    ComposedDelta,
    log_slope,
    noise_masses,
    optimise_losses,
)
from workbench.models.noise.repeated_wide_noise import RepeatedWideNoise, published_shapes
from workbench.models.oracles.line_noise import POWERS
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.many_runs import format_unproven_note
from workbench.pipeline.problem import Repaired
from workbench.pipeline.routes import Answer, Route, applies_always
from workbench.pipeline.solve import design_problem
from workbench.privacy.audit import audit
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.composition import ComposedClaim, bound_composed_delta
from workbench.privacy.repair import bound_inverse_exponential, build_staircase_law
from workbench.questions.unbounded_noise import IntegerNoise
from workbench.solvers.arrays import Vector

_MASS_BITS = 80  # Masses are rounded to this many bits.
_RATIO_BITS = 40  # The ratio of a geometric tail is rounded down to this many bits.
_MAX_SHRINKINGS = 12  # A candidate that is not private after this many reductions is dropped.
_MAX_DECREASE = 0.05  # One reduction of the steepness is at most by this share.
# A reduction is the Newton step times this factor, and more in each further reduction, since the
# slope is an estimate and the step may fall short.
_NEWTON_FACTOR = 1.02
_MIN_DECREASE = 1e-9  # A reduction is at least by this share, so that each one changes the noise.
_RESOLVED_PRIVACY_LOSS = 12  # Sums of privacy losses are resolved up to ε plus this.
_MIN_SECONDS = 0.1  # The design of one run gets this time even if the deadline has passed.
_EPSILON_MARGIN = Fraction(1, 10**12)  # An equal part of ε is lowered by this share.
_DELTA_MARGIN = Fraction(1, 10**12)  # An equal part of δ is lowered by this share.


class ProvenNoise(NamedTuple):
    """Noise of one run whose composition is proven.

    Attributes:
        mechanism: the noise.
        delta_bound: a proven upper bound on the δ of all runs at the requested ε.
    """

    mechanism: AdditiveIntegerNoise
    delta_bound: Fraction


@dataclass(frozen=True)
class _Shape:
    """Noise whose steepness can be varied.

    Attributes:
        make_law: maps a factor in (0, 1] of the largest steepness to (masses of |η| = 0, 1, ...,
            privacy loss by which the last of these masses fall every D).
        delta_slope: the slope of log δ_T in the logarithm of the steepness, about; δ_T is the δ of
            all T runs at the requested ε.
    """

    make_law: Callable[[float], tuple[Vector, float]]
    delta_slope: float


class RunsProblem(NoiseProblem):
    """Answer a request for several runs.

    Args:
        request: the request for noise on all integers.
    """

    routes = (
        Route(
            "composed noise",
            applies_always,
            answer=lambda problem, programs, start: problem.answer_by_composition(),
        ),
    )

    def __init__(self, request: NoiseRequest) -> None:
        super().__init__(request)
        assert isinstance(request.question, IntegerNoise)
        self.question = request.question
        self.one_run_claim: Claim | None = None
        self.is_stopped = False

    @property
    def claim(self) -> Claim:
        """Return the claim for one run; before noise is found, the claim of the request."""
        return super().claim if self.one_run_claim is None else self.one_run_claim

    def answer_by_composition(self) -> Answer:
        """Return the candidate of least loss whose runs are proven private at the budget.

        Raises:
            NotCertified: no candidate could be made private.
        """
        request = self.request
        candidates = self._list_proven_candidates()
        if not candidates:
            raise NotCertified(
                "The privacy losses could not be reduced until the composition is within delta."
            )
        mechanism, delta_bound = min(
            candidates, key=lambda candidate: self.compute_loss(candidate.mechanism)
        )
        pure_epsilon = audit(mechanism, 0).pure_epsilon
        share = Fraction(1, request.aim.runs)
        claim = Claim("dp", share * request.claim.epsilon, share * request.claim.delta)
        if math.isfinite(pure_epsilon):
            claim = Claim("pure", Fraction(pure_epsilon))
        self.one_run_claim = claim
        composition = {
            "runs": request.aim.runs,
            "epsilon": float(request.claim.epsilon),
            "delta": round_up(delta_bound),
        }
        details = {"composed": composition, **self._timing_details()}
        notes = self._describe_claims(math.isfinite(pure_epsilon))
        return Answer(mechanism, bound=None, notes=notes, details=details)

    def _list_proven_candidates(self) -> list[ProvenNoise]:
        """List candidates whose composition is proven to be private at the budget."""
        request = self.request
        reach = self.question.sensitivity
        power = POWERS[request.loss_name]
        # For D > 1 half of the time is left for the noise of sensitivity D.
        deadline = self.deadline if reach == 1 else self.deadline.rescale(0.5)
        losses = optimise_losses(
            request.aim.runs,
            float(request.claim.epsilon),
            float(request.claim.delta),
            loss=lambda k: k**power,
            should_stop=lambda: self._note_stop(deadline.has_passed),
        )
        candidates = []
        for shape in self._list_shapes(losses):
            noise = self._shrink_until_private(shape)
            if noise is not None:
                # The shapes come with rising loss, so the others are not needed.
                candidates.append(noise)
                break
        if reach > 1:
            candidates += self._list_staircases()
        return candidates + self._share_budget_equally()

    def _describe_claims(self, is_pure: bool) -> list[str]:
        """Return the notes of the report on the certificate, the bound and the time limit.

        Args:
            is_pure: whether the certificate claims the pure ε of one run.
        """
        request = self.request
        runs = request.aim.runs
        one_run = f"one run at 1/{runs} of the budget"
        if is_pure:
            one_run = "the pure epsilon of one run"
        epsilon = float(request.claim.epsilon)
        delta = float(request.claim.delta)
        notes = [
            f"Proven are {one_run}, and that {runs} runs are ({epsilon:g}, {delta:g})-"
            "private together, by convolution in integers.",
            format_unproven_note(runs),
        ]
        if self.is_stopped:
            limit = request.how.options.time_limit
            notes.append(
                f"The search stopped at its time limit of {limit:g} s; this is the best it had."
            )
        return notes

    def _note_stop(self, has_passed: bool) -> bool:
        """Remember whether a deadline stopped the search, and return whether it has passed."""
        self.is_stopped = self.is_stopped or has_passed
        return has_passed

    def repair(self, answer: Answer) -> Repaired:
        """Certify the mechanism as it is; it was proven private when it was found."""
        request = self.request
        mechanism = answer.mechanism
        composed_claim = ComposedClaim.for_mechanism(
            mechanism, request.aim.runs, request.claim.epsilon, request.claim.delta
        )
        loss = make_certificate_loss(mechanism, request)
        certificate = Certificate(mechanism, self.claim, objective=loss, composed=composed_claim)
        return mechanism, certificate, []

    def require_proof(self, design: Design) -> Design:
        """Return the design as it is; it is not claimed to be optimal."""
        return design

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """Return the verdict that no closed form is known for many runs."""
        return OracleVerdict.without_formula("no closed form is known for many runs")

    # Candidates.

    def _list_shapes(self, losses: Vector) -> Iterator[_Shape]:
        """List shapes of noise, the shape with the smallest expected loss first.

        Args:
            losses: the privacy losses of the best noise for D = 1. Shape (n,).
        """
        request = self.request
        reach = self.question.sensitivity
        epsilon = float(request.claim.epsilon)
        if reach == 1:
            delta_function = ComposedDelta(
                request.aim.runs, epsilon, reach=epsilon + _RESOLVED_PRIVACY_LOSS
            )

            def make_scaled_law(share: float) -> tuple[Vector, float]:
                """Return the masses with this share of the privacy losses, and the last loss."""
                masses, _ = noise_masses(losses * share)
                return masses[: losses.size], float(losses[-1] * share)

            delta_slope = log_slope(lambda factor: delta_function(losses * factor))
            yield _Shape(make_scaled_law, delta_slope)
            return
        power = POWERS[request.loss_name]
        noises = []
        for shape in (_stretch_losses(losses, reach), *published_shapes(reach).values()):
            delta = float(request.claim.delta)
            noises.append(
                RepeatedWideNoise(request.aim.runs, epsilon, delta, sensitivity=reach, shape=shape)
            )
        for noise in sorted(
            noises, key=lambda noise: noise.expected_loss(lambda eta: np.abs(eta) ** power)
        ):

            def make_law(share: float, noise: RepeatedWideNoise = noise) -> tuple[Vector, float]:
                """Return the masses at a share of the largest steepness, and the last privacy loss.

                The argument `noise` keeps the noise of this round of the loop.
                """
                exponents = noise.exponents(share * noise.max_steepness)
                return np.exp(-exponents), float(exponents[-1] - exponents[-1 - reach])

            yield _Shape(make_law, log_slope(noise.composed_delta, noise.max_steepness))

    def _list_staircases(self) -> list[ProvenNoise]:
        """List the staircases at ε/T, whose largest privacy losses add up to ε."""
        question = self.question
        reach = question.sensitivity
        ratio = bound_inverse_exponential(self.request.claim.epsilon / self.request.aim.runs)
        laws = (build_staircase_law(ratio, reach, inner) for inner in range(1, reach + 1))
        return [ProvenNoise(AdditiveIntegerNoise(question, law), ZERO) for law in laws]

    def _share_budget_equally(self) -> list[ProvenNoise]:
        """Design the noise of one run at slightly less than (ε/T, δ/T).

        The margin lets the composition be proven on its grid.

        Returns:
            The noise in a list; an empty list if it is not found or not proven.
        """
        request = self.request
        runs = request.aim.runs
        options = request.how.options
        seconds_left = self.deadline.remaining_seconds
        if seconds_left is not None:
            options = replace(options, time_limit=max(_MIN_SECONDS, seconds_left))
        values = {
            "runs": 1,
            "epsilon": request.claim.epsilon / runs * (1 - _EPSILON_MARGIN),
            "delta": request.claim.delta / runs * (1 - _DELTA_MARGIN),
            "options": options,
            "check": "certify",
        }
        try:
            single = design_problem(NoiseProblem(request.with_values(**values)))
        except NotProven as error:
            if error.design is None or error.interrupted:
                return []
            single = error.design
        except (InvalidRequest, NotCertified):
            return []
        delta_bound = bound_composed_delta(
            single.mechanism, runs, request.claim.epsilon, request.claim.delta
        )
        if delta_bound > request.claim.delta:
            return []
        return [ProvenNoise(single.mechanism, delta_bound)]

    def _shrink_until_private(self, shape: _Shape) -> ProvenNoise | None:
        """Lower the steepness of a shape until its composition is proven to be within δ.

        Returns None if this does not succeed in time or in _MAX_SHRINKINGS steps.
        """
        request = self.request
        steepness = 1.0
        for reduction_count in range(_MAX_SHRINKINGS):
            if self.question.sensitivity > 1 and self._note_stop(self.deadline.has_passed):
                break
            noise = self._make_noise(*shape.make_law(steepness))
            delta_bound = bound_composed_delta(
                noise, request.aim.runs, request.claim.epsilon, request.claim.delta
            )
            if delta_bound <= request.claim.delta:
                return ProvenNoise(noise, delta_bound)
            log_excess = math.log(delta_bound / request.claim.delta)
            newton_step = log_excess / max(1.0, shape.delta_slope)
            decrease = (_NEWTON_FACTOR + reduction_count) * newton_step + _MIN_DECREASE
            steepness *= 1 - min(_MAX_DECREASE, decrease)
        return None

    def _make_noise(self, masses: Vector, tail_privacy_loss: float) -> AdditiveIntegerNoise:
        """Make symmetric noise with rational masses and geometric tails.

        Args:
            masses: the masses of |η| = 0, 1, .... Shape (n,).
            tail_privacy_loss: the privacy loss by which the tails fall every D.
        """
        question = self.question
        weights = [max(1, round(mass * 2.0**_MASS_BITS)) for mass in masses.tolist()]
        ratio_unit = 1 << _RATIO_BITS
        ratio = Fraction(math.floor(math.exp(-tail_privacy_loss) * ratio_unit), ratio_unit)
        # The masses of η = n - 1, ..., 1 stand for negative noise; that of 0 is not repeated.
        law = IntegerLaw(
            first=1 - len(weights),
            weights=[*weights[:0:-1], *weights],
            period=question.sensitivity,
            ratio=ratio,
        )
        return AdditiveIntegerNoise(question, law)


def _stretch_losses(losses: Vector, reach: int) -> Callable[[Vector], Vector]:
    """Stretch the negative log density of noise for D = 1 by D, linear in between and beyond.

    Args:
        losses: the privacy losses of the noise for D = 1: the falls of its log density from |η| to
            |η| + 1. Shape (n,).
        reach: the sensitivity D.

    Returns:
        The function from |η| to the negative log density, which is 0 at η = 0.
    """
    sums = np.concatenate([[0.0], np.cumsum(losses)])

    def stretched_exponents(eta: Vector) -> Vector:
        """Return the negative log density at the distances |η|, of any shape."""
        tail_exponents = np.maximum(0.0, eta / reach - losses.size) * losses[-1]
        return np.asarray(np.interp(eta / reach, np.arange(sums.size), sums) + tail_exponents)

    return stretched_exponents
