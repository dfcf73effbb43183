"""Plug-ins of three kinds: a notion of privacy, a private baseline, and one that is not private."""

from __future__ import annotations

from fractions import Fraction

import workbench as wb
from workbench.notions import HockeyStick
from workbench.notions.dp import DP
from workbench.pipeline.published import Baseline


class Halved(DP):
    """DP with half the budget: a mechanism satisfies it at (ε, δ) if it is (ε/2, δ)-DP."""

    name = "halved"
    title = "halved DP"
    quantity = "halved_delta"

    def measure(self, laws, budget):
        """Measure the smallest δ of DP at ε/2."""
        return super().measure(laws, {**budget, "epsilon": budget["epsilon"] / 2})

    def requirements(self, budget):
        """Require DP at ε/2 from the linear programs of designs."""
        return (HockeyStick(budget["epsilon"] / 2, budget["delta"]),)


def _make_half_uniform_noise(request):
    """Return noise that is zero with probability δ and otherwise uniform: (0, δ)-DP and PDP."""
    order = request.question.order
    delta = request.claim.delta
    probability = (1 - delta) / order
    probabilities = [probability + delta, *[probability] * (order - 1)]
    return wb.AdditiveNoise(request.question, probabilities)


def _make_impudent_noise(request):
    """Return noise that is nearly always zero, so that it is not private for a small budget."""
    weights = [Fraction(9, 10), *[Fraction(1, 10)] * (request.question.order - 1)]
    return wb.AdditiveNoise(request.question, weights)


HALF_UNIFORM = Baseline("half-uniform", "modulo", _make_half_uniform_noise)
IMPUDENT = Baseline("impudent", "modulo", _make_impudent_noise)
