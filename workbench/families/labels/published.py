"""Published label randomizers: exact expectations, pure ε by construction."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from workbench.families.published import Published, Reference
from workbench.mechanisms.label_randomizers.label_noise import LabelNoise
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse, k_ary, with_prior

NOISES = {"laplace": "clipped Laplace", "staircase": "clipped staircase", "exponential": "exponential mechanism"}


def _pure(request: Any, loss: float) -> Reference:
    return Reference(loss, more={"pure_epsilon": float(request.epsilon)})


def _noise(name: str, request: Any) -> Reference:
    labels, kind = request.question, request.named_loss.kind
    low, high = float(labels.values[0]), float(labels.values[-1])
    return _pure(request, LabelNoise(name, low, high, request.epsilon, loss=kind).loss(labels, kind))


def _response(build: Callable[[Labels, Fraction], RandomizedResponse], request: Any) -> Reference:
    return _pure(request, float(build(request.question, request.epsilon).loss(request.named_loss)))


def _entry(name: str, source: str, cost: Callable[[Any], Reference], *losses: str) -> Published:
    """losses: those that it is known for, any where none is named. As it is pure, δ is not used."""

    def serves(request: Any) -> bool:
        return request.question.k > 1 and (not losses or request.named_loss.kind in losses)

    return Published(name, source, cost, serves, fixed={"delta": 0.0, "notion": "pure"})


_POWERS = ("squared", "absolute")
PUBLISHED = (
    _entry("laplace", "Dwork et al. 2006", partial(_noise, "laplace"), *_POWERS),
    _entry("staircase", "Geng and Viswanath 2014", partial(_noise, "staircase"), *_POWERS),
    _entry("exponential", "McSherry and Talwar 2007", partial(_noise, "exponential"), *_POWERS),
    _entry("RRWithPrior", "Ghazi et al. 2021", partial(_response, with_prior)),
    _entry("k-ary RR", "Kairouz et al. 2014", partial(_response, k_ary)),
)
