"""One mechanism for T runs under one budget (ε, δ), for families whose designs of one run are programs in (ε, δ).

δ = 0    T runs are ε-private exactly where one run is ε/T-private: the one-run optimum at ε/T
δ > 0    the cheapest of the one-run optima that are proven to compose to the budget (`workbench.privacy.composition`),
         each at about the end of a path of falling loss:
             (ε', s δ/T), ε' from ε/T on, for a few shares s              (ε/T, s δ/T), s from 1 on
             the curve of the best integer noise for as many runs (`workbench.models.noise.repeated_noise`), its losses
             stretched, where the family designs within a curve

Certified are that budget of one run, and the whole one of all runs. At δ = 0 the one-run bound is the bound. With δ > 0
no bound over mechanisms for T runs is proven, and the design says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from workbench.errors import NotCertified, NotProven
from workbench.exact.numbers import ONE, ZERO, RationalPair, round_up
from workbench.models.noise.repeated_noise import noise_masses, optimise_losses
from workbench.notions import get_notion
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.family import Session, Values
from workbench.pipeline.request import Request
from workbench.pipeline.requirements import MAX_STICK_EPSILON
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim, read_budget
from workbench.privacy.composition import ComposedClaim, bound_composed_delta
from workbench.solvers.arrays import Vector
from workbench.solvers.search import Deadline

_SHARES = (ZERO, Fraction(1, 4), Fraction(3, 4))  # s
_MOST = Fraction(16)  # s at ε/T, from 1 on
_NARROW = Fraction(1, 300)  # ε/T below which integer noise is too wide to be worth the search
_STRETCH = (Fraction(1, 2), Fraction(6, 5))  # factors of losses
_LESS_EPSILON = Fraction(1, 10**12)  # Shares by which a run's equal part of the budget is lowered.
_LESS_DELTA = Fraction(1, 10**12)
_HALVINGS, _CLOSE = 10, 5e-4  # of a path; of its loss, where it is as good as ended
_ON_CURVE, _LIGHT = 16, 1e-8  # points, and the mass of the last loss on it
Curve = Sequence[RationalPair]
WithinCurve = Callable[[Any, Claim], Design]


class ManyRuns(Session):
    """The session of a request with runs > 1. within_curve: the family's design of one run within a privacy curve."""

    def __init__(self, request: Request, within_curve: WithinCurve | None = None) -> None:
        super().__init__(request)
        self._within_curve = within_curve

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """The best design found. Raises as a session of one run, and NotCertified."""
        return _design_for_runs(self.request.at_point(point or {}), self._within_curve)


def _design_for_runs(request: Any, within_curve: WithinCurve | None) -> Design:
    share = request.claim.epsilon / request.aim.runs
    search = _Search(request)
    run: Request = request.with_values(runs=1, epsilon=share, delta=ZERO)
    with request.family.open_session(run) as session:

        def split(epsilon: Fraction, part: Fraction) -> Design:
            design: Design = session.design(
                {"epsilon": epsilon, "delta": part * request.claim.delta / request.aim.runs}
            )
            return design

        search.holds(split(share, ZERO))
        if request.claim.delta:
            # every run takes an equal part of the budget, a little less so that the composition's grid proves it
            equal = _design_at(
                lambda part: split(share * (1 - _LESS_EPSILON), part), 1 - _LESS_DELTA
            )
            if equal is not None:
                search.holds(equal)
            for part in _SHARES:
                search.along(partial(split, part=part), share, request.claim.epsilon)
            search.along(
                lambda part: split(share, part),
                ONE,
                min(_MOST, request.aim.runs / request.claim.delta),
            )
            if within_curve is not None and share >= _NARROW:
                losses = optimise_losses(
                    request.aim.runs,
                    float(request.claim.epsilon),
                    float(request.claim.delta),
                    np.square,
                    max_rounds=0,
                )
                search.along(
                    lambda factor: within_curve(
                        run, _curve_claim(_make_privacy_curve(losses * float(factor)))
                    ),
                    *_STRETCH,
                )
        best = search.best
        if best is None:
            raise NotCertified("No design of one run was proven to compose to the budget.")
    return _compose_design(request, best, None if request.claim.delta else best.bound, search)


class _Search:
    """best: the cheapest design within the budget; reached: its δ of all runs."""

    def __init__(self, request: Any) -> None:
        self.request, self.deadline = request, Deadline(request.how.options.time_limit)
        self.best: Design | None = None
        self.reached, self.stopped, self.count = ONE, False, 0

    def holds(self, design: Design) -> bool:
        """Whether T runs are proven to be within the budget; the cheapest design is kept."""
        runs, epsilon, delta = (
            self.request.aim.runs,
            self.request.claim.epsilon,
            self.request.claim.delta,
        )
        claim = design.claim
        if (
            claim.is_epsilon_delta
            and not claim.delta
            and claim.epsilon * runs <= epsilon
            and design.private
        ):
            reached = ZERO  # the largest losses add up
        else:
            mechanism = self.request.family.uncertified_mechanism(
                design
            )  # with the neighbours that are asked for
            reached = bound_composed_delta(mechanism, runs, epsilon, delta)
        if reached > delta:
            return False
        if self.best is None or design.objective < self.best.objective:
            self.best, self.reached = design, reached
        return True

    def along(self, path: Callable[[Fraction], Design], low: Fraction, high: Fraction) -> None:
        """From the low end of a path of falling loss to about the last design within the budget. Ended where what is
        left of the path, whose loss is no less than at its high end, is not cheaper than the best by a share."""
        for turn in range(_HALVINGS + 2):
            between = Fraction(math.sqrt(low * high)).limit_denominator(10**6)
            point = (high, low, between)[min(turn, 2)]
            if turn > 1 and not low < point < high:
                return
            if self.deadline.has_passed:
                self.stopped = True
                return
            design = _design_at(path, point)
            within = design is not None and self.holds(design)
            self._tell(design, within)
            least = None if self.best is None else self.best.objective * (1 - _CLOSE)
            if (turn == 0 and within) or (turn == 1 and not within):
                return
            if (
                design is not None
                and not within
                and least is not None
                and design.objective >= least
            ):
                return
            if turn > 1:
                low, high = (point, high) if within else (low, point)

    def _tell(self, design: Design | None, within: bool) -> None:
        tell = self.request.how.progress
        self.count += 1
        if tell is None or self.best is None:
            return
        result = "no design"
        if design is not None:
            result = f"{design.objective:.6g}, {'' if within else 'not '}within the budget"
        tell(f"program {self.count}: {result}; best {self.best.objective:.6g}")


def _design_at(path: Callable[[Fraction], Design], point: Fraction) -> Design | None:
    """The design at a point; one that is not proven optimal is one all the same."""
    try:
        return path(point)
    except (NotProven, NotCertified) as error:
        if getattr(error, "interrupted", False):
            raise
        return getattr(error, "design", None)


def _make_privacy_curve(losses: Vector) -> Curve:
    """Points of the privacy curve of integer noise, up to its largest loss that matters, or that programs take."""
    density, _ = noise_masses(losses)
    p = np.concatenate([density[:0:-1], density])
    q = np.append(p[1:], 0.0)
    end = min(losses[min(losses.size, int((density > _LIGHT).sum())) - 1], MAX_STICK_EPSILON)
    points = [
        Fraction(epsilon).limit_denominator(10**9)
        for epsilon in np.linspace(0.0, end, _ON_CURVE).tolist()
    ]
    sticks = [float(np.maximum(p - math.exp(float(epsilon)) * q, 0.0).sum()) for epsilon in points]
    return [
        (e, Fraction(min(1.0, stick)).limit_denominator(10**15))
        for e, stick in zip(points, sticks, strict=True)
    ]


def format_unproven_note(runs: int) -> str:
    """Return the sentence that says that no bound is proven over designs for `runs` runs."""
    return f"It is the best design found. No bound is proven over all designs for {runs} runs."


def _curve_claim(curve: Curve) -> Claim:
    """Return the claim of being (ε, δ)-private at every point of a curve."""
    measure = get_notion("curve")
    return Claim(measure, **read_budget(measure, {"curve": curve}))


def _compose_design(request: Any, best: Design, bound: float | None, search: _Search) -> Design:
    """The design of one run as that of the request, with its composition."""
    delta, runs = float(request.claim.delta), request.aim.runs
    composed = {
        "runs": runs,
        "epsilon": float(request.claim.epsilon),
        "delta": round_up(search.reached),
    }
    certificate = None
    if best.certificate is not None:
        old = best.certificate
        mechanism = old.privacy.mechanism
        certificate = Certificate(
            mechanism,
            old.claim,
            objective=old.objective,
            bias=old.bias,
            record={**old.record, "bound": bound},
            audited=old.privacy,
            composed=ComposedClaim.for_mechanism(
                mechanism, runs, request.claim.epsilon, request.claim.delta
            ),
        )
    budget = ", ".join(
        f"{name} = {float(value):g}" for name, value in best.claim.values.items() if name != "curve"
    )
    words = [
        f"Certified are one run, {best.claim.notion.name} at {budget or 'several (epsilon, delta)'}, and that {runs} "
        f"runs are ({float(request.claim.epsilon):g}, {delta:g})-private together, by convolution in integers."
    ]
    if request.claim.delta:
        words.append(format_unproven_note(runs))
    if search.stopped:
        words.append("The search stopped at its time limit; this is the best it had.")
    reason, answered = "no closed form is known for many runs", request
    if best.question != request.question:  # outputs were chosen
        answered = best.request.with_values(runs=runs, claim=request.claim)
    return replace(
        best,
        request=answered,
        bound=bound,
        oracle=OracleVerdict.without_formula(reason),
        words=(*best.words, *words),
        certificate=certificate,
        pattern_optimum=None,
        details={**best.details, "composed": composed},
        route=f"{best.route} for one run, composed",
    )
