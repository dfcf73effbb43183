"""Compare the expected loss of a design for noise with known formulas.

D is the sensitivity. The formula is the loss of published noise. It is the optimum if that noise is
proven optimal, and an upper bound on the optimum if that noise is only proven private.

noise                                  formula                      the formula is
any, δ = 0                             staircase                    the optimum
integers, δ > 0                        staircase on the integers    an upper bound
reals, δ > 0                           truncated Laplace            an upper bound
integers, trade-off function, D = 1    canonical discrete noise     the optimum
integers, μ-GDP                        rounded Gaussian             optimum; for D > 1 upper bound
integers, zCDP and Rényi DP            discrete Gaussian            an upper bound

A formula is added in `_judge_by_staircase` (one bound (ε, δ)) or in `_judge_by_canonical_noise`
(other notions).
"""

from __future__ import annotations

from functools import partial

from workbench.families.noise.request import NoiseRequest
from workbench.models.oracles import line_noise
from workbench.models.oracles.canonical_noise import (
    canonical_loss,
    discrete_gaussian_loss,
    rounded_gaussian_loss,
)
from workbench.pipeline.design import OracleVerdict
from workbench.privacy.claim import Claim
from workbench.privacy.repair import bound_inverse_exponential

# A design on the reals agrees with a formula if the relative difference is at most this (or the
# target gap, if that is larger).
_MIN_TOLERANCE_ON_REALS = 2e-4
_MIN_CANONICAL_TOLERANCE = 1e-6  # The same for formulas under notions of several bounds.
_SMALLEST_NOISE = (
    "It is stochastically smallest for a trade-off function (Awan and Ramasethu, arXiv 2308.08343)."
)


def judge_noise_loss(request: NoiseRequest, claim: Claim, objective: float) -> OracleVerdict:
    """Compare the expected loss of a design with the known formula for its request.

    Args:
        request: the request, whose loss, notion and budget decide which formula applies.
        claim: the claim that the design is audited for.
        objective: the expected loss of the design.

    Returns:
        The verdict on the difference. If no formula is known, a verdict that says so.
    """
    if request.is_worst_case:
        return OracleVerdict.without_formula("no closed form is known for the worst answer.")
    canonical = _judge_by_canonical_noise(request, claim, objective)
    if canonical is not None:
        return canonical
    if request.loss_name not in line_noise.POWERS or request.clamp is not None:
        return OracleVerdict.without_formula("no closed form is known for this loss.")
    if request.has_several_bounds:
        return OracleVerdict.without_formula("no closed form is known for this notion.")
    return _judge_by_staircase(request, objective)


def _judge_by_staircase(request: NoiseRequest, objective: float) -> OracleVerdict:
    """Compare the loss with the staircase, or with truncated Laplace noise on the reals."""
    judge = partial(OracleVerdict.judge, scale=request.loss_scale)
    question = request.question
    name = request.loss_name
    epsilon = float(request.claim.epsilon)
    delta = float(request.claim.delta)
    sensitivity = float(question.sensitivity)
    tolerance = max(_MIN_TOLERANCE_ON_REALS, request.target_gap)
    kind = "optimum"
    proof = "Geng and Viswanath (2014)."
    if delta:
        kind = "upper bound"
        proof = "Pure noise is (epsilon, delta)-private for every delta."
    if not request.is_on_reals:
        ratio = bound_inverse_exponential(request.claim.epsilon)
        exact_value, _ = line_noise.staircase_integers(ratio, question.sensitivity, name)
        value = float(exact_value)
        return judge(objective, "staircase on the integers", value, kind, proof)
    if not delta:
        value = line_noise.staircase_reals(epsilon, sensitivity, name)
        if request.how.steps is not None:
            kind = "lower bound"  # The formula is the optimum over all numbers of cells.
        return judge(objective, "staircase", value, kind, proof, tolerance)
    value = line_noise.truncated_laplace(epsilon, delta, sensitivity, name)
    proof = "It is private (Geng et al. 2020)."
    return judge(objective, "truncated Laplace", value, kind, proof, tolerance)


def _judge_by_canonical_noise(
    request: NoiseRequest, claim: Claim, objective: float
) -> OracleVerdict | None:
    """Compare the loss with noise that is optimal or private under a notion of several bounds.

    Returns:
        The verdict for noise on the integers under a trade-off function (D = 1), GDP, zCDP or
        Rényi DP. None if no such formula applies.
    """
    judge = partial(OracleVerdict.judge, scale=request.loss_scale)
    if request.is_on_reals or not request.line_losses[0].is_even:
        return None

    def loss(eta: int) -> float:
        """Return the loss of the noise value η."""
        return float(request.line_losses[0].value_at(eta))

    sensitivity = request.question.sensitivity
    tolerance = max(_MIN_CANONICAL_TOLERANCE, request.target_gap)
    has_sticks = request.has_several_bounds or not request.has_infinite_support
    sticks = claim.list_ratio_bounds(()) if has_sticks else ()
    if sticks and sensitivity == 1 and min(stick.delta for stick in sticks) < 1:
        budgets = [(float(stick.epsilon), float(stick.delta)) for stick in sticks]
        value = canonical_loss(budgets, loss)
        name = "canonical discrete noise"
        return judge(objective, name, value, "optimum", _SMALLEST_NOISE, tolerance)
    mu = claim.notion.gaussian_mu(claim.values)
    if mu is not None:
        value = rounded_gaussian_loss(float(mu) / sensitivity, loss)
        kind = "optimum"
        proof = _SMALLEST_NOISE
        if sensitivity != 1:
            kind = "upper bound"
            proof = "Rounding a Gaussian is post-processing."
        return judge(objective, "rounded Gaussian", value, kind, proof, tolerance)
    variance = claim.notion.gaussian_variance(claim.values)
    if variance is None:
        return None
    value = discrete_gaussian_loss(sensitivity * sensitivity * float(variance), loss)
    proof = "It is private for this budget (Canonne, Kamath and Steinke 2020)."
    return judge(objective, "discrete Gaussian", value, "upper bound", proof, tolerance)
