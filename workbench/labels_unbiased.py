"""The least-squares unbiased label randomizer: the column generation of `models.unbiased`, made exact at its vertex."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from workbench import rooms

# isort: split
from models import unbiased
from models.losses import Loss
from models.oracles.bins import optimal_bins
from solvers.backend import Options, solve
from solvers.solution import Solution
from workbench.designing import OracleVerdict
from workbench.errors import NotProven
from workbench.labels_certified import audited, certified, missed, refuse, rows_of
from workbench.labels_designed import LabelDesign
from workbench.mechanisms.label_channel import LabelChannel
from workbench.mechanisms.labels import Labels
from workbench.mechanisms.piecewise import mean
from workbench.mechanisms.randomized_response import odds_below
from workbench.numbers import round_up
from workbench.unbiased_vertex import mixture

__all__ = ["best_unbiased"]

_GAP = 1e-8  # at which the column generation stops


def best_unbiased(question: Labels, loss: Loss, request: dict[str, Any], options: Options | None) -> LabelDesign:
    """The optimum over all real outputs, to a relative gap of 1e-8. Raises InvalidRequest, NotProven, NotCertified."""
    y, p, epsilon = question.values, question.prior, request["asked"]
    odds, _ = odds_below(epsilon)
    q = float(odds) - 1
    # A zero prior would leave the least outputs of those labels open; a speck of mass settles them.
    p = np.maximum(p, 1e-12)
    p = p / p.sum()
    rays, bound = unbiased.start(y, q), -math.inf
    unit = max(optimal_bins(y, p, float(epsilon)).objective, 1e-9 * float(np.ptp(y)) ** 2)
    solution: Solution | None = None
    objective = math.inf
    for _ in range(40 + 12 * question.k):
        with rooms.speaking_our_errors():
            solution = solve(unbiased.master(y, p, q, rays, unit), solver=request["solver"], options=options)
        if solution.x is None or solution.row_dual is None or solution.objective is None:
            refuse(solution, ("unbiased",))
        assert solution.x is not None and solution.row_dual is not None and solution.objective is not None  # noqa: PT018
        objective = solution.objective * unit
        v, u = unbiased.dual_values(y, solution.row_dual, unit)
        more, missing = unbiased.price(y, p, q, v, u)
        bound = max(bound, float(v.sum()) - missing)
        if objective - bound <= _GAP * max(objective, 1e-300):
            break
        reduced = solution.reduced_cost if solution.reduced_cost is not None else np.zeros(solution.x.size)
        order = np.lexsort((reduced, -solution.x))  # keep what is used, then what was nearly used
        rays = rays.keep(order[: 12 * question.k]).plus(more)
    assert solution is not None and solution.x is not None  # noqa: PT018
    (outputs, channel), exact = mixture(y, odds, rays, solution.x)
    raw = mechanism = LabelChannel(question, outputs, channel)
    certificate = certified(mechanism, request, unbiased=True)
    if certificate is not None and certificate.bias is not None:
        mechanism = LabelChannel(question, outputs, rows_of(certificate))
        exact = not certificate.bias.worst
    privacy = audited(mechanism.channel, request)
    words = list(missed(privacy, request))
    if not question.prior.all():
        words.append("Labels of prior 0 were given the weight 1e-12, which the bound counts too.")
    words.append(_bias(mechanism, exact=exact))
    reason = "no closed form is known; the bound is the column generation's own (pricing over all real outputs)."
    reached = mechanism.loss(loss)
    mixed = certificate is not None and "repair_mixed_in" in certificate.record
    route = "repair" if mixed or not exact else "exact masses at a vertex of the program"
    made = LabelDesign(
        question, request, mechanism, reached, min(bound, reached), privacy, OracleVerdict.none(reason), solution,
        tuple(words), certificate, raw if certificate is not None else None, route,
    )  # fmt: skip
    if objective - bound > 1e-6 * max(objective, 1e-300):
        raise NotProven(
            f"The column generation stopped with the optimum between {bound:.9g} and {reached:.9g}.",
            incumbent=reached, bound=bound, design=made,
        )  # fmt: skip
    return made


def _bias(mechanism: LabelChannel, *, exact: bool) -> str:
    """What is left of the bias, decided in rationals."""
    if exact:
        return "Every mass is an exact rational, with E[o|y] = y exactly."
    outputs = [Fraction(value) for value in mechanism.outputs.tolist()]
    labels = map(Fraction, mechanism.labels.values.tolist())
    worst = max(abs(mean(row, outputs) - y) for row, y in zip(mechanism.channel.rows, labels, strict=True))
    return f"The largest bias |E[o|y] - y| is {round_up(worst):.3g}."
