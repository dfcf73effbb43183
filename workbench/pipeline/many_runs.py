"""Design one mechanism that is run T times under one budget (ε, δ).

For δ = 0 the design is the optimum of one run at ε/T: T runs are ε-private exactly if one run is
ε/T-private.

For δ > 0, mechanisms for one run are designed at several budgets (ε', δ'). A budget is *within* the
budget of the request if the T runs of its design are proven (ε, δ)-private
(`workbench.privacy.composition`). The design with the smallest loss among those within is returned.

A *path* is a sequence of budgets for one run that get weaker, so that the loss falls along it. A
search finds the last budget of each path that is within. These paths are searched:

    (ε', s δ/T)    ε' from ε/T to ε, one path for each share s of _DELTA_SHARES
    (ε/T, s δ/T)   s from 1 on
    a curve        only if the family designs within a privacy curve: the curve of the best integer
                   noise for T runs (`workbench.models.noise.repeated_noise`), with all its privacy
                   losses multiplied by a factor of _CURVE_FACTORS

Each path is halved at the geometric mean of its ends until little can be gained.

The certificate claims the budget of one run and the budget of all runs together. For δ = 0 the
bound of the optimum of one run is also the bound for T runs. For δ > 0 no bound over mechanisms for
T runs is proven, and a note says so.
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

# Shares s of δ/T on the paths of increasing ε.
_DELTA_SHARES = (ZERO, Fraction(1, 4), Fraction(3, 4))
# Largest share s of δ/T on the path at ε/T.
_MAX_DELTA_SHARE = Fraction(16)
# Below this ε/T, integer noise has so many values that the path of curves is too slow.
_MIN_CURVE_EPSILON = Fraction(1, 300)
# The privacy losses of the privacy curve are multiplied by factors between these.
_CURVE_FACTORS = (Fraction(1, 2), Fraction(6, 5))
# One run at (ε/T, δ/T) is designed at budgets smaller by these shares. The composition rounds
# privacy losses up to a grid, and could not prove the exact equal parts.
_EPSILON_REDUCTION = Fraction(1, 10**12)
_DELTA_REDUCTION = Fraction(1, 10**12)
# The part of a path that is searched is halved at most this many times.
_MAX_HALVINGS = 10
# The search of a path ends if no budget left on it can reduce the best loss by this share.
_MIN_IMPROVEMENT = 5e-4
# A privacy curve has this many points.
_CURVE_POINTS = 16
# A privacy curve ends at the largest privacy loss of a noise value with at least this mass.
_MIN_CURVE_MASS = 1e-8
# The points (ε, δ) of a privacy curve.
Curve = Sequence[RationalPair]
# Takes a request for one run and a claim of the notion "curve", and returns the design.
WithinCurve = Callable[[Any, Claim], Design]


class ManyRuns(Session):
    """The session of a request for several runs.

    Args:
        request: The request, with runs > 1.
        within_curve: Function that designs one run within a privacy curve. None: the family has
            none, and this path is not searched.
    """

    def __init__(self, request: Request, within_curve: WithinCurve | None = None) -> None:
        super().__init__(request)
        self._within_curve = within_curve

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """Return the best design found.

        Args:
            point: Values of hot options: the options, such as ε and δ, that only change numbers of
                a model that is already built. None: the values of the request.
            start: "hot" or "cold".

        Raises:
            NotCertified: No design was proven to compose to the budget.
            WorkbenchError: As in the session of one run.
        """
        return _design_for_runs(self.request.at_point(point or {}), self._within_curve)


def _design_for_runs(request: Any, within_curve: WithinCurve | None) -> Design:
    """Search all paths for the best design of one run whose T runs are within the budget."""
    runs = request.aim.runs
    equal_epsilon = request.claim.epsilon / runs
    search = _Search(request)
    single_run: Request = request.with_values(runs=1, epsilon=equal_epsilon, delta=ZERO)
    with request.family.open_session(single_run) as session:

        def design_one_run(epsilon: Fraction, delta_share: Fraction) -> Design:
            """Return the design of one run at (epsilon, delta_share δ/T)."""
            delta = delta_share * request.claim.delta / runs
            design: Design = session.design({"epsilon": epsilon, "delta": delta})
            return design

        search.try_design(design_one_run(equal_epsilon, ZERO))
        if request.claim.delta:
            reduced_epsilon = equal_epsilon * (1 - _EPSILON_REDUCTION)
            equal_split = _design_at(partial(design_one_run, reduced_epsilon), 1 - _DELTA_REDUCTION)
            if equal_split is not None:
                search.try_design(equal_split)
            for delta_share in _DELTA_SHARES:
                path = partial(design_one_run, delta_share=delta_share)
                search.follow_path(path, equal_epsilon, request.claim.epsilon)
            max_share = min(_MAX_DELTA_SHARE, runs / request.claim.delta)  # δ' is at most 1.
            search.follow_path(partial(design_one_run, equal_epsilon), ONE, max_share)
            if within_curve is not None and equal_epsilon >= _MIN_CURVE_EPSILON:
                _follow_curves(search, single_run, within_curve)
        best = search.best
        if best is None:
            raise NotCertified("No design of one run was proven to compose to the budget.")
    bound = best.bound
    if request.claim.delta:
        bound = None
    return _compose_design(request, best, bound, search)


def _follow_curves(search: _Search, single_run: Request, within_curve: WithinCurve) -> None:
    """Search the path of privacy curves: the curve of the best integer noise, scaled by factors."""
    request = search.request
    # Without rounds, the best noise with which the optimisation would start is returned.
    privacy_losses = optimise_losses(
        request.aim.runs,
        float(request.claim.epsilon),
        float(request.claim.delta),
        np.square,
        max_rounds=0,
    )

    def design_within(factor: Fraction) -> Design:
        """Design one run within the curve of the losses times a factor."""
        curve = _make_privacy_curve(privacy_losses * float(factor))
        return within_curve(single_run, _make_curve_claim(curve))

    search.follow_path(design_within, *_CURVE_FACTORS)


class _Search:
    """Search paths for the best design of one run whose T runs are within the budget.

    Attributes:
        request: The request for T runs.
        best: The design of one run with the smallest loss among those within. None: none so far.
        composed_delta: Proven δ of the T runs of `best` together.
        is_stopped: Whether the time limit was reached.
    """

    def __init__(self, request: Any) -> None:
        self.request = request
        self.best: Design | None = None
        self.composed_delta = ONE
        self.is_stopped = False
        self._deadline = Deadline(request.how.options.time_limit)
        self._design_count = 0

    def try_design(self, design: Design) -> bool:
        """Keep a design of one run as the best if it is within the budget and has a smaller loss.

        Returns:
            Whether the design is within the budget.
        """
        delta = self.request.claim.delta
        composed_delta = self._bound_delta(design)
        if composed_delta > delta:
            return False
        if self.best is None or design.objective < self.best.objective:
            self.best = design
            self.composed_delta = composed_delta
        return True

    def _bound_delta(self, design: Design) -> Fraction:
        """Return an upper bound on the δ of all runs of a design together, at ε of the request."""
        runs = self.request.aim.runs
        epsilon = self.request.claim.epsilon
        claim = design.claim
        is_pure = claim.is_epsilon_delta and not claim.delta
        if is_pure and claim.epsilon * runs <= epsilon and design.private:
            # The largest privacy losses of the runs add up to at most ε.
            return ZERO
        # `design.mechanism` may group answers or outputs. This mechanism has the neighbours of the
        # request.
        mechanism = self.request.family.uncertified_mechanism(design)
        return bound_composed_delta(mechanism, runs, epsilon, self.request.claim.delta)

    def follow_path(
        self, path: Callable[[Fraction], Design], low: Fraction, high: Fraction
    ) -> None:
        """Search a path for its last point within the budget: try both ends, then halve.

        Args:
            path: Function that returns the design at a point. The loss falls as the point grows.
            low: First point, of the largest loss.
            high: Last point, of the smallest loss.
        """
        if self._is_out_of_time():
            return
        design, is_within = self._try_point(path, high)
        if is_within or self._cannot_improve(design):
            return
        if self._is_out_of_time():
            return
        _, is_within = self._try_point(path, low)
        if not is_within:
            return  # No point is within the budget.
        for _ in range(_MAX_HALVINGS):
            # Budgets and factors range over orders of magnitude, so the mean is geometric.
            middle = Fraction(math.sqrt(low * high)).limit_denominator(10**6)
            if not low < middle < high or self._is_out_of_time():
                return
            design, is_within = self._try_point(path, middle)
            if is_within:
                low = middle
            elif self._cannot_improve(design):
                return
            else:
                high = middle

    def _is_out_of_time(self) -> bool:
        """Return whether the time limit has passed, and remember it."""
        self.is_stopped = self.is_stopped or self._deadline.has_passed
        return self.is_stopped

    def _try_point(
        self, path: Callable[[Fraction], Design], point: Fraction
    ) -> tuple[Design | None, bool]:
        """Return the design at a point of a path (None: it failed), and whether it is within."""
        design = _design_at(path, point)
        is_within = design is not None and self.try_design(design)
        self._report(design, is_within)
        return design, is_within

    def _cannot_improve(self, design: Design | None) -> bool:
        """Return whether no earlier point of a path can improve the best loss noticeably.

        Earlier points have larger losses than `design`, which is not within the budget.
        """
        if design is None or self.best is None:
            return False
        return design.objective >= self.best.objective * (1 - _MIN_IMPROVEMENT)

    def _report(self, design: Design | None, is_within: bool) -> None:
        """Report the last design and the best one to the user."""
        report = self.request.how.progress
        self._design_count += 1
        if report is None or self.best is None:
            return
        result = "no design"
        if design is not None:
            verdict = "within the budget" if is_within else "not within the budget"
            result = f"{design.objective:.6g}, {verdict}"
        report(f"program {self._design_count}: {result}; best {self.best.objective:.6g}")


def _design_at(path: Callable[[Fraction], Design], point: Fraction) -> Design | None:
    """Return the design at a point of a path, also if it is not proven optimal. None: it failed."""
    try:
        return path(point)
    except (NotProven, NotCertified) as error:
        if getattr(error, "interrupted", False):
            raise
        return getattr(error, "design", None)


def _make_privacy_curve(privacy_losses: Vector) -> Curve:
    """Return points (ε, δ) of the privacy curve of even integer noise with sensitivity 1.

    Args:
        privacy_losses: ln(f(k) / f(k + 1)) for the noise values k = 0, 1, ...

    Returns:
        Points with ε from 0 to the last privacy loss with at least _MIN_CURVE_MASS, or to the
        largest ε of a program.
    """
    half_law, _ = noise_masses(privacy_losses)
    # p is the law of the noise, and q is the same law shifted by 1. The slice [:0:-1] has the
    # masses of ..., 2, 1, so that 0 occurs once.
    p = np.concatenate([half_law[:0:-1], half_law])
    q = np.append(p[1:], 0.0)
    heavy_count = int((half_law > _MIN_CURVE_MASS).sum())
    last_loss = privacy_losses[min(privacy_losses.size, heavy_count) - 1]
    max_epsilon = min(last_loss, MAX_STICK_EPSILON)
    points = []
    for epsilon in np.linspace(0.0, max_epsilon, _CURVE_POINTS).tolist():
        # Short fractions are close enough, and exact arithmetic with them is quick.
        rational = Fraction(epsilon).limit_denominator(10**9)
        stick = float(np.maximum(p - math.exp(float(rational)) * q, 0.0).sum())
        points.append((rational, Fraction(min(1.0, stick)).limit_denominator(10**15)))
    return points


def format_unproven_note(runs: int) -> str:
    """Return the sentence that no bound is proven over all designs for several runs.

    Args:
        runs: Number of runs.
    """
    return f"It is the best design found. No bound is proven over all designs for {runs} runs."


def _make_curve_claim(curve: Curve) -> Claim:
    """Return the claim of being (ε, δ)-private at every point of a curve."""
    notion = get_notion("curve")
    return Claim(notion, **read_budget(notion, {"curve": curve}))


def _compose_design(request: Any, best: Design, bound: float | None, search: _Search) -> Design:
    """Return the best design of one run as the design of the request for T runs.

    Args:
        request: The request for T runs.
        best: The design of one run.
        bound: Lower bound on the loss of every mechanism for T runs. None: nothing is proven.
        search: The finished search.
    """
    delta = float(request.claim.delta)
    runs = request.aim.runs
    composed = {
        "runs": runs,
        "epsilon": float(request.claim.epsilon),
        "delta": round_up(search.composed_delta),
    }
    certificate = None
    if best.certificate is not None:
        certificate = _add_composition(best.certificate, request, bound)
    budget_texts = []
    for name, value in best.claim.values.items():
        if name != "curve":
            budget_texts.append(f"{name} = {float(value):g}")
    budget = ", ".join(budget_texts) or "several (epsilon, delta)"
    one_run = f"{best.claim.notion.name} at {budget}"
    all_runs = f"({float(request.claim.epsilon):g}, {delta:g})-private, by convolution in integers."
    if certificate is not None:
        notes = [
            f"One run is certified: {one_run}. "
            f"The {runs} runs together are certified to be {all_runs}"
        ]
    else:
        notes = [
            f"One run is designed for {one_run}, without a certificate. "
            f"The {runs} runs together are proven to be {all_runs}"
        ]
    if request.claim.delta:
        notes.append(format_unproven_note(runs))
    if search.is_stopped:
        notes.append("The search stopped at its time limit. This is the best design until then.")
    design_request = request
    if best.question != request.question:
        # The family chose outputs, which are part of the question.
        design_request = best.request.with_values(runs=runs, claim=request.claim)
    return replace(
        best,
        request=design_request,
        bound=bound,
        oracle=OracleVerdict.without_formula("no closed form is known for many runs"),
        words=(*best.words, *notes),
        certificate=certificate,
        pattern_optimum=None,
        details={**best.details, "composed": composed},
        route=f"{best.route} for one run, composed",
    )


def _add_composition(certificate: Certificate, request: Any, bound: float | None) -> Certificate:
    """Return the certificate of one run with a further claim: the budget of all runs together."""
    mechanism = certificate.privacy.mechanism
    return Certificate(
        mechanism,
        certificate.claim,
        objective=certificate.objective,
        bias=certificate.bias,
        record={**certificate.record, "bound": bound},
        audited=certificate.privacy,
        composed=ComposedClaim.for_mechanism(
            mechanism, request.aim.runs, request.claim.epsilon, request.claim.delta
        ),
    )
