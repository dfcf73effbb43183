"""Evaluate label randomizers from the literature: their expected loss under the prior, without
sampling.

All of them have pure ε by construction. `PUBLISHED` lists them. A further one needs an entry there,
and a line in `frontier.SERIES` for its colour.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from workbench.mechanisms.label_randomizers.label_noise import LabelNoise
from workbench.mechanisms.label_randomizers.randomized_response import (
    RandomizedResponse,
    rr_k_ary,
    rr_with_prior,
)
from workbench.pipeline.published import Published, Reference
from workbench.questions.labels import Labels

NOISE_TITLES = {
    "laplace": "clipped Laplace",
    "staircase": "clipped staircase",
    "exponential": "exponential mechanism",
}

# The losses for which noise on labels has exact expectations.
_NOISE_LOSSES = ("squared", "absolute")


def _make_pure_reference(request: Any, loss: float) -> Reference:
    """Return the reference of a mechanism with pure ε: its expected loss, and ε as a column."""
    return Reference(loss, extra_columns={"pure_epsilon": float(request.claim.epsilon)})


def _evaluate_label_noise(name: str, request: Any) -> Reference:
    """Evaluate clipped noise or the exponential mechanism for a request.

    name: a key of `NOISE_TITLES`.
    """
    labels = request.question
    kind = request.named_loss.kind
    low = float(labels.values[0])
    high = float(labels.values[-1])
    noise = LabelNoise(name, low, high, request.claim.epsilon, loss=kind)
    return _make_pure_reference(request, noise.loss(labels, kind))


def _evaluate_response(
    build: Callable[[Labels, Fraction], RandomizedResponse], request: Any
) -> Reference:
    """Evaluate a randomized response for a request. build: (labels, ε) -> the mechanism."""
    randomizer = build(request.question, request.claim.epsilon)
    return _make_pure_reference(request, float(randomizer.loss(request.named_loss)))


def _make_pure_entry(
    name: str, source: str, evaluate: Callable[[Any], Reference], *losses: str
) -> Published:
    """Make the entry of a mechanism with pure ε.

    evaluate: request for labels -> reference; losses: names of the losses that it serves, or none
    if it serves every loss.
    """

    def serves(request: Any) -> bool:
        """Return whether the mechanism applies to a request."""
        return request.question.k > 1 and (not losses or request.named_loss.kind in losses)

    return Published(name, source, evaluate, serves, fixed={"delta": 0.0, "notion": "pure"})


PUBLISHED = (
    _make_pure_entry(
        "laplace", "Dwork et al. 2006", partial(_evaluate_label_noise, "laplace"), *_NOISE_LOSSES
    ),
    _make_pure_entry(
        "staircase",
        "Geng and Viswanath 2014",
        partial(_evaluate_label_noise, "staircase"),
        *_NOISE_LOSSES,
    ),
    _make_pure_entry(
        "exponential",
        "McSherry and Talwar 2007",
        partial(_evaluate_label_noise, "exponential"),
        *_NOISE_LOSSES,
    ),
    _make_pure_entry(
        "RRWithPrior", "Ghazi et al. 2021", partial(_evaluate_response, rr_with_prior)
    ),
    _make_pure_entry("k-ary RR", "Kairouz et al. 2014", partial(_evaluate_response, rr_k_ary)),
)
