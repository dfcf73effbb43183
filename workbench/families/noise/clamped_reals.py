"""Clamp designed noise on the reals to a range, and compute the loss of the clamped answers.

Clamping is post-processing, so the privacy guarantee stays. The lower bound of the design does not:
it is a bound for noise that is not clamped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.errors import NotProven
from workbench.exact.numbers import ZERO
from workbench.exact.objects import Values
from workbench.families.noise.expected_loss import compute_noise_loss
from workbench.families.noise.problem import MAX_TINY_DELTA, NoiseProblem, NoiseSession
from workbench.families.noise.request import NoiseRequest
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.family import Session
from workbench.privacy.certificate import Certificate


def clamp_design(design: Design, request: NoiseRequest) -> Design:
    """Clamp a design of noise on the reals to the range of a request.

    Args:
        design: the design before it is clamped.
        request: the request with the range and the prior of the clamped answers.

    Returns:
        The design with the expected loss of the published answers and without a bound.
    """
    mechanism = replace(design.mechanism, question=request.question)
    loss = compute_noise_loss(mechanism, request)
    certificate = design.certificate
    if certificate is not None:
        record = {**certificate.record, "bound": None}
        certificate = Certificate(mechanism, certificate.claim, record=record)
    verdict = OracleVerdict.without_formula("no closed form is known for clamped noise.")
    note = (
        f"The noise is {_describe_optimality(design)} before it is clamped, with expected loss "
        f"{design.objective:.9g}. The stated loss is that of the published answers, "
        f"{_describe_answers(request)}. Other clamped mechanisms may have a smaller loss."
    )
    return replace(
        design,
        request=request,
        mechanism=mechanism,
        bound=None,
        objective=float(loss),
        certificate=certificate,
        oracle=verdict,
        words=(*design.words, note),
        details={**design.details, "loss": loss, "bound": None},
        route=f"{design.route}, then clamped",
    )


def _describe_optimality(design: Design) -> str:
    """Return a phrase for how good the noise is before it is clamped."""
    return "the best found" if design.details.get("stopped") else "optimal"


def _describe_answers(request: NoiseRequest) -> str:
    """Return a phrase for the answers over which the expected loss is taken."""
    if request.is_worst_case:
        return "for the worst answer"
    if request.aim.prior is None:
        return "for answers uniform on the range"
    part_count = len(request.aim.prior)
    return f"for answers uniform on each of {part_count} equal parts of the range"


class ClampedSession(Session):
    """Design noise on the reals at many points and clamp every design.

    Args:
        request: the request for clamped noise on the reals.
    """

    def __init__(self, request: Any) -> None:
        super().__init__(request)
        question = replace(request.question, clamp=None)
        unclamped_request = request.with_values(question=question, prior=None)
        self._unclamped_session = NoiseSession(unclamped_request, NoiseProblem)

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """Return the best noise at a point, clamped.

        At a tiny δ, also clamp the noise for δ = 0 and return the one with the smaller loss.

        Args:
            point: values of hot options. Default: those of the request.
            start: "hot" or "cold".

        Raises:
            NotProven: the search stopped early; with its design, clamped, if there is one.
        """
        request: Any = self.request.at_point(point or {})
        session = self._unclamped_session
        try:
            clamped_best = clamp_design(session.design(point, start=start), request)
            if request.has_several_bounds or not ZERO < request.claim.delta <= MAX_TINY_DELTA:
                return clamped_best
            pure_point = {**(point or {}), "delta": ZERO}
            pure = clamp_design(session.design(pure_point, start=start), request)
            return min(clamped_best, pure, key=lambda design: design.objective)
        except NotProven as error:
            if error.design is None:
                raise
            clamped_result = clamp_design(error.design, request)
            message = f"{error} Clamped, its expected loss is {clamped_result.objective:.9g}."
            raise NotProven(message, design=clamped_result, interrupted=error.interrupted) from None

    def close(self) -> None:
        """Release the resources of the solvers."""
        self._unclamped_session.close()
