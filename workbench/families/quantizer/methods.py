"""What each method of designing a quantizer solves, in units of c, and what it hands back."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from fractions import Fraction

from models.quantizer import usual_reach
from solvers.solution import Solution
from workbench.errors import Infeasible, NotProven
from workbench.families.quantizer.law_program import exact_quantizer, knots_of, least_metric_epsilon
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
from workbench.mechanisms.piecewise_affine import Quantizer

__all__ = ["MethodAnswer", "NoLaw", "run", "why_none"]


@dataclass(frozen=True)
class MethodAnswer:
    """What a method hands back; reach: the largest output that the search over outputs could choose, if it had one."""

    objective: float
    bound: float | None
    quantizer: Quantizer
    solution: Solution
    words: tuple[str, ...] = ()
    starts: tuple[float, ...] = ()
    searched: bool = False
    reach: float | None = None

    def back(self, units: Units, scale: float) -> MethodAnswer:
        """From units of c to the question's own; scale: of the cost."""
        bound = None if self.bound is None else scale * self.bound
        words = self.words
        if self.searched and self.starts:
            reached = sum(value <= min(self.starts) + 1e-4 for value in self.starts)
            within = "" if self.reach is None else f" within ±{self.reach * float(units.c):.6g} (reach)"
            known = "no bound is known" if bound is None else f"no choice of outputs{within} goes below {bound:.6g}"
            claim = f"Outputs{within} are the best of {len(self.starts)} local searches ({reached} reached this value)"
            words = (*words, f"{claim}; {known}.")
            if self.reach is not None and float(self.quantizer.bins[-1]) > self.reach * (1 - 1e-6):
                words = (*words, "The outermost output is at the reach: a larger reach may err less.")
        return MethodAnswer(scale * self.objective, bound, units.back(self.quantizer), self.solution, words)


class NoLaw(Exception):
    """No law on the given outputs (and knots) is unbiased and private."""


def run(request: QuantizerRequest) -> MethodAnswer:
    """The answer of the request's method. Raises NoLaw, Infeasible, NotProven."""
    units = Units(request.question.c)
    cost, scale = units.cost(request.cost)
    within = copy.copy(request)
    moved = {"question": units.question(request.question), "epsilon": units.epsilon(request.epsilon, request.metric),
             "cost": cost, "reach": None if request.reach is None else request.reach / request.question.c,
             "progress": request.progress or (lambda line: None)}  # fmt: skip
    for name, value in moved.items():
        object.__setattr__(within, name, value)
    return _run(within).back(units, scale)


def _run(request: QuantizerRequest) -> MethodAnswer:
    """The answer to a request in units of c."""
    question, epsilon, cost, metric, solver = (
        request.question, request.epsilon, request.cost, request.metric, request.solver
    )  # fmt: skip
    method, knots, starts = request.method, request.extra_knots, request.starts
    reach = None if request.reach is None else float(request.reach)
    progress = request.progress
    assert progress is not None
    c, density, bins = question.c, question.density, question.bins
    wanted = LawQuestion(epsilon, c, density, cost, metric, solver, request.options)
    words: tuple[str, ...] = ()
    if method == "exact":
        if bins is not None:
            exact_answer = exact_quantizer(bins, wanted, knots=knots)
            bound = None if exact_answer is None else exact_answer.bound
            limit = None
        else:
            limit = usual_reach(float(epsilon), float(c)) if reach is None else reach
            exact_answer = optimised_bins(
                question.levels, wanted, reach=limit, knots=knots, starts=starts, progress=progress
            )
            bound = None
            if metric is None:
                bound = output_bound(question.levels, float(epsilon), float(c), density, cost, limit)
            if request.prove and exact_answer is not None:
                proven = prove_outputs(
                    question.levels, float(epsilon), limit, exact_answer.quantizer.mae(),
                    seconds=float(request.proof_time), file=request.proof_file, progress=progress,
                )  # fmt: skip
                bound = max(proven.bound, bound or 0.0)
                words = (_proven_words(proven, question.levels),)
        if exact_answer is None:
            raise NoLaw
        return MethodAnswer(exact_answer.objective, bound, exact_answer.quantizer, exact_answer.solution, words,
                    exact_answer.starts, bins is None, limit)  # fmt: skip
    if method == "mvu":
        try:
            answer = mvu(
                epsilon, levels=question.levels if bins is None else None, alphabet=bins,
                grid=InputGrid(request.inputs, c, cost, metric, solver), reach=reach, starts=starts, progress=progress,
            )  # fmt: skip
        except Infeasible:
            raise NoLaw from None
        note = "MVU's objective is the mean error over its input grid; mae and mse include dithering."
        return MethodAnswer(answer.objective, answer.bound, answer.quantizer, answer.solution, (note,), answer.starts,
                    bins is None, reach)  # fmt: skip
    if bins is None:
        bins = searched_bins(question.levels, LawQuestion(epsilon, c, density, cost), method, reach=reach,
                             progress=progress)  # fmt: skip
    if method == "optm":
        result = optm_thinner(bins, epsilon, c, density)
        if result is None:
            raise NotProven(f"OPTM's linear programs have no solution for these bins at epsilon = {float(epsilon):g}.")
        note = "OPTM minimises an upper bound of the MAE (the objective shown); it proves no bound on the MAE itself."
        return MethodAnswer(result.proxy, None, result.quantizer, result.solution, (note,))
    best = product_optimum(bins, wanted, progress=progress)
    if best is None:
        raise NotProven(f"No two-bin mechanism was found for these bins at epsilon = {float(epsilon):g}.")
    gap = (best.value - best.bound) / best.value
    words = words if best.closed else (f"Stopped after {best.nodes} boxes; the optimum is at most {gap:.2%} below.",)
    return MethodAnswer(best.value, best.bound, best.quantizer, best.solution, words)


def _proven_words(proven: Proven, levels: int) -> str:
    """What the search over all outputs has proven, and what is left."""
    words = (
        f"The bound holds for every unbiased private mechanism on real inputs with at most {levels} outputs, all "
        f"within the reach (branch and bound, {proven.boxes} boxes)."
    )
    if proven.closed:
        return words
    why = "interrupted" if proven.stopped else "stopped at its proof_time"
    return f"{words} The search was {why}; with a proof_file it can go on."


def why_none(request: QuantizerRequest) -> str:
    """Why there is nothing; by distance, with the smallest ε at which there is a law on the given outputs."""
    question, metric = request.question, request.metric
    relation = "private" if metric is None else f"{metric}-metric private"
    sentence = (
        f"No unbiased {relation} quantizer with these outputs and knots exists at epsilon = {float(request.epsilon):g}."
    )
    if metric is None or question.bins is None:
        return sentence
    unit = Units(question.c).question(question)
    if request.method == "mvu":
        points = request.inputs or unit.levels
        cuts = [Fraction(2 * k, points - 1) - 1 for k in range(points)]
    else:
        assert unit.bins is not None
        cuts = knots_of(unit.bins, unit.c, request.extra_knots)
    least = least_metric_epsilon([float(b) for b in unit.bins or ()], [float(k) for k in cuts], metric)
    if math.isinf(least):
        return sentence
    scale = float(question.c) ** (1 if metric == "absolute" else 2)
    return f"{sentence} The smallest feasible epsilon is {least / scale:.4g}."
