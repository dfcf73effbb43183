"""What each method of designing a quantizer solves, in units of c, and what it hands back."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

from models.quantizer import usual_reach
from workbench.errors import Infeasible, NotProven
from workbench.families.quantizer.law_program import QuantizerAnswer, exact_quantizer, knots_of
from workbench.families.quantizer.laws import LawQuestion
from workbench.families.quantizer.limit import output_bound
from workbench.families.quantizer.mvu import mvu
from workbench.families.quantizer.optm import optm_thinner
from workbench.families.quantizer.output_proof import Proven, prove_outputs
from workbench.families.quantizer.output_search import optimised_bins
from workbench.families.quantizer.product import product_optimum
from workbench.families.quantizer.request import QuantizerRequest
from workbench.families.quantizer.search import searched_bins
from workbench.mechanisms.piecewise_affine import Quantizer


class NoLaw(Exception):
    """No law on the given outputs (and knots) is unbiased and private."""


@dataclass(frozen=True)
class _Scaled:
    """A request in units of c. bins: given outputs, None where they are optimised; reach: the largest output."""

    request: QuantizerRequest
    law: LawQuestion
    bins: tuple[Fraction, ...] | None
    reach: float | None

    @property
    def levels(self) -> int:
        """How many outputs."""
        return self.request.question.levels

    @property
    def epsilon(self) -> float:
        """The budget."""
        return float(self.law.epsilon)

    def progress(self, line: str) -> None:
        """Tell a line, where somebody listens."""
        if self.request.progress is not None:
            self.request.progress(line)

    def exact(self) -> QuantizerAnswer:
        """The exact LP at given outputs, or over all within the reach."""
        levels, law, knots, request = self.levels, self.law, self.request.extra_knots, self.request
        if self.bins is not None:
            given = exact_quantizer(self.bins, law, knots=knots)
            if given is None:
                raise NoLaw
            return given
        reach = usual_reach(self.epsilon) if self.reach is None else self.reach
        best = optimised_bins(levels, law, reach=reach, knots=knots, starts=request.starts, progress=self.progress)
        if best is None:
            raise NoLaw
        bound: float | None = None
        words: tuple[str, ...] = ()
        if law.metric is None:
            bound = output_bound(levels, self.epsilon, 1.0, law.density, law.loss, reach)
        if request.prove:
            proven = prove_outputs(
                levels,
                self.epsilon,
                reach,
                best.quantizer.mae(),
                seconds=float(request.proof_time),
                file=request.proof_file,
                progress=self.progress,
            )
            bound, words = max(proven.bound, bound or 0.0), (_proven_words(proven, levels),)
        return replace(best, bound=bound, words=words, reach=reach)

    def mvu(self) -> QuantizerAnswer:
        """MVU's LP in P at given outputs, or over all within the reach."""
        try:
            answer = mvu(
                self.law,
                self.levels if self.bins is None else self.bins,
                inputs=self.request.inputs,
                reach=self.reach,
                starts=self.request.starts,
                progress=self.progress,
            )
        except Infeasible:
            raise NoLaw from None
        note = "MVU's objective is the mean error over its input grid; mae and mse include dithering."
        return replace(answer, words=(note,), reach=self.reach)

    def _found_bins(self) -> tuple[Fraction, ...]:
        """The outputs that are given, or found by a search over the method's own."""
        if self.bins is not None:
            return self.bins
        return searched_bins(self.levels, self.law, self.request.method, reach=self.reach, progress=self.progress)

    def optm(self) -> QuantizerAnswer:
        """OPTM's best selection."""
        result = optm_thinner(self._found_bins(), self.law.epsilon, self.law.c, self.law.density)
        if result is None:
            raise NotProven(f"OPTM's linear programs have no solution for these bins at epsilon = {self.epsilon:g}.")
        note = "OPTM minimises an upper bound of the MAE (the objective shown); it proves no bound on the MAE itself."
        return QuantizerAnswer(result.proxy, None, result.quantizer, result.solution, words=(note,))

    def product(self) -> QuantizerAnswer:
        """The best two-bin mechanism, with a proven bound."""
        best = product_optimum(self._found_bins(), self.law, progress=self.progress)
        if best is None:
            raise NotProven(f"No two-bin mechanism was found for these bins at epsilon = {self.epsilon:g}.")
        gap = (best.value - best.bound) / best.value
        words = () if best.closed else (f"Stopped after {best.nodes} boxes; the optimum is at most {gap:.2%} below.",)
        return QuantizerAnswer(best.value, best.bound, best.quantizer, best.solution, words=words)


def run(request: QuantizerRequest) -> QuantizerAnswer:
    """The answer of the request's method. Raises NoLaw, Infeasible, NotProven."""
    (law, scale), c, bins = request.law, request.question.c, request.question.bins
    given = None if bins is None else tuple(b / c for b in bins)
    scaled = _Scaled(request, law, given, None if request.reach is None else float(request.reach / c))
    answer: QuantizerAnswer = getattr(scaled, request.method)()
    bound, words, quantizer = None if answer.bound is None else scale * answer.bound, answer.words, answer.quantizer
    if answer.starts:
        reached = sum(value <= min(answer.starts) + 1e-4 for value in answer.starts)
        within = "" if answer.reach is None else f" within ±{answer.reach * float(c):.6g} (reach)"
        known = "no bound is known" if bound is None else f"no choice of outputs{within} goes below {bound:.6g}"
        claim = f"Outputs{within} are the best of {len(answer.starts)} local searches ({reached} reached this value)"
        words = (*words, f"{claim}; {known}.")
        if answer.reach is not None and float(quantizer.bins[-1]) > answer.reach * (1 - 1e-6):
            words = (*words, "The outermost output is at the reach: a larger reach may err less.")
    knots, outputs = tuple(c * k for k in quantizer.knots), tuple(c * b for b in quantizer.bins)
    wide = Quantizer(knots, outputs, quantizer.ends, quantizer.name)
    return QuantizerAnswer(scale * answer.objective, bound, wide, answer.solution, words=words)


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
    cuts = knots_of((), c, points) if request.method == "mvu" else knots_of(bins, c, request.extra_knots)
    # Σ_i (B_i - low) p_i(x) = x - low grows from one point to the next by a ratio at most, and so from above
    least = max(
        math.log1p((b - a) / min(a - bins[0], bins[-1] - b)) / (b - a) ** 2 for a, b in itertools.pairwise(cuts)
    )
    return f"{sentence} The smallest feasible epsilon is {least:.6g}."
