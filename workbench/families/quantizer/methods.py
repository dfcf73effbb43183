"""What each method of designing a quantizer solves, in units of c, and what it hands back."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from models.quantizer import usual_reach
from workbench.errors import Infeasible, NotProven
from workbench.families.quantizer.law_program import QuantizerAnswer, exact_quantizer, knots_of
from workbench.families.quantizer.law_question import LawQuestion
from workbench.families.quantizer.mvu import InputGrid, mvu
from workbench.families.quantizer.optm import optm_thinner
from workbench.families.quantizer.output_bound import output_bound
from workbench.families.quantizer.output_proof import Proven, prove_outputs
from workbench.families.quantizer.output_search import optimised_bins
from workbench.families.quantizer.product import product_optimum
from workbench.families.quantizer.request import QuantizerRequest
from workbench.families.quantizer.search import searched_bins
from workbench.families.quantizer.units import Units

__all__ = ["NoLaw", "run", "why_none"]


def _back(answer: QuantizerAnswer, units: Units, scale: float) -> QuantizerAnswer:
    """From units of c to the question's own; scale: of the loss."""
    bound, starts, words, c = answer.bound, answer.starts, answer.words, float(units.c)
    bound = None if bound is None else scale * bound
    if starts:
        reached = sum(value <= min(starts) + 1e-4 for value in starts)
        within = "" if answer.reach is None else f" within ±{answer.reach * c:.6g} (reach)"
        known = "no bound is known" if bound is None else f"no choice of outputs{within} goes below {bound:.6g}"
        claim = f"Outputs{within} are the best of {len(starts)} local searches ({reached} reached this value)"
        words = (*words, f"{claim}; {known}.")
        if answer.reach is not None and float(answer.quantizer.bins[-1]) > answer.reach * (1 - 1e-6):
            words = (*words, "The outermost output is at the reach: a larger reach may err less.")
    return QuantizerAnswer(scale * answer.objective, bound, units.back(answer.quantizer), answer.solution, words=words)


class NoLaw(Exception):
    """No law on the given outputs (and knots) is unbiased and private."""


def run(request: QuantizerRequest) -> QuantizerAnswer:
    """The answer of the request's method. Raises NoLaw, Infeasible, NotProven."""
    units = Units(request.question.c)
    loss, scale = units.loss(request.loss)
    within = copy.copy(request)
    moved = {
        "question": units.question(request.question),
        "epsilon": units.epsilon(request.epsilon, request.metric),
        "loss": loss,
        "reach": None if request.reach is None else request.reach / request.question.c,
    }
    for name, value in moved.items():
        object.__setattr__(within, name, value)
    method = {"exact": _exact, "mvu": _mvu, "optm": _optm, "product": _product}[request.method]
    return _back(method(within), units, scale)


def _progress(request: QuantizerRequest) -> Callable[[str], None]:
    return request.progress or (lambda line: None)


def _law_question(request: QuantizerRequest) -> LawQuestion:
    question = request.question
    return LawQuestion(
        request.epsilon, question.c, question.density, request.loss, request.metric, request.solver, request.options
    )


def _exact(request: QuantizerRequest) -> QuantizerAnswer:
    """The exact LP at given outputs, or over all within the reach."""
    question, wanted, knots = request.question, _law_question(request), request.extra_knots
    levels, epsilon = question.levels, float(request.epsilon)
    if question.bins is not None:
        given = exact_quantizer(question.bins, wanted, knots=knots)
        if given is None:
            raise NoLaw
        return given
    reach = usual_reach(epsilon, float(question.c)) if request.reach is None else float(request.reach)
    progress = _progress(request)
    best = optimised_bins(levels, wanted, reach=reach, knots=knots, starts=request.starts, progress=progress)
    if best is None:
        raise NoLaw
    bound: float | None = None
    words: tuple[str, ...] = ()
    if request.metric is None:
        bound = output_bound(levels, epsilon, float(question.c), question.density, request.loss, reach)
    if request.prove:
        proven = prove_outputs(
            levels,
            epsilon,
            reach,
            best.quantizer.mae(),
            seconds=float(request.proof_time),
            file=request.proof_file,
            progress=progress,
        )
        bound, words = max(proven.bound, bound or 0.0), (_proven_words(proven, levels),)
    return replace(best, bound=bound, words=words, reach=reach)


def _mvu(request: QuantizerRequest) -> QuantizerAnswer:
    """MVU's LP in P at given outputs, or over all within the reach."""
    question, reach = request.question, None if request.reach is None else float(request.reach)
    try:
        answer = mvu(
            request.epsilon,
            levels=question.levels if question.bins is None else None,
            alphabet=question.bins,
            grid=InputGrid(request.inputs, question.c, request.loss, request.metric, request.solver),
            reach=reach,
            starts=request.starts,
            progress=_progress(request),
        )
    except Infeasible:
        raise NoLaw from None
    note = "MVU's objective is the mean error over its input grid; mae and mse include dithering."
    return replace(answer, words=(note,), reach=reach)


def _bins(request: QuantizerRequest) -> tuple[Fraction, ...]:
    """The outputs that are given, or found by a search over the method's own."""
    question, reach = request.question, None if request.reach is None else float(request.reach)
    if question.bins is not None:
        return question.bins
    wanted = LawQuestion(request.epsilon, question.c, question.density, request.loss)
    return searched_bins(question.levels, wanted, request.method, reach=reach, progress=_progress(request))


def _optm(request: QuantizerRequest) -> QuantizerAnswer:
    """OPTM's best selection."""
    result = optm_thinner(_bins(request), request.epsilon, request.question.c, request.question.density)
    if result is None:
        reason = f"OPTM's linear programs have no solution for these bins at epsilon = {float(request.epsilon):g}."
        raise NotProven(reason)
    note = "OPTM minimises an upper bound of the MAE (the objective shown); it proves no bound on the MAE itself."
    return QuantizerAnswer(result.proxy, None, result.quantizer, result.solution, words=(note,))


def _product(request: QuantizerRequest) -> QuantizerAnswer:
    """The best two-bin mechanism, with a proven bound."""
    best = product_optimum(_bins(request), _law_question(request), progress=_progress(request))
    if best is None:
        raise NotProven(f"No two-bin mechanism was found for these bins at epsilon = {float(request.epsilon):g}.")
    gap = (best.value - best.bound) / best.value
    words = () if best.closed else (f"Stopped after {best.nodes} boxes; the optimum is at most {gap:.2%} below.",)
    return QuantizerAnswer(best.value, best.bound, best.quantizer, best.solution, words=words)


def _proven_words(proven: Proven, levels: int) -> str:
    """What the search over all outputs has proven, and what is left."""
    words = (
        f"The bound holds for every unbiased private mechanism on real inputs with at most {levels} outputs, all "
        f"within the reach (branch and bound, {proven.boxes} boxes)."
    )
    if proven.from_file:
        words += " What the proof_file held of it is from a file, not proven again."
    if proven.closed:
        return words
    why = "interrupted" if proven.stopped else "stopped at its proof_time"
    return f"{words} The search was {why}; with a proof_file it can go on."


def why_none(request: QuantizerRequest) -> str:
    """Why there is nothing; by squared distance, with the smallest ε at which there is a law on the given outputs."""
    bins, c = request.question.bins, request.question.c
    relation = "private" if request.metric is None else f"{request.metric}-metric private"
    outputs = "outputs within the reach" if bins is None else "these outputs"
    sentence = (
        f"No unbiased {relation} quantizer with {outputs} and knots exists at epsilon = {float(request.epsilon):g}."
    )
    if request.metric != "squared" or bins is None or bins[0] == -c or bins[-1] == c:
        return sentence
    points = request.inputs or len(bins)
    cuts = [2 * c * Fraction(k, points - 1) - c for k in range(points)]
    if request.method != "mvu":
        cuts = knots_of(bins, c, request.extra_knots)
    # Σ_i (B_i - low) p_i(x) = x - low grows from one point to the next by a ratio at most, and so from above
    least = max(
        math.log1p((b - a) / min(a - bins[0], bins[-1] - b)) / (b - a) ** 2 for a, b in itertools.pairwise(cuts)
    )
    return f"{sentence} The smallest feasible epsilon is {least:.6g}."
