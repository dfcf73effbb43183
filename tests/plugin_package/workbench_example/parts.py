"""A notion, and two baselines of additive noise: one that is private, one that is not."""

from __future__ import annotations

from fractions import Fraction

import workbench as wb
from workbench.notions import HockeyStick
from workbench.notions.dp import DP
from workbench.pipeline.published import Baseline


class Halved(DP):
    """(ε/2, δ)-DP."""

    name, title, quantity = "halved", "halved DP", "halved_delta"

    def measure(self, laws, values):
        return super().measure(laws, {**values, "epsilon": values["epsilon"] / 2})

    def requirements(self, values):
        return (HockeyStick(values["epsilon"] / 2, values["delta"]),)


def _half_uniform(request):
    """δ on zero, the rest uniform: (0, δ)-DP, for PDP too."""
    order, delta = request.question.order, request.claim.delta
    rest = (1 - delta) / order
    return wb.AdditiveNoise(request.question, [rest + delta, *[rest] * (order - 1)])


def _impudent(request):
    return wb.AdditiveNoise(
        request.question, [Fraction(9, 10), *[Fraction(1, 10)] * (request.question.order - 1)]
    )


HALF_UNIFORM = Baseline("half-uniform", "modulo", _half_uniform)
IMPUDENT = Baseline("impudent", "modulo", _impudent)
