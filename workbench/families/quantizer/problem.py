"""Quantizers as problems: the method of a request, what its law is audited for, and the words a reader needs.

method    what is solved                                                    objective          bound
exact     the exact LP (`models.quantizer.program`); with levels, outputs   exact error        LP dual; any bins
          are searched on top
optm      OPTM's LPs, searched over bounds (and bins)                       proxy (8)          none
product   the best two-bin mechanism, by branch and bound                   exact error        proven
          (`models.quantizer.two_bin`)
mvu       MVU's LP in P (and its alphabet)                                  error on its grid  LP dual; any bins
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from workbench.errors import Infeasible, NotProven
from workbench.families.quantizer.certify import (
    SMALL_REPAIR_SHARE,
    audit_quantizer,
    certify_quantizer,
)
from workbench.families.quantizer.laws import (
    Bins,
    QuantizerAnswer,
    list_knots,
    solve_exact_quantizer,
)
from workbench.families.quantizer.limit import compute_output_bound, compute_two_output_error
from workbench.families.quantizer.mvu import solve_mvu
from workbench.families.quantizer.optm import solve_optm_with_thinner_slices
from workbench.families.quantizer.output_search import optimise_bins
from workbench.families.quantizer.product import solve_product_optimum
from workbench.families.quantizer.request import QuantizerRequest
from workbench.families.quantizer.search import search_bins
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import default_reach, smallest_epsilon, smallest_reach
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.problem import Problem, Repaired
from workbench.pipeline.routes import Answer, Reason, Route
from workbench.privacy.audit import Privacy
from workbench.privacy.claim import Claim


def _route(
    name: str, method: str, solve: Callable[[QuantizerProblem], QuantizerAnswer], given: str = ""
) -> Route:
    """Return the route of a method. given: "outputs" or "levels" where it takes only these."""

    def applies(problem: QuantizerProblem) -> Reason:
        if problem.request.how.method != method:
            return f"method {problem.request.how.method} was asked for"
        if given and given != ("levels" if problem.bins is None else "outputs"):
            return f"{given} are not given"
        return None

    return Route(
        name, applies, lambda problem, programs, start: problem.answer_by(partial(solve, problem))
    )


class QuantizerProblem(Problem):
    """The best unbiased ε-private quantizer for a request, by its method.

    In units of c: law, bins (None where they are optimised), and reach, the largest output that a search may choose
    (inf: any). scale: what losses there are to be multiplied by.
    """

    request: QuantizerRequest
    SUBJECT = "The solver's law"
    CLAIMS_OPTIMUM = False
    routes = (
        _route("exact program", "exact", lambda problem: problem.exact(), "outputs"),
        _route("search over outputs", "exact", lambda problem: problem.search_outputs(), "levels"),
        _route("optm", "optm", lambda problem: problem.optm()),
        _route("product", "product", lambda problem: problem.product()),
        _route("mvu", "mvu", lambda problem: problem.mvu()),
    )

    def __init__(self, request: QuantizerRequest) -> None:
        super().__init__(request)
        question, self.levels = request.question, request.question.levels
        self.law, self.scale = request.law
        self.bins = question.centred_bins
        self.reach = (
            math.inf if request.how.method == "mvu" else default_reach(self.law.float_epsilon)
        )
        if request.aim.reach is not None:
            self.reach = float(request.aim.reach / question.c)

    @property
    def loss_scale(self) -> LossScale:
        """That of a loss of the half width of the inputs."""
        return LossScale(width=float(self.scale))

    def answer_by(self, solve: Callable[[], QuantizerAnswer]) -> Answer:
        """Answer by one of the methods. Raises Infeasible (with the smallest feasible ε), SolverUnavailable,
        LicenceLimit, NotProven."""
        method, question, bound = self.request.how.method, self.request.question, None
        least = self._least()
        try:
            with translate_errors():
                answer = solve()
        except Infeasible:
            raise Infeasible(self._why_none()) from None
        if answer.bound is not None:
            bound = self.scale * answer.bound
        law, (middle, c) = answer.quantizer, (question.middle, question.c)
        knots, bins = (
            tuple(middle + c * value for value in values) for values in (law.knots, law.bins)
        )
        return Answer(
            Quantizer(knots, bins, law.ends, law.name),
            bound,
            answer.solution,
            claimed_objective=None
            if method in ("exact", "product")
            else self.scale * answer.objective,
            is_proxy=True,
            notes=(
                *answer.notes,
                *(self._searched_words(answer, bound) if answer.start_values else ()),
            ),
            details={"smallest_epsilon": least},
        )

    def exact(self) -> QuantizerAnswer:
        """Solve the exact LP at given outputs. Raises Infeasible, NotProven."""
        assert self.bins is not None
        best = solve_exact_quantizer(self.bins, self.law, knots=self.request.extra_knot_count)
        if best is None:
            raise Infeasible
        return best

    def search_outputs(self) -> QuantizerAnswer:
        """Search the outputs within the reach whose exact LP has the least error. Raises Infeasible, NotProven."""
        knots, starts = self.request.extra_knot_count, self.request.how.starts
        best = optimise_bins(self.levels, self.law, reach=self.reach, knots=knots, starts=starts)
        if best is None:
            raise Infeasible
        bound = (
            compute_output_bound(self.levels, self.law, self.reach)
            if self.law.metric is None
            else None
        )
        return replace(best, bound=bound)

    def mvu(self) -> QuantizerAnswer:
        """MVU's LP in P at given outputs, or over all within the reach. Raises Infeasible."""
        outputs = self.levels if self.bins is None else self.bins
        answer = solve_mvu(
            self.law,
            outputs,
            inputs=self.request.how.inputs,
            reach=self.reach,
            starts=self.request.how.starts,
        )
        note = (
            "MVU's objective is the mean error over its input grid; mae and mse include dithering."
        )
        return replace(answer, notes=(note,))

    def _found_bins(self) -> Bins:
        """The outputs that are given, or found by a search over the method's own."""
        if self.bins is not None:
            return self.bins
        return search_bins(self.levels, self.law, self.request.how.method, reach=self.reach)

    def optm(self) -> QuantizerAnswer:
        """OPTM's best selection. Raises NotProven."""
        result = solve_optm_with_thinner_slices(self._found_bins(), self.law)
        if result is None:
            at = f"at epsilon = {self.law.float_epsilon:g}"
            raise NotProven(f"OPTM's linear programs have no solution for these bins {at}.")
        note = "OPTM minimises an upper bound of the MAE (the objective shown); it proves no bound on the MAE itself."
        return replace(result, notes=(note,))

    def product(self) -> QuantizerAnswer:
        """The best two-bin mechanism, with a proven bound. Raises NotProven."""
        best = solve_product_optimum(self._found_bins(), self.law)
        if best is None:
            raise NotProven(
                f"No two-bin mechanism was found for these bins at epsilon = {self.law.float_epsilon:g}."
            )
        return best

    def _least(self) -> float | None:
        """The smallest feasible ε for given bins (None: bins are free). Raises Infeasible below it."""
        question, metric = self.request.question, self.request.aim.metric
        if question.bins is None or metric == "squared":
            return None
        given = [float(b) for b in (question.bins[0], question.bins[-1], *question.ends)]
        c, low, high = float(question.c), *(b - float(question.middle) for b in given[:2])
        least = smallest_epsilon(low, high, c)
        if metric == "absolute" and math.isfinite(least):
            # Σ_i (B_i - low) p_i(x) = x - low grows by at most ε of itself: at -c, ε >= 1/(-c - low); from above too
            least = 1 / min(high - c, -c - low)
        if math.isinf(least):
            raise Infeasible(
                f"bins must reach beyond [{given[2]:g}, {given[3]:g}] on both sides: with an outermost output at an "
                f"end its input would have to be published as it is. Got {given[0]:g} to {given[1]:g}."
            )
        if float(self.request.claim.epsilon) < least * (1 - 1e-12):
            raise Infeasible(
                f"epsilon must be at least {least:.9g} for outputs in [{given[0]:g}, {given[1]:g}] (the smallest at "
                f"which an unbiased private quantizer on [{given[2]:g}, {given[3]:g}] exists). "
                f"Got {float(self.request.claim.epsilon):g}."
            )
        return least

    def _why_none(self) -> str:
        """Why there is nothing; by squared distance, with the smallest ε of a law on the given outputs."""
        request, bins, c = self.request, self.request.question.bins, self.request.question.c
        relation = (
            "private" if request.aim.metric is None else f"{request.aim.metric}-metric private"
        )
        outputs = "outputs within the reach" if bins is None else "these outputs"
        budget = float(request.claim.epsilon)
        sentence = f"No unbiased {relation} quantizer with {outputs} and knots exists at epsilon = {budget:g}."
        if (
            request.aim.metric != "squared"
            or self.bins is None
            or self.bins[0] == -1
            or self.bins[-1] == 1
        ):
            return sentence
        points = request.how.inputs or len(self.bins)
        cuts = (
            list_knots((), points)
            if request.how.method == "mvu"
            else list_knots(self.bins, request.extra_knot_count)
        )
        # Σ_i (B_i - low) p_i(x) = x - low grows from one point to the next by a ratio at most, and so from above
        low, high = self.bins[0], self.bins[-1]
        least = max(
            math.log1p((b - a) / min(a - low, high - b)) / (c * (b - a)) ** 2
            for a, b in itertools.pairwise(cuts)
        )
        return f"{sentence} The smallest feasible epsilon is {least:.6g}."

    def _searched_words(self, answer: QuantizerAnswer, bound: float | None) -> list[str]:
        """What a search over outputs has reached, of how many starts."""
        c, starts = float(self.request.question.c), answer.start_values
        reached = sum(value <= min(starts) + 1e-4 for value in starts)
        middle = f"{float(self.request.question.middle):g} " if self.request.question.middle else ""
        within = "" if math.isinf(self.reach) else f" within {middle}±{self.reach * c:.6g} (reach)"
        known = (
            "No bound is known."
            if bound is None
            else f"No choice of outputs{within} goes below {bound:.6g}."
        )
        claim = f"Outputs{within} are the best found by {len(starts)} local searches ({reached} reached this value)"
        words = [f"{claim}; they are not proven optimal over all outputs. {known}"]
        if float(answer.quantizer.bins[-1]) > self.reach * (1 - 1e-6):
            words.append("The outermost output is at the reach: a larger reach may err less.")
        return words

    def repair(self, answer: Answer) -> Repaired:
        """The one place where what a solver's rounding left is repaired. Raises NotCertified."""
        mechanism, certificate, share = certify_quantizer(
            answer.mechanism, self.request.claim.epsilon, self.request.aim.metric
        )
        changed = f"The proof took {float(share):.2g} of another law mixed into the solver's; errors are those of both."
        return mechanism, certificate, [changed] if share > SMALL_REPAIR_SHARE else []

    def compute_loss(self, mechanism: Quantizer) -> float:
        """The exact error."""
        return mechanism.expected_loss(self.request.aim.loss, self.request.question.density)

    def audit(self, mechanism: Quantizer) -> Privacy:
        """The audit of what decides the claim, linear in the end laws."""
        return audit_quantizer(mechanism, self.request.claim.epsilon, self.request.aim.metric)[0]

    def claim_for_audit(self, privacy: Privacy) -> Claim:
        """By |x - x'|², with a budget for every two knots."""
        return (
            Claim("metric", privacy.budgets) if self.request.aim.metric == "squared" else self.claim
        )

    def require_proof(self, design: Design) -> Design:
        """The design with what is known of the repaired law: every bound is proven, but need not be attained."""
        quantizer, certificate, words = design.mechanism, design.certificate, [*design.words]
        origin = None
        if certificate is not None:
            share = certificate.record.get("repair_share")
            origin = (
                f"{share:.2g} of a strictly private law mixed in"
                if share
                else "as the solver returned it"
            )
        elif quantizer.bias:
            words.append(
                f"Its exact bias is {float(quantizer.bias):.2g} (rounding of the solver's answer), not 0."
            )
        if self.request.aim.metric == "squared":
            words.append(
                f"By |x - x'|² the guarantee is between the {len(quantizer.knots)} points that inputs are "
                "dithered to; between all real inputs it would force a constant law."
            )
        verdict = self._judged(self.compute_loss(quantizer), design.bound)
        return replace(design, origin=origin, oracle=verdict, words=tuple(words))

    def _judged(self, error: float, bound: float | None) -> OracleVerdict:
        """The closed forms: of two outputs, given ±B or the best of all, which are at the least reach; the limit."""
        request, question = self.request, self.request.question
        metric, bins, exact = request.aim.metric, self.bins, request.how.method == "exact"
        if question.levels == 2 and (metric != "squared" if bins is None else bins[0] == -bins[1]):
            x, w = question.density.quadrature([0.0])
            proof = "Two outputs ±B leave one unbiased law, Pr[B] = (B + x)/(2B); its absolute error is (B² - x²)/B"
            if bins is None:
                reach = smallest_reach(float(request.claim.epsilon), float(question.c), metric)
                kind, proof = (
                    "optimum" if exact else "lower bound",
                    f"{proof}, least where B is the least reach.",
                )
            else:
                reach, kind, proof = float(bins[1] * question.c), "optimum", f"{proof}."
            value = compute_two_output_error(reach, request.aim.loss, float(w @ x**2))
            return OracleVerdict.judge(error, "two outputs", value, kind, proof)
        if bound is not None and bins is None and exact:
            proof = "A bound for all outputs within the same reach, proven by duality."
            return OracleVerdict.judge(error, "limit", bound, "lower bound", proof)
        return OracleVerdict.without_formula("no closed form is known for more than two outputs.")
