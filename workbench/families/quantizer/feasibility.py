"""Find the smallest ε at which an unbiased private quantizer exists on given outputs.

Errors for infeasible requests name this ε. In this module inputs x are in [-c, c], after the middle
of their range is subtracted. low and high are the outermost outputs, B_i is an output, and p_i(x)
its probability at x.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from workbench.errors import Infeasible
from workbench.families.quantizer.laws import Bins, list_knots
from workbench.families.quantizer.request import QuantizerRequest
from workbench.models.quantizer.program import smallest_epsilon

_EPSILON_ROUNDING = 1e-12  # An ε below the smallest one by this share is accepted.


def find_smallest_epsilon(request: QuantizerRequest) -> float | None:
    """Find the smallest ε at which a quantizer with the given outputs exists.

    Args:
        request: the checked request of the design.

    Returns:
        The smallest ε; None if the outputs are optimised, or privacy is by |x - x'|².

    Raises:
        Infeasible: the request has a smaller ε, or no ε is enough.
    """
    question = request.question
    metric = request.aim.metric
    if question.bins is None or metric == "squared":
        return None
    first_output = float(question.bins[0])
    last_output = float(question.bins[-1])
    first_input, last_input = map(float, question.ends)
    c = float(question.c)
    # The formulas are for inputs in [-c, c], so the middle of the inputs is moved to 0.
    low = first_output - float(question.middle)
    high = last_output - float(question.middle)
    least_epsilon = smallest_epsilon(low, high, c)
    if metric == "absolute" and math.isfinite(least_epsilon):
        # The mean distance to the lowest output is Σ_i (B_i - low) p_i(x) = x - low. Its slope in x
        # is 1. Every p_i(x) has a slope of at most ε p_i(x), so 1 <= ε (x - low). At x = -c this
        # requires the largest ε, 1/(-c - low). The same holds for the distance to the highest
        # output.
        least_epsilon = 1 / min(high - c, -c - low)
    if math.isinf(least_epsilon):
        raise Infeasible(
            f"bins must reach beyond [{first_input:g}, {last_input:g}] on both sides. With an "
            "outermost output at an end, the input there would have to be published as it is. "
            f"Got {first_output:g} to {last_output:g}."
        )
    epsilon = float(request.claim.epsilon)
    if epsilon < least_epsilon * (1 - _EPSILON_ROUNDING):
        raise Infeasible(
            f"epsilon must be at least {least_epsilon:.9g} for outputs in "
            f"[{first_output:g}, {last_output:g}] "
            "(the smallest at which an unbiased private quantizer on "
            f"[{first_input:g}, {last_input:g}] exists). Got {epsilon:g}."
        )
    return least_epsilon


def describe_infeasibility(request: QuantizerRequest, bins: Bins | None) -> str:
    """Return a sentence for a request without a solution.

    Args:
        request: the checked request, which no mechanism satisfies.
        bins: the given outputs, with inputs in [-1, 1]. None if outputs are optimised.

    Returns:
        The sentence. For privacy by |x - x'|² and given outputs beyond ±1 it also names the
        smallest feasible ε.
    """
    metric = request.aim.metric
    relation = "private"
    if metric is not None:
        relation = f"{metric}-metric private"
    outputs = "these outputs"
    if request.question.bins is None:
        outputs = "outputs within the reach"
    sentence = (
        f"No unbiased {relation} quantizer with {outputs} and knots exists at "
        f"epsilon = {float(request.claim.epsilon):g}."
    )
    if metric != "squared" or bins is None or bins[0] == -1 or bins[-1] == 1:
        return sentence
    if request.how.method == "mvu":
        knots = list_knots((), request.how.inputs or len(bins))
    else:
        knots = list_knots(bins, request.extra_knot_count)
    least_epsilon = _find_smallest_squared_epsilon(bins, knots, request.question.c)
    return f"{sentence} The smallest feasible epsilon is {least_epsilon:.6g}."


def _find_smallest_squared_epsilon(bins: Bins, knots: Sequence[Fraction], c: Fraction) -> float:
    """Find the smallest ε for privacy by |x - x'|² between neighbouring knots.

    Σ_i (B_i - low) p_i(x) = x - low may grow from a knot a to the next knot b by the factor
    e^(ε (b - a)²) at most. So ε (b - a)² >= ln((b - low)/(a - low)), and the same holds for the
    distance high - x. `bins` and `knots` are in units of c.
    """
    low = bins[0]
    high = bins[-1]
    epsilons = []
    for a, b in itertools.pairwise(knots):
        log_ratio = math.log1p((b - a) / min(a - low, high - b))
        epsilons.append(log_ratio / (c * (b - a)) ** 2)
    return float(max(epsilons))
