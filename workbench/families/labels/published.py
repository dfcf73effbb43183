"""Published label randomizers: exact expectations, pure ε by construction."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from workbench.families.frontier_plan import NotApplicable
from workbench.families.published import Published, Reference
from workbench.mechanisms.label_randomizers.label_noise import LabelNoise
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse, k_ary, with_prior

NOISES = {"laplace": "clipped Laplace", "staircase": "clipped staircase", "exponential": "exponential mechanism"}


def _noise(name: str) -> Callable[[Any], Reference]:
    def cost(request: Any) -> Reference:
        labels, kind = request.question, request.named_loss.kind
        if kind not in ("squared", "absolute") or labels.k < 2:
            raise NotApplicable("its loss is known for the losses squared and absolute")
        low, high = float(labels.values[0]), float(labels.values[-1])
        return Reference(LabelNoise(name, low, high, request.epsilon, loss=kind).loss(labels, kind))

    return cost


def _response(build: Callable[[Labels, Fraction], RandomizedResponse]) -> Callable[[Any], Reference]:
    def cost(request: Any) -> Reference:
        if request.question.k < 2:
            raise NotApplicable("it is for two labels or more")
        return Reference(float(build(request.question, request.epsilon).loss(request.named_loss)))

    return cost


PUBLISHED = (
    Published("laplace", "Dwork et al. 2006", "scale (high - low)/ε, clipped", _noise("laplace")),
    Published("staircase", "Geng and Viswanath 2014", "γ, best before it is clipped", _noise("staircase")),
    Published("exponential", "McSherry and Talwar 2007", "ε/2 of the range", _noise("exponential")),
    Published("RRWithPrior", "Ghazi et al. 2021", "k, the best", _response(with_prior)),
    Published("k-ary RR", "Kairouz et al. 2014", "the own label with odds e^ε", _response(k_ary)),
)


def rivals(request: Any) -> list[Published]:
    """Those that apply to the labels and the loss of a request."""

    def applies(entry: Published) -> bool:
        try:
            entry.cost(request)
        except NotApplicable:
            return False
        return True

    return [entry for entry in PUBLISHED if applies(entry)]
