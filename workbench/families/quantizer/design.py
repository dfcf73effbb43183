"""Designing quantizers: the request, its method, the exact audit of what comes out, and the words a reader needs.

method    what is solved                                                        objective         bound
exact     the exact quantizer LP (models.quantizer); with levels, bins on top    exact error       LP dual; any bins
optm      OPTM's LPs, searched over bounds (and bins)                            proxy (8)         none
product   the best two-bin mechanism, by branch and bound (models.two_bin)       exact error       proven
mvu       MVU's LP in P (and its alphabet)                                       error on its grid LP dual; any bins
"""

from __future__ import annotations

import math
from fractions import Fraction

from models.quantizer import smallest_epsilon, smallest_reach
from workbench.errors import Infeasible
from workbench.families.design import Design, OracleVerdict
from workbench.families.outcome import translated_errors
from workbench.families.quantizer.certify import SMALL, certified_quantizer
from workbench.families.quantizer.limit import two_outputs
from workbench.families.quantizer.methods import NoLaw, run, why_none
from workbench.families.quantizer.request import QuantizerRequest
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization import Quantization
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.quantizer import audit_quantizer

__all__ = ["design"]


def design(request: QuantizerRequest) -> Design:
    """The best unbiased ε-private quantizer for a request, audited exactly.

    Raises Infeasible (with the smallest feasible ε), SolverUnavailable, LicenceLimit, NotProven, NotCertified.
    """
    question, epsilon, metric = request.question, request.epsilon, request.metric
    least = _least(question, epsilon, metric)
    try:
        with translated_errors():
            answer = run(request)
    except NoLaw:
        raise Infeasible(why_none(request)) from None
    quantizer, words, certificate, route = _finished(answer.quantizer, epsilon, metric, request.certified)
    if metric == "squared":
        words = (
            *words,
            f"By |x - x'|² the guarantee is between the {len(quantizer.knots)} points that inputs are "
            "dithered to; between all real inputs it would force a constant law.",
        )
    stated = request.method in ("exact", "product")
    return Design(
        request,
        quantizer,
        quantizer.expected(request.loss, question.density) if stated else answer.objective,
        answer.bound,
        Claim("pure" if metric is None else "metric", epsilon),
        _judge(request, quantizer, answer.bound),
        answer.solution,
        (*answer.words, *words),
        audit_quantizer(quantizer, metric),
        certificate,
        answer.quantizer if request.certified else None,
        route,
        details={"smallest_epsilon": least},
    )


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


def _finished(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None, certify: bool
) -> tuple[Quantizer, tuple[str, ...], Certificate | None, str | None]:
    """The one place where what a solver's rounding left is repaired: what comes back is what is published."""
    if certify:
        mechanism, certificate, share = certified_quantizer(quantizer, epsilon, metric)
        route = "as the solver returned it" if not share else f"{float(share):.2g} of a strictly private law mixed in"
        changed = f"The proof took {float(share):.2g} of another law mixed into the solver's; errors are those of both."
        return mechanism, (changed,) if share > SMALL else (), certificate, route
    privacy = audit_quantizer(quantizer, metric)
    words = []
    if not privacy.meets("pure" if metric is None else "metric", epsilon):
        words.append(f"The solver's law {privacy.verdict(epsilon)}.")
    if privacy.bias:
        words.append(f"Its exact bias is {float(privacy.bias):.2g} (rounding of the solver's answer), not 0.")
    return quantizer, tuple(words), None, None


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
