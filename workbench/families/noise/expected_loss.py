"""Compute the exact expected loss of noise, and state it in certificates.

`compute_noise_loss` is called for every candidate of a search (`workbench.families.noise.problem`),
and for published noise. `make_certificate_loss` is called when a design is certified. All numbers
are rationals. η is the noise, q the true answer and o the published answer, as positions in the
clamped range.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ONE, ZERO
from workbench.families.noise.bracket import LineNoise
from workbench.families.noise.request import NoiseRequest
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.models.noise.losses import LineLoss
from workbench.privacy.objective import ExpectedLoss, Objective, round_loss_up


def compute_noise_loss(mechanism: LineNoise, request: NoiseRequest) -> Fraction:
    """Compute the exact expected loss of a mechanism for a request.

    Args:
        mechanism: noise on the integers or on the reals, clamped if the question of the
            request is.
        request: the request, whose loss and prior are used.

    Returns:
        The expected loss under the prior of the request; with prior "worst", the largest expected
        loss of any answer.
    """
    if isinstance(mechanism, AdditiveRealNoise):
        return _compute_real_noise_loss(mechanism, request)
    if request.is_worst_case:
        return max(_compute_answer_losses(mechanism, request))
    (line_loss,) = request.line_losses
    if line_loss.power:
        return mechanism.loss(request.loss_name)
    return _compute_table_loss(mechanism.noise, line_loss)


def _compute_real_noise_loss(mechanism: AdditiveRealNoise, request: NoiseRequest) -> Fraction:
    """Compute the exact expected loss of noise on the reals, clamped or not."""
    if mechanism.question.clamp is None:
        return mechanism.loss(request.loss_name)
    weights = request.aim.prior or (ONE,)
    if isinstance(weights, str):  # The prior is "worst".
        return mechanism.clamped_loss(request.loss_name, None)
    return mechanism.clamped_loss(request.loss_name, weights)


def _compute_table_loss(law: IntegerLaw, line_loss: LineLoss) -> Fraction:
    """Compute the exact mean of a loss that is a table, continued by a line on each side."""
    m = line_loss.span
    lines = []
    for side, slope in zip((1, -1), line_loss.slopes, strict=True):
        lines.append((line_loss.value_at(side * m) - m * slope, slope))
    # The law must list the table's values one by one. Its tails only meet the two lines.
    law = law.cover(-m, m)
    return law.mean(line_loss.values_between(law.first, law.last).__getitem__, *lines)


def _compute_answer_losses(
    mechanism: AdditiveIntegerNoise, request: NoiseRequest
) -> list[Fraction]:
    """Compute the exact expected loss of clamped noise for each answer that counts."""
    loss = request.loss_function
    losses = []
    for q in request.counted_positions:
        row = mechanism.rows[q]
        total = sum((weight * loss(q, o) for o, weight in enumerate(row.integers)), ZERO)
        losses.append(total / row.total)
    return losses


def make_certificate_loss(
    mechanism: LineNoise, request: NoiseRequest
) -> ExpectedLoss | Objective | None:
    """Make the statement of the expected loss that goes into a certificate.

    Args:
        mechanism: the mechanism that is certified.
        request: the request that it answers.

    Returns:
        The statement. None if a certificate file cannot state this loss, that is for user-defined
        losses of clamped answers and for user-defined losses of noise with infinite tails.
    """
    loss = compute_noise_loss(mechanism, request)
    if request.clamp is not None and isinstance(mechanism, AdditiveIntegerNoise):
        return _make_clamped_loss(mechanism, request, loss)
    name = request.loss_name
    user_losses = None
    if isinstance(mechanism, AdditiveIntegerNoise) and not request.line_losses[0].power:
        name = "own"
        noise = mechanism.noise
        if noise.ratio:
            return None  # A certificate file only lists the losses of stated weights.
        user_losses = tuple(
            map(request.line_losses[0].value_at, range(noise.first, noise.last + 1))
        )
    return Objective(name, round_loss_up(loss), user_losses)


def _make_clamped_loss(
    mechanism: AdditiveIntegerNoise, request: NoiseRequest, loss: Fraction
) -> ExpectedLoss | None:
    """Make the statement of the expected loss of clamped answers, None for user-defined losses."""
    clamp = request.clamp
    assert clamp is not None
    if not isinstance(request.aim.loss, str):
        return None  # Certificates only name losses of the published answer.
    low, high = clamp
    answers = tuple(request.aim.unit * answer for answer in range(low, high + 1))
    prior: Any = request.aim.prior or (ONE,) * len(answers)
    if isinstance(prior, str):
        # The certificate states the prior that is concentrated on the worst answer.
        answer_losses = _compute_answer_losses(mechanism, request)
        worst_index = answer_losses.index(loss)
        prior = tuple(Fraction(int(k == worst_index)) for k in range(len(answer_losses)))
    rows = tuple(range(len(answers)))
    statement = ExpectedLoss(
        request.loss_name, ZERO, labels=answers, prior=prior, outputs=answers, rows=rows
    )
    return replace(statement, value=round_loss_up(loss))
