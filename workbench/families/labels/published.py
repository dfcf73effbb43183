"""Published label randomizers: exact expectations, pure ε by construction."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from workbench.mechanisms.label_randomizers.label_noise import LabelNoise
from workbench.mechanisms.label_randomizers.randomized_response import (
    RandomizedResponse,
    k_ary,
    with_prior,
)
from workbench.pipeline.published import Published, Reference
from workbench.questions.labels import Labels

NOISES = {
    "laplace": "clipped Laplace",
    "staircase": "clipped staircase",
    "exponential": "exponential mechanism",
}


def _make_reference(request: Any, loss: float) -> Reference:
    return Reference(loss, more={"pure_epsilon": float(request.claim.epsilon)})


def _cost_noise(name: str, request: Any) -> Reference:
    labels, kind = request.question, request.named_loss.kind
    low, high = float(labels.values[0]), float(labels.values[-1])
    return _make_reference(
        request, LabelNoise(name, low, high, request.claim.epsilon, loss=kind).loss(labels, kind)
    )


def _cost_response(
    build: Callable[[Labels, Fraction], RandomizedResponse], request: Any
) -> Reference:
    return _make_reference(
        request, float(build(request.question, request.claim.epsilon).loss(request.named_loss))
    )


def _make_entry(
    name: str, source: str, cost: Callable[[Any], Reference], *losses: str
) -> Published:
    """Make the entry of a pure mechanism, which is known for the given losses; for any loss if none is given."""

    def serves(request: Any) -> bool:
        return request.question.k > 1 and (not losses or request.named_loss.kind in losses)

    return Published(name, source, cost, serves, fixed={"delta": 0.0, "notion": "pure"})


_POWERS = ("squared", "absolute")
PUBLISHED = (
    _make_entry("laplace", "Dwork et al. 2006", partial(_cost_noise, "laplace"), *_POWERS),
    _make_entry(
        "staircase", "Geng and Viswanath 2014", partial(_cost_noise, "staircase"), *_POWERS
    ),
    _make_entry(
        "exponential", "McSherry and Talwar 2007", partial(_cost_noise, "exponential"), *_POWERS
    ),
    _make_entry("RRWithPrior", "Ghazi et al. 2021", partial(_cost_response, with_prior)),
    _make_entry("k-ary RR", "Kairouz et al. 2014", partial(_cost_response, k_ary)),
)
