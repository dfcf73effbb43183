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


def _make_pure_reference(request: Any, loss: float) -> Reference:
    return Reference(loss, extra_columns={"pure_epsilon": float(request.claim.epsilon)})


def _evaluate_label_noise(name: str, request: Any) -> Reference:
    labels, kind = request.question, request.named_loss.kind
    low, high = float(labels.values[0]), float(labels.values[-1])
    return _make_pure_reference(
        request, LabelNoise(name, low, high, request.claim.epsilon, loss=kind).loss(labels, kind)
    )


def _evaluate_response(
    build: Callable[[Labels, Fraction], RandomizedResponse], request: Any
) -> Reference:
    return _make_pure_reference(
        request, float(build(request.question, request.claim.epsilon).loss(request.named_loss))
    )


def _make_pure_entry(
    name: str, source: str, cost: Callable[[Any], Reference], *losses: str
) -> Published:
    """Make the entry of a pure mechanism, which is known for the given losses; for any loss if none is given."""

    def serves(request: Any) -> bool:
        return request.question.k > 1 and (not losses or request.named_loss.kind in losses)

    return Published(name, source, cost, serves, fixed={"delta": 0.0, "notion": "pure"})


_POWERS = ("squared", "absolute")
PUBLISHED = (
    _make_pure_entry(
        "laplace", "Dwork et al. 2006", partial(_evaluate_label_noise, "laplace"), *_POWERS
    ),
    _make_pure_entry(
        "staircase",
        "Geng and Viswanath 2014",
        partial(_evaluate_label_noise, "staircase"),
        *_POWERS,
    ),
    _make_pure_entry(
        "exponential",
        "McSherry and Talwar 2007",
        partial(_evaluate_label_noise, "exponential"),
        *_POWERS,
    ),
    _make_pure_entry(
        "RRWithPrior", "Ghazi et al. 2021", partial(_evaluate_response, rr_with_prior)
    ),
    _make_pure_entry("k-ary RR", "Kairouz et al. 2014", partial(_evaluate_response, rr_k_ary)),
)
