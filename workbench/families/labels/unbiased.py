"""The least-squares unbiased label randomizer: the cone program of `models.unbiased`, made exact on its intervals."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from models.unbiased_levels import Optimum, interior_optimum, optimum
from solvers.solution import Termination
from workbench.errors import NotProven
from workbench.families.design import Design, OracleVerdict
from workbench.families.infeasible_channel import no_channel
from workbench.families.labels.certify import UNBIASED, audited, certified, shortfall
from workbench.families.labels.relation import check_size
from workbench.families.labels.request import LabelRequest
from workbench.families.labels.unbiased_channel import exact_channel
from workbench.families.labels.unbiased_mixtures import Kept
from workbench.families.outcome import translated_errors
from workbench.mechanisms.label_randomizers.label_channel import LabelChannel
from workbench.mechanisms.label_randomizers.randomized_response import odds_below

__all__ = ["best_unbiased"]

_ENOUGH = 1e-7  # relative gap of what counts as an optimum
_OUTPUTS = 3  # for every label, about
_SHARES = (1e-9, 1e-11)  # of the prior, of the labels that are left out, tried in turn
_STOPPED = (Termination.TIME_LIMIT, Termination.ITERATION_LIMIT, Termination.INTERRUPTED)


@dataclass(frozen=True)
class _Exact:
    """An exact channel with its loss, and the optimum whose bound it is beside."""

    mechanism: LabelChannel
    loss: float
    optimum: Optimum

    @property
    def gap(self) -> float:
        """Relative."""
        return (self.loss - self.optimum.bound) / max(self.loss, 1e-300)


def best_unbiased(request: LabelRequest) -> Design:
    """The optimum over all real outputs, to a relative gap of 1e-7 (1e-8 or less as a rule).

    request.progress is told a line for every program. Raises InvalidRequest, NotProven, NotCertified.
    """
    question = request.question
    if request.certified:
        check_size(question.k, _OUTPUTS * question.k, None, UNBIASED)
    odds, _ = odds_below(request.claim.epsilon)
    best = _solved(request, odds)
    mechanism, reached, solution = best.mechanism, best.loss, best.optimum.solution
    bound = max(0.0, min(best.optimum.bound, reached))
    if request.certified and question.k * mechanism.outputs.size > UNBIASED:
        raise NotProven(
            f"The search ended with a channel of {mechanism.outputs.size} outputs, too many for a certificate; "
            "a longer time limit may end with fewer.",
            incumbent=reached,
            bound=bound,
        )
    certificate = certified(mechanism, request, unbiased=True)
    privacy = certificate.deciding if certificate is not None else audited(mechanism.channel, request)
    if best.gap <= _ENOUGH and solution is not None and solution.termination is not Termination.OPTIMAL:
        solution = replace(solution, termination=Termination.OPTIMAL)  # decided by the exact channel and the bound
    words = [*shortfall(privacy, request), "Every mass is an exact rational, with E[o|y] = y exactly."]
    if solution is None:
        words.append(f"{request.solver} left a gap: solved by an interior-point method of the workbench's own.")
    reason = "no closed form is known; the bound prices all sets of labels and all real outputs."
    design = Design(
        request,
        mechanism,
        reached,
        bound,
        request.claim,
        OracleVerdict.none(reason),
        solution,
        tuple(words),
        privacy,
        certificate,
        None,
        "exact masses on intervals of labels",
    )
    if best.gap > _ENOUGH:
        raise NotProven(
            f"The program ended with the optimum between {bound:.9g} and {reached:.9g}.",
            incumbent=reached,
            bound=bound,
            design=design,
        )
    return design


def _solved(request: LabelRequest, odds: Fraction) -> _Exact:
    """The exact channel of the solver's optimum or, where that leaves a gap, of one by interior points of our own.

    Raises NotProven, Infeasible.
    """
    question = request.question
    kept, q = Kept.beside(question.values, question.prior, -1.0), float(odds - 1)
    report = request.progress or (lambda line: None)
    limit = request.options.time_limit
    stop = math.inf if limit is None else time.perf_counter() + limit
    with translated_errors():
        answer = optimum(kept.values, kept.shares, q, request.solver, request.options, progress=report)
    point = answer if isinstance(answer, Optimum) else None
    solution = answer.solution if isinstance(answer, Optimum) else answer
    stopped = late = time.perf_counter() > stop
    stopped |= solution is not None and solution.termination in _STOPPED
    best: _Exact | None = None
    if late and (point is None or (request.certified and question.k * point.t.size > UNBIASED)):
        raise NotProven(
            "The time limit ended the search before a channel small enough for a certificate.",
            bound=0.0 if point is None else max(0.0, point.bound),
        )
    refused = ""
    if point is not None and (stopped or point.closed(_ENOUGH)):
        best, refused = _exact(request, odds, kept, point)
    if (best is None or best.gap > _ENOUGH) and not stopped:
        for part, other in _closer(request, q, point, stop):
            exact, refused = _exact(request, odds, part, other)
            best = exact if best is None or (exact is not None and exact.gap < best.gap) else best
            if best is not None and best.gap <= _ENOUGH:
                break
        if best is None and point is not None:
            best, refused = _exact(request, odds, kept, point)
    if best is not None:
        return best
    if time.perf_counter() > stop:
        raise NotProven("The time limit ended the search before an exact channel.", bound=0.0)
    if not isinstance(answer, Optimum):
        no_channel(answer, None, trivial="randomized response with stretched outputs is private and unbiased")
    raise NotProven(f"The program ended, but {refused}.", bound=answer.bound)


def _closer(request: LabelRequest, q: float, seen: Optimum | None, stop: float) -> Iterator[tuple[Kept, Optimum]]:
    """Optima by interior points of our own: without labels of hardly any prior first, then of all."""
    question, size = request.question, 0
    for share in (*_SHARES, -1.0):
        kept = Kept.beside(question.values, question.prior, share)
        if kept.positions.size > size:
            size = kept.positions.size
            point = interior_optimum(
                kept.values,
                kept.shares,
                q,
                seen=seen if kept.whole else None,
                stop=stop,
                progress=request.progress or (lambda line: None),
            )
            if point is not None:
                yield kept, replace(point, proof=replace(point.proof, bound=kept.bound(point.bound)))


def _exact(request: LabelRequest, odds: Fraction, kept: Kept, answer: Optimum) -> tuple[_Exact | None, str]:
    """The exact channel of the thinned point, or of that on more sets where it is too far off; why there is none."""
    question, refused = request.question, ""
    best: _Exact | None = None
    point: Optimum | None = answer
    while point is not None and (best is None or best.gap > _ENOUGH):
        try:
            outputs, channel = exact_channel(kept.values, kept.shares, odds, point)
        except ArithmeticError as error:
            refused = str(error)
        else:
            mechanism = LabelChannel(question, outputs, channel if kept.whole else kept.completed(channel))
            exact = _Exact(mechanism, mechanism.loss(request.named_loss), answer)
            best = exact if best is None or exact.loss < best.loss else best
        point = point.wider
    return best, refused
