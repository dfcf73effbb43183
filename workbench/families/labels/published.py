"""Published label randomizers: exact expectations, pure ε by construction."""

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
    """Return a mechanism of pure ε and its loss."""
    return Reference(loss, extra_columns={"pure_epsilon": float(request.claim.epsilon)})


def _evaluate_label_noise(name: str, request: Any) -> Reference:
    """Evaluate clipped noise or the exponential mechanism for a request."""
    labels = request.question
    kind = request.named_loss.kind
    low = float(labels.values[0])
    high = float(labels.values[-1])
    noise = LabelNoise(name, low, high, request.claim.epsilon, loss=kind)
    return _make_pure_reference(request, noise.loss(labels, kind))


def _evaluate_response(
    build: Callable[[Labels, Fraction], RandomizedResponse], request: Any
) -> Reference:
    """Evaluate a randomized response, which `build` makes, for a request."""
    randomizer = build(request.question, request.claim.epsilon)
    return _make_pure_reference(request, float(randomizer.loss(request.named_loss)))


def _make_pure_entry(
    name: str, source: str, evaluate: Callable[[Any], Reference], *losses: str
) -> Published:
    """Make the entry of a pure mechanism, for the given losses or for every loss."""

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
