"""Quantizers as problems: the method of a request, what its law is audited for, and the words a reader needs.

method    what is solved                                                        objective         bound
exact     the exact quantizer LP (models.quantizer); with levels, bins on top    exact error       LP dual; any bins
optm      OPTM's LPs, searched over bounds (and bins)                            proxy (8)         none
product   the best two-bin mechanism, by branch and bound (models.two_bin)       exact error       proven
mvu       MVU's LP in P (and its alphabet)                                       error on its grid LP dual; any bins
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from models.quantizer import smallest_epsilon, smallest_reach
from workbench.errors import Infeasible
from workbench.families.design import Design, OracleVerdict
from workbench.families.outcome import translated_errors
from workbench.families.problem import Answer, Problem, Programs, Repaired
from workbench.families.quantizer.certify import SMALL, audited, certified_quantizer
from workbench.families.quantizer.limit import two_outputs
from workbench.families.quantizer.methods import NoLaw, run, why_none
from workbench.families.quantizer.request import QuantizerRequest
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization import Quantization
from workbench.privacy.audit import Privacy
from workbench.privacy.claim import Claim


class QuantizerProblem(Problem):
    """The best unbiased ε-private quantizer for a request, by its method."""

    request: QuantizerRequest
    SUBJECT = "The solver's law"
    BEST: ClassVar[bool] = False

    def answered(self, programs: Programs | None, start: str) -> Answer:
        """By its method. Raises Infeasible (with the smallest feasible ε), SolverUnavailable, LicenceLimit,
        NotProven."""
        request = self.request
        least = _least(request.question, request.epsilon, request.metric)
        try:
            with translated_errors():
                answer = run(request)
        except NoLaw:
            raise Infeasible(why_none(request)) from None
        return Answer(
            answer.quantizer,
            answer.bound,
            answer.solution,
            claimed=None if request.method in ("exact", "product") else answer.objective,
            proxy=True,
            words=answer.words,
            details={"smallest_epsilon": least},
        )

    def repaired(self, answer: Answer) -> Repaired:
        """The one place where what a solver's rounding left is repaired. Raises NotCertified."""
        mechanism, certificate, share = certified_quantizer(answer.mechanism, self.request.epsilon, self.request.metric)
        changed = f"The proof took {float(share):.2g} of another law mixed into the solver's; errors are those of both."
        return mechanism, certificate, [changed] if share > SMALL else []

    def loss(self, mechanism: Quantizer) -> float:
        """The exact error."""
        return mechanism.expected(self.request.loss, self.request.question.density)

    def audited(self, mechanism: Quantizer) -> Privacy:
        """The audit of what decides the claim, linear in the end laws."""
        return audited(mechanism, self.request.epsilon, self.request.metric)[0]

    def claim_of(self, privacy: Privacy) -> Claim:
        """By |x - x'|², with a budget for every two knots."""
        return Claim("metric", privacy.budgets) if self.request.metric == "squared" else self.claim

    def proven(self, reached: Design) -> Design:
        """The design with what is known of the repaired law: every bound is proven, but need not be attained."""
        quantizer, certificate, words = reached.mechanism, reached.certificate, [*reached.words]
        route = None
        if certificate is not None:
            share = certificate.record.get("repair_share")
            route = f"{share:.2g} of a strictly private law mixed in" if share else "as the solver returned it"
        elif quantizer.bias:
            words.append(f"Its exact bias is {float(quantizer.bias):.2g} (rounding of the solver's answer), not 0.")
        if self.request.metric == "squared":
            words.append(
                f"By |x - x'|² the guarantee is between the {len(quantizer.knots)} points that inputs are "
                "dithered to; between all real inputs it would force a constant law."
            )
        verdict = _judge(self.request, quantizer, reached.bound)
        return replace(reached, route=route, oracle=verdict, words=tuple(words))


def _least(question: Quantization, budget: Fraction, metric: str | None) -> float | None:
    """The smallest feasible ε for given bins (None: bins are free). Raises Infeasible below it."""
    if question.bins is None:
        return None
    if metric == "squared":
        return None
    c, low, high = float(question.c), float(question.bins[0]), float(question.bins[-1])
    least = smallest_epsilon(low, high, c)
    if metric == "absolute" and math.isfinite(least):
        # Σ_i (B_i - low) p_i(x) = x - low grows by at most ε of itself: at -c, ε >= 1/(-c - low); the same from above
        least = 1 / min(high - c, -c - low)
    if math.isinf(least):
        raise Infeasible(
            f"bins must reach beyond [-{c:g}, {c:g}] on both sides: with an outermost output at ±c its input would "
            f"have to be published as it is. Got {low:g} to {high:g}."
        )
    if float(budget) < least * (1 - 1e-12):
        raise Infeasible(
            f"epsilon must be at least {least:.9g} for outputs in [{low:g}, {high:g}] (the smallest at which an "
            f"unbiased private quantizer on [-{c:g}, {c:g}] exists). Got {float(budget):g}."
        )
    return least


def _judge(request: QuantizerRequest, quantizer: Quantizer, bound: float | None) -> OracleVerdict:
    """The closed forms: of two outputs, given ±B or the best of all, which are at the least reach; the limit."""
    question, metric, bins = request.question, request.metric, request.question.bins
    reached, free = quantizer.expected(request.loss, question.density), bins is None
    if question.levels == 2 and (metric != "squared" if bins is None else bins[0] == -bins[1]):
        x, w = question.density.grid([0.0])
        reach = smallest_reach(float(request.epsilon), float(question.c), metric) if bins is None else float(bins[1])
        value = two_outputs(reach, request.loss, float(w @ x**2))
        proof = "Two outputs ±B leave one unbiased law, Pr[B] = (B + x)/(2B); its absolute error is (B² - x²)/B"
        proof += ", least where B is the least reach." if free else "."
        kind = "lower bound" if free and request.method != "exact" else "optimum"
        return OracleVerdict.judge(reached, "two outputs", value, kind, proof)
    if bound is not None and free and request.method == "exact":
        proof = "A bound for all outputs within the same reach, proven by duality."
        return OracleVerdict.judge(reached, "limit", bound, "lower bound", proof)
    return OracleVerdict.none("no closed form is known for more than two outputs.")
