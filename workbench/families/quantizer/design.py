"""Designing quantizers: the request, its method, the exact audit of what comes out, and the words a reader needs.

method    what is solved                                                        objective         bound
exact     the exact quantizer LP (models.quantizer); with levels, bins on top    exact error       LP dual; limit
optm      OPTM's LPs, searched over bounds (and bins)                            proxy (8)         none
product   the best two-bin mechanism, by branch and bound (models.product)       exact error       proven
mvu       MVU's LP in P (and its alphabet)                                       error on its grid limit on the grid
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from models.quantizer import smallest_epsilon
from workbench.errors import Infeasible
from workbench.families.design import Design, OracleVerdict
from workbench.families.outcome import translated_errors
from workbench.families.quantizer.certify import SMALL, certified_quantizer
from workbench.families.quantizer.methods import MethodAnswer, NoLaw, run, why_none
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
        words = (*words, f"By |x - x'|² the guarantee is between the {len(quantizer.knots)} points that inputs are "
                         "dithered to; between all real inputs it would force a constant law.")  # fmt: skip
    stated = request.method in ("exact", "product")
    return Design(
        request, quantizer, quantizer.expected(request.cost, question.density) if stated else answer.objective,
        answer.bound, Claim(request.notion, epsilon), _judge(question, quantizer, answer, request.cost, metric),
        answer.solution, (*answer.words, *words), audit_quantizer(quantizer, metric), certificate,
        answer.quantizer if request.certified else None, route, details={"smallest_epsilon": least},
    )  # fmt: skip


def _least(question: Quantization, budget: Fraction, metric: str | None) -> float | None:
    """The smallest feasible ε for given bins (None: bins are free). Raises Infeasible below it."""
    if question.bins is None:
        return None
    c, low, high = float(question.c), float(question.bins[0]), float(question.bins[-1])
    least = smallest_epsilon(low, high, c)
    if metric == "absolute":
        least /= 2 * c  # p may change by e^{ε |x - x'|}, and |x - x'| <= 2c
    if metric == "squared":
        return None
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


def _judge(
    question: Quantization, quantizer: Quantizer, answer: MethodAnswer, cost: Any, metric: str | None
) -> OracleVerdict:
    """The closed forms: two outputs ±B have MAE (B² - c²/3)/B; no mechanism beats the limit."""
    bins, c = quantizer.bins, float(question.c)
    if len(bins) == 2 and bins[0] == -bins[1] and cost == "mae" and question.density.shape is None:
        reach = float(bins[1])
        value = (reach * reach - c * c / 3) / reach
        proof = "Two outputs ±B leave one unbiased law, Pr[B] = (B + x)/(2B); its error is (B² - x²)/B."
        return OracleVerdict.judge(quantizer.mae(), "two outputs", value, "optimum", proof)
    if answer.bound is not None and question.bins is None and answer.quantizer.name == "exact quantizer":
        proof = "A bound for all outputs within the same reach, proven by duality."
        reached = quantizer.expected(cost, question.density)
        return OracleVerdict.judge(reached, "limit", answer.bound, "lower bound", proof)
    return OracleVerdict.none("no closed form is known for more than two outputs.")
