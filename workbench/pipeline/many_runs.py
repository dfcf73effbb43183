"""Design one mechanism that is run T times under one budget (ε, δ).

δ = 0    T runs are ε-private exactly if one run is ε/T-private: the optimum of one run at ε/T
δ > 0    designs for one run at several budgets (ε', δ') are tried. The one with the smallest loss
         is returned, among those whose T runs are proven to be within the budget
         (`workbench.privacy.composition`). The budgets are on three paths, along which the loss
         falls. A search takes the last budget of each path that is within the whole budget:
             (ε', s δ/T) with ε' from ε/T on, for a few shares s
             (ε/T, s δ/T) with s from 1 on
             the privacy curve of the best integer noise for T runs
             (`workbench.models.noise.repeated_noise`), with its privacy losses multiplied by a
             factor, if the family designs within a curve

The certificate claims the budget of one run and the budget of all runs together. At δ = 0 the bound
of one run is the bound. For δ > 0 no bound over mechanisms for T runs is proven. A note says so.
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
# Below this ε/T, integer noise is too wide to be worth the search.
_MIN_CURVE_EPSILON = Fraction(1, 300)
# The losses of the privacy curve are scaled by factors between these.
_CURVE_FACTORS = (Fraction(1, 2), Fraction(6, 5))
# The equal part of ε for one run is reduced by this share, so that the grid of the composition
# proves it.
_EPSILON_REDUCTION = Fraction(1, 10**12)
# The equal part of δ for one run is reduced by this share.
_DELTA_REDUCTION = Fraction(1, 10**12)
# A path is halved at most this many times.
_MAX_HALVINGS = 10
# A path ends if the rest of it cannot improve the loss by this share.
_MIN_IMPROVEMENT = 5e-4
# A privacy curve has this many points.
_CURVE_POINTS = 16
# A privacy curve ends at the last loss of at least this mass.
_MIN_CURVE_MASS = 1e-8
Curve = Sequence[RationalPair]
WithinCurve = Callable[[Any, Claim], Design]


class ManyRuns(Session):
    """The session of a request for several runs.

    Args:
        request: The request, with runs > 1.
        within_curve: Function that designs one run within a privacy curve. None: there is none.
    """

    def __init__(self, request: Request, within_curve: WithinCurve | None = None) -> None:
        super().__init__(request)
        self._within_curve = within_curve

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """Return the best design found.

        Args:
            point: Values of hot options. None: the values of the request.
            start: "hot" or "cold".

        Raises:
            NotCertified: No design was proven to compose to the budget.
            WorkbenchError: As in the session of one run.
        """
        return _design_for_runs(self.request.at_point(point or {}), self._within_curve)


def _design_for_runs(request: Any, within_curve: WithinCurve | None) -> Design:
    """Search all paths for the best design of one run that composes to the budget."""
    runs = request.aim.runs
    share = request.claim.epsilon / runs
    search = _Search(request)
    single_run: Request = request.with_values(runs=1, epsilon=share, delta=ZERO)
    with request.family.open_session(single_run) as session:

        def design_split(epsilon: Fraction, delta_share: Fraction) -> Design:
            delta = delta_share * request.claim.delta / runs
            design: Design = session.design({"epsilon": epsilon, "delta": delta})
            return design

        search.try_design(design_split(share, ZERO))
        if request.claim.delta:
            equal_split = _design_at(
                partial(design_split, share * (1 - _EPSILON_REDUCTION)), 1 - _DELTA_REDUCTION
            )
            if equal_split is not None:
                search.try_design(equal_split)
            for delta_share in _DELTA_SHARES:
                path = partial(design_split, delta_share=delta_share)
                search.follow_path(path, share, request.claim.epsilon)
            max_share = min(_MAX_DELTA_SHARE, runs / request.claim.delta)
            search.follow_path(partial(design_split, share), ONE, max_share)
            if within_curve is not None and share >= _MIN_CURVE_EPSILON:
                _follow_curves(search, single_run, within_curve)
        best = search.best
        if best is None:
            raise NotCertified("No design of one run was proven to compose to the budget.")
    bound = best.bound
    if request.claim.delta:
        bound = None
    return _compose_design(request, best, bound, search)


def _follow_curves(search: _Search, single_run: Request, within_curve: WithinCurve) -> None:
    """Search the designs within the privacy curve of the best integer noise, with scaled losses."""
    request = search.request
    losses = optimise_losses(
        request.aim.runs,
        float(request.claim.epsilon),
        float(request.claim.delta),
        np.square,
        max_rounds=0,
    )

    def design_within(factor: Fraction) -> Design:
        curve = _make_privacy_curve(losses * float(factor))
        return within_curve(single_run, _curve_claim(curve))

    search.follow_path(design_within, *_CURVE_FACTORS)


class _Search:
    """Keep the best design of one run whose runs together are within the budget.

    Attributes:
        best: The design with the smallest loss.
        composed_delta: Proven δ of all its runs together.
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
        """Return whether all runs are proven to be within the budget, and keep the best design.

        Args:
            design: A design of one run.
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
        """Return an upper bound on the δ of all runs together."""
        runs = self.request.aim.runs
        epsilon = self.request.claim.epsilon
        claim = design.claim
        is_pure = claim.is_epsilon_delta and not claim.delta
        if is_pure and claim.epsilon * runs <= epsilon and design.private:
            # The largest privacy losses of the runs add up.
            return ZERO
        # This mechanism has the neighbours of the request.
        mechanism = self.request.family.uncertified_mechanism(design)
        return bound_composed_delta(mechanism, runs, epsilon, self.request.claim.delta)

    def follow_path(
        self, path: Callable[[Fraction], Design], low: Fraction, high: Fraction
    ) -> None:
        """Search a path of falling loss for its last design within the budget.

        The search ends if the rest of the path cannot improve the best loss by _MIN_IMPROVEMENT.

        Args:
            path: Function that returns the design at a point.
            low: The point of the largest loss.
            high: The point of the smallest loss.
        """
        if self._deadline.has_passed:
            self.is_stopped = True
            return
        if self._is_path_finished(*self._try_point(path, high), is_first=True):
            return
        if self._deadline.has_passed:
            self.is_stopped = True
            return
        if self._is_path_finished(*self._try_point(path, low), is_second=True):
            return
        for _ in range(_MAX_HALVINGS):
            middle = Fraction(math.sqrt(low * high)).limit_denominator(10**6)
            if not low < middle < high:
                return
            if self._deadline.has_passed:
                self.is_stopped = True
                return
            design, is_within = self._try_point(path, middle)
            if self._is_path_finished(design, is_within):
                return
            if is_within:
                low = middle
            else:
                high = middle

    def _try_point(
        self, path: Callable[[Fraction], Design], point: Fraction
    ) -> tuple[Design | None, bool]:
        """Return the design at a point of a path, and whether it is within the budget."""
        design = _design_at(path, point)
        is_within = design is not None and self.try_design(design)
        self._report(design, is_within)
        return design, is_within

    def _is_path_finished(
        self,
        design: Design | None,
        is_within: bool,
        *,
        is_first: bool = False,
        is_second: bool = False,
    ) -> bool:
        """Return whether the rest of a path cannot have a better design within the budget."""
        if (is_first and is_within) or (is_second and not is_within):
            return True
        if design is None or is_within or self.best is None:
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
    """Return the design at a point of a path, also if it is not proven optimal."""
    try:
        return path(point)
    except (NotProven, NotCertified) as error:
        if getattr(error, "interrupted", False):
            raise
        return getattr(error, "design", None)


def _make_privacy_curve(losses: Vector) -> Curve:
    """Return points of the privacy curve of integer noise.

    The curve ends at the last loss of at least _MIN_CURVE_MASS, or at the largest ε of a program.
    """
    density, _ = noise_masses(losses)
    p = np.concatenate([density[:0:-1], density])
    q = np.append(p[1:], 0.0)
    heavy_count = int((density > _MIN_CURVE_MASS).sum())
    end = min(losses[min(losses.size, heavy_count) - 1], MAX_STICK_EPSILON)
    points = []
    for epsilon in np.linspace(0.0, end, _CURVE_POINTS).tolist():
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


def _curve_claim(curve: Curve) -> Claim:
    """Return the claim of being (ε, δ)-private at every point of a curve."""
    notion = get_notion("curve")
    return Claim(notion, **read_budget(notion, {"curve": curve}))


def _compose_design(request: Any, best: Design, bound: float | None, search: _Search) -> Design:
    """Return the design of one run as the design of the request, with its composition."""
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
    parts = []
    for name, value in best.claim.values.items():
        if name != "curve":
            parts.append(f"{name} = {float(value):g}")
    budget = ", ".join(parts) or "several (epsilon, delta)"
    notes = [
        f"One run is certified: {best.claim.notion.name} at {budget}. The {runs} runs together are "
        f"certified to be ({float(request.claim.epsilon):g}, {delta:g})-private, by convolution in "
        "integers."
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
    """Return the certificate of one run with the claim on all runs together."""
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
