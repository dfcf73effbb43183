"""The least-squares unbiased label randomizer: the cone program of `models.unbiased`, made exact on its intervals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from models.unbiased_levels import Optimum, optimum
from solvers.solution import Termination
from workbench.errors import NotProven
from workbench.families.design import Design, OracleVerdict
from workbench.families.infeasible_channel import no_channel
from workbench.families.labels.certify import UNBIASED, audited, certified, check_size, shortfall
from workbench.families.labels.request import LabelRequest
from workbench.families.labels.unbiased_channel import exact_channel
from workbench.families.outcome import translated_errors
from workbench.mechanisms.label_randomizers.label_channel import LabelChannel
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.label_randomizers.randomized_response import odds_below

__all__ = ["best_unbiased"]

_ENOUGH = 1e-7  # relative gap of what counts as an optimum
_OUTPUTS = 3  # for every label, about


def best_unbiased(request: LabelRequest) -> Design:
    """The optimum over all real outputs, to a relative gap of 1e-7 (1e-8 or less as a rule).

    request.progress is told a line for every program. Raises InvalidRequest, NotProven, NotCertified.
    """
    question = request.question
    y, p = question.values, question.prior
    if request.certified:
        check_size(question.k, _OUTPUTS * question.k, None, UNBIASED)
    odds, _ = odds_below(request.epsilon)
    with translated_errors():
        answer = optimum(y, p, float(odds) - 1, request.solver, request.options,
                        progress=request.progress or (lambda line: None))  # fmt: skip
    if not isinstance(answer, Optimum):
        no_channel(answer, None, trivial="randomized response with stretched outputs is private and unbiased")
    mechanism, reached = _exact(question, request, odds, answer)
    certificate = certified(mechanism, request, unbiased=True)
    privacy = certificate.deciding if certificate is not None else audited(mechanism.channel, request)
    gap = (reached - answer.bound) / max(reached, 1e-300)
    solution = answer.solution
    if gap <= _ENOUGH and solution.termination is not Termination.OPTIMAL:  # decided by the exact channel and the bound
        solution = replace(solution, termination=Termination.OPTIMAL)
    words = (*shortfall(privacy, request), "Every mass is an exact rational, with E[o|y] = y exactly.")
    reason = "no closed form is known; the bound prices all sets of labels and all real outputs."
    design = Design(
        request, mechanism, reached, min(answer.bound, reached), request.claim, OracleVerdict.none(reason),
        solution, words, privacy, certificate, None, "exact masses on intervals of labels",
    )  # fmt: skip
    if gap > _ENOUGH:
        raise NotProven(
            f"The program ended with the optimum between {answer.bound:.9g} and {reached:.9g}.",
            incumbent=reached, bound=answer.bound, design=design,
        )  # fmt: skip
    return design


def _exact(question: Labels, request: LabelRequest, odds: Fraction, answer: Optimum) -> tuple[LabelChannel, float]:
    """The exact channel and its loss: of the thinned point, or of that on more sets where it is too far off.

    Raises NotProven.
    """
    best: tuple[LabelChannel, float] | None = None
    point: Optimum | None = answer
    while point is not None and (best is None or best[1] - answer.bound > _ENOUGH * best[1]):
        try:
            outputs, channel = exact_channel(
                question.values, question.prior, odds, point.sets, point.t, point.s, point.objective
            )
        except ArithmeticError as error:
            refused = error
        else:
            mechanism = LabelChannel(question, outputs, channel)
            reached = mechanism.loss(request.named_loss)
            best = (mechanism, reached) if best is None or reached < best[1] else best
        point = point.wider
    if best is None:
        raise NotProven(f"The program ended, but {refused}.", bound=answer.bound)
    return best
