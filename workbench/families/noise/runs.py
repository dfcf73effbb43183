"""Noise on the integers that runs many times, under one budget (ε, δ) for all runs.

`workbench.models.noise.repeated_noise` finds the losses for D = 1 in floats; rounded to rational masses they are a
mechanism, whose T-fold composition is then bounded by convolution in integers (`workbench.privacy.composition`). Until
that bound is at most δ the losses shrink. Certified are the pure ε of one run, and that all runs are within the
budget. No bound on the loss over noise for T runs is proven, and the design says so.

Where neighbouring answers differ by up to D > 1 candidates are f(η) ~ exp(-s L(|η|)), L the log densities of the best
noise found for D = 1, drawn out D times and linear between, or those of published noise
(`workbench.models.noise.repeated_wide_noise`), s as large as the composition allows; and the staircase at ε/T. Of the
cheapest the composition is proven for every shift ±1..±D.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from workbench.errors import InvalidRequest, NotCertified, NotProven
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ZERO, round_up
from workbench.families.noise.problem import NoiseProblem, make_certificate_loss
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

Proven = tuple[AdditiveIntegerNoise, Fraction]
Steepened = tuple[
    Callable[[float], tuple[Vector, float]], float
]  # share -> (masses, loss every D); slope of ln δ_T

_BITS = 80  # of a mass
_TURNS = 12  # of shrinking
_LESS_EPSILON = Fraction(1, 10**12)  # Shares by which a run's equal part of the budget is lowered.
_LESS_DELTA = Fraction(1, 10**12)


class RunsProblem(NoiseProblem):
    """The problem of a request for several runs."""

    routes = (
        Route(
            "composed noise",
            applies_always,
            lambda problem, programs, start: problem.answer_by_composition(),
        ),
    )

    def __init__(self, request: NoiseRequest) -> None:
        super().__init__(request)
        assert isinstance(request.question, IntegerNoise)
        self.question = request.question
        self.one_run: Claim | None = None  # of the noise found
        self.stopped = False

    @property
    def claim(self) -> Claim:
        """The pure ε of one run, once noise is found; its share of the whole budget where it has none."""
        return super().claim if self.one_run is None else self.one_run

    def answer_by_composition(self) -> Answer:
        """Return the cheapest candidate whose runs are proven to be within the budget. Raises NotCertified."""
        request, deadline = self.request, self.deadline
        epsilon, delta, power = (
            float(request.claim.epsilon),
            float(request.claim.delta),
            POWERS[request.loss_name],
        )
        reach = self.question.sensitivity
        part = deadline if reach == 1 else deadline.rescale(0.5)  # the rest is for noise for D
        losses = optimise_losses(
            request.aim.runs,
            epsilon,
            delta,
            lambda k: k**power,
            should_stop=lambda: self._late(part.has_passed),
        )
        tried = (self._within(*each) for each in self._candidates(losses))
        best = next((pair for pair in tried if pair is not None), None)
        proven = (
            ([] if best is None else [best])
            + ([] if reach == 1 else self._staircases())
            + self._shared_equally()
        )
        if not proven:
            raise NotCertified(
                "The losses could not be shrunk until the composition is within delta."
            )
        mechanism, reached = min(proven, key=lambda pair: self.compute_loss(pair[0]))
        pure = audit(mechanism, 0).pure_epsilon
        share = Fraction(1, request.aim.runs)
        self.one_run = Claim("dp", share * request.claim.epsilon, share * request.claim.delta)
        if math.isfinite(pure):
            self.one_run = Claim("pure", Fraction(pure))
        one_run = (
            "the pure epsilon of one run"
            if math.isfinite(pure)
            else f"one run at 1/{request.aim.runs} of the budget"
        )
        composed = {"runs": request.aim.runs, "epsilon": epsilon, "delta": round_up(reached)}
        words = [
            f"Certified are {one_run}, and that {request.aim.runs} runs are ({epsilon:g}, {delta:g})-"
            "private together, by convolution in integers.",
            format_unproven_note(request.aim.runs),
        ]
        if self.stopped:
            limit = request.how.options.time_limit
            words.append(
                f"The search stopped at its time limit of {limit:g} s; this is the best it had."
            )
        return Answer(
            mechanism, None, notes=words, details={"composed": composed, **self._timing_details()}
        )

    def _late(self, passed: bool) -> bool:
        self.stopped = self.stopped or passed
        return passed

    def repair(self, answer: Answer) -> Repaired:
        """The mechanism as it is: it was proven when it was found."""
        request, mechanism = self.request, answer.mechanism
        composed = ComposedClaim.for_mechanism(
            mechanism, request.aim.runs, request.claim.epsilon, request.claim.delta
        )
        loss = make_certificate_loss(mechanism, request)
        certificate = Certificate(mechanism, self.claim, objective=loss, composed=composed)
        return mechanism, certificate, []

    def require_proof(self, design: Design) -> Design:
        """The design as it is: it is not claimed to be optimal."""
        return design

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """None is known."""
        return OracleVerdict.without_formula("no closed form is known for many runs")

    def _candidates(self, losses: Vector) -> Iterable[Steepened]:
        """The best first. losses: of the noise for D = 1."""
        request = self.request
        reach = self.question.sensitivity
        if reach == 1:
            floats = ComposedDelta(
                request.aim.runs, float(request.claim.epsilon), float(request.claim.epsilon) + 12
            )
            yield (
                lambda share: (
                    noise_masses(losses * share)[0][: losses.size],
                    float(losses[-1] * share),
                ),
                log_slope(lambda factor: floats(losses * factor)),
            )
            return
        sums = np.concatenate([[0.0], np.cumsum(losses)])

        def drawn_out(eta: Vector) -> Vector:
            beyond = np.maximum(0.0, eta / reach - losses.size) * losses[-1]
            return np.asarray(np.interp(eta / reach, np.arange(sums.size), sums) + beyond)

        noises = [
            RepeatedWideNoise(
                request.aim.runs,
                float(request.claim.epsilon),
                float(request.claim.delta),
                reach,
                shape,
            )
            for shape in (drawn_out, *published_shapes(reach).values())
        ]
        power = POWERS[request.loss_name]
        for noise in sorted(
            noises, key=lambda noise: noise.expected_loss(lambda eta: np.abs(eta) ** power)
        ):

            def law(share: float, noise: RepeatedWideNoise = noise) -> tuple[Vector, float]:
                exponents = noise.exponents(share * noise.max_steepness)
                return np.exp(-exponents), float(exponents[-1] - exponents[-1 - reach])

            yield law, log_slope(noise.composed_delta, noise.max_steepness)

    def _staircases(self) -> list[Proven]:
        """Pure noise at ε/T: the largest losses add up."""
        question = self.question
        ratio, reach = (
            bound_inverse_exponential(self.request.claim.epsilon / self.request.aim.runs),
            question.sensitivity,
        )
        laws = (build_staircase_law(ratio, reach, inner) for inner in range(1, reach + 1))
        return [(AdditiveIntegerNoise(question, law), ZERO) for law in laws]

    def _shared_equally(self) -> list[Proven]:
        """The best noise of one run at (ε/T, δ/T), a little less so that the grid of the composition proves it."""
        request = self.request
        epsilon = request.claim.epsilon / request.aim.runs * (1 - _LESS_EPSILON)
        delta = request.claim.delta / request.aim.runs * (1 - _LESS_DELTA)
        left = self.deadline.remaining_seconds
        options = (
            request.how.options
            if left is None
            else replace(request.how.options, time_limit=max(0.1, left))
        )
        try:
            single = design_problem(
                NoiseProblem(
                    request.with_values(
                        runs=1, epsilon=epsilon, delta=delta, options=options, check="certify"
                    )
                )
            )
        except NotProven as error:
            if error.design is None or error.interrupted:
                return []
            single = error.design
        except (InvalidRequest, NotCertified):
            return []
        reached = bound_composed_delta(
            single.mechanism, request.aim.runs, request.claim.epsilon, request.claim.delta
        )
        return [(single.mechanism, reached)] if reached <= request.claim.delta else []

    def _within(self, law: Callable[[float], tuple[Vector, float]], falls: float) -> Proven | None:
        """The first law of falling steepness, from 1 on, whose composition is proven to be within δ, and its δ_T.

        falls: about how fast log δ falls with the log of the steepness.
        """
        request, steepness = self.request, 1.0
        for turn in range(_TURNS):
            if self.question.sensitivity > 1 and self._late(self.deadline.has_passed):
                break
            noise = self._tailed(*law(steepness))
            reached = bound_composed_delta(
                noise, request.aim.runs, request.claim.epsilon, request.claim.delta
            )
            if reached <= request.claim.delta:
                return noise, reached
            excess = math.log(reached / request.claim.delta)
            steepness *= 1 - min(0.05, (1.02 + turn) * excess / max(1.0, falls) + 1e-9)
        return None

    def _tailed(self, side: Vector, loss: float) -> AdditiveIntegerNoise:
        """Noise of rational masses of |η| = 0, 1, ..., geometric from the last of them on: by a loss, every D."""
        question = self.question
        weights = [max(1, round(mass * 2.0**_BITS)) for mass in side.tolist()]
        ratio = Fraction(math.floor(math.exp(-loss) * 2**40), 2**40)
        law = IntegerLaw(1 - len(weights), [*weights[:0:-1], *weights], question.sensitivity, ratio)
        return AdditiveIntegerNoise(question, law)
