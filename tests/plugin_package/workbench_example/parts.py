"""A notion, and two baselines of additive noise, of which only the first is private."""

from __future__ import annotations

from fractions import Fraction

import workbench as wb
from workbench.notions import HockeyStick
from workbench.notions.dp import DP
from workbench.pipeline.published import Baseline


class Halved(DP):
    """(ε/2, δ)-DP."""

    name = "halved"
    title = "halved DP"
    quantity = "halved_delta"

    def measure(self, laws, budget):
        return super().measure(laws, {**budget, "epsilon": budget["epsilon"] / 2})

    def requirements(self, budget):
        return (HockeyStick(budget["epsilon"] / 2, budget["delta"]),)


def _make_half_uniform_noise(request):
    """Return noise that is zero with probability δ and otherwise uniform: (0, δ)-DP and PDP."""
    order = request.question.order
    delta = request.claim.delta
    probability = (1 - delta) / order
    probabilities = [probability + delta, *[probability] * (order - 1)]
    return wb.AdditiveNoise(request.question, probabilities)


def _make_impudent_noise(request):
    weights = [Fraction(9, 10), *[Fraction(1, 10)] * (request.question.order - 1)]
    return wb.AdditiveNoise(request.question, weights)


HALF_UNIFORM = Baseline("half-uniform", "modulo", _make_half_uniform_noise)
IMPUDENT = Baseline("impudent", "modulo", _make_impudent_noise)
