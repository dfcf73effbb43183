"""The least-squares unbiased label randomizer: the column generation of `models.unbiased`, made exact at its vertex."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from models import unbiased
from models.oracles.bins import optimal_bins
from solvers.backend import Options, solve
from solvers.solution import Solution, Termination
from workbench.errors import NotProven
from workbench.families.design import Design, OracleVerdict
from workbench.families.labels.certify import audited, certified, check_size, refuse, shortfall
from workbench.families.labels.request import LabelRequest
from workbench.families.labels.unbiased_vertex import mixture
from workbench.families.outcome import translated_errors
from workbench.mechanisms.label_randomizers.label_channel import LabelChannel
from workbench.mechanisms.label_randomizers.randomized_response import odds_below

__all__ = ["best_unbiased"]

Vector = NDArray[np.float64]

_GAP = 1e-8  # relative, at which the column generation stops
_ENOUGH = 1e-5  # and at which its answer still counts as an optimum, when the solver is out of digits
_SAY = 5.0  # seconds between two lines of progress
_FAR = 1e14  # cost of a ray, in units of the optimum without the mean, beyond which it is left out


def best_unbiased(request: LabelRequest) -> Design:
    """The optimum over all real outputs, to a relative gap of 1e-8 (1e-5 at degenerate vertices).

    request.progress is told a line every few seconds. Raises InvalidRequest, NotProven, NotCertified.
    """
    question, epsilon = request.question, request.epsilon
    y, p = question.values, question.prior
    if request.certified:
        check_size(question.k, 2 * question.k, None)  # a vertex has 2k outputs
    odds, _ = odds_below(epsilon)
    q = float(odds) - 1
    # A zero prior would leave the least outputs of those labels open; a speck of mass settles them.
    p = np.maximum(p, 1e-12)
    p = p / p.sum()
    rays, solution, bound = _generated(
        y, p, q, request.solver, request.options, request.progress or (lambda line: None)
    )  # fmt: skip
    assert solution.x is not None
    try:
        outputs, channel, share = mixture(y, odds, rays, solution.x / (1 + q))
    except ArithmeticError as error:
        raise NotProven(f"The column generation ended, but {error}.", bound=bound) from None
    mechanism = LabelChannel(question, outputs, channel)
    certificate = certified(mechanism, request, unbiased=True)
    privacy = audited(mechanism.channel, request)
    words = [*shortfall(privacy, request), "Every mass is an exact rational, with E[o|y] = y exactly."]
    if share:
        words.append(f"The program's vertex is degenerate: a share {float(share):.1g} of other rays makes it exact.")
    if not question.prior.all():
        words.append("Labels of prior 0 were given the weight 1e-12, which the bound counts too.")
    reason = "no closed form is known; the bound is the column generation's own (pricing over all real outputs)."
    reached = mechanism.loss(request.named_loss)
    route = "exact masses, completed to a share" if share else "exact masses at a vertex of the program"
    result = Design(
        request, mechanism, reached, min(bound, reached), request.claim, OracleVerdict.none(reason), solution,
        tuple(words), privacy, certificate, None, route,
    )  # fmt: skip
    if reached - bound > _ENOUGH * max(reached, 1e-300):
        raise NotProven(
            f"The column generation stopped with the optimum between {bound:.9g} and {reached:.9g}.",
            incumbent=reached, bound=bound, design=result,
        )  # fmt: skip
    return result


def _generated(
    y: Vector, p: Vector, q: float, solver: str, options: Options | None, progress: Callable[[str], None]
) -> tuple[unbiased.Rays, Solution, float]:
    """(rays, the best master program solved on them, the proven bound)."""
    unit = max(optimal_bins(y, p, math.log1p(q)).objective, 1e-9 * float(np.ptp(y)) ** 2)
    first = unbiased.start(y, q)
    h = float(np.ptp(y)) / y.size
    for shift in (-h, h):  # around the first rays, so that the program has an interior
        first = first.plus(unbiased.Rays(first.outputs[: y.size] + shift, first.raised[: y.size]))
    rays, bound = first, -math.inf
    best: tuple[unbiased.Rays, Solution, float] | None = None
    begin = last_shown = time.monotonic()
    for turn in range(40 + 12 * y.size):
        with translated_errors():
            solution = solve(unbiased.master(y, p, q, rays, unit), solver=solver, options=options)
        if solution.x is None or solution.row_dual is None or solution.objective is None:
            if best is None or solution.termination is Termination.INTERRUPTED:
                refuse(solution, ("unbiased",))
            break  # the solver is out of digits: the gap says how far it came
        if best is None or solution.objective * unit < best[2]:
            best = rays, solution, solution.objective * unit
        v, u = unbiased.dual_values(y, solution.row_dual, unit)
        more, missing = unbiased.price(y, p, q, v, u)
        bound = max(bound, float(v.sum()) - missing)
        if best[2] - bound <= _GAP * max(best[2], 1e-300):
            break
        if (now := time.monotonic()) - last_shown > _SAY:
            last_shown = now
            low = max(bound, 0.0)
            progress(f"{turn + 1} programs in {now - begin:.0f} s: the optimum is in [{low:.6g}, {best[2]:.6g}]")
        price = (more.weights(q) * (more.outputs[:, None] - y) ** 2) @ p
        more = more.keep(np.flatnonzero(price < _FAR * unit))  # solvers refuse larger costs; the bound counts all rays
        reduced = solution.reduced_cost if solution.reduced_cost is not None else np.zeros(solution.x.size)
        order = np.lexsort((reduced, -solution.x))  # keep what is used, then what was nearly used
        order = np.union1d(np.arange(first.outputs.size), order[: 12 * y.size])
        rays = rays.keep(order).plus(more)
        unit = max(best[2], 1e-9 * unit)  # tolerances are absolute, so the objective should be about 1
    assert best is not None
    return best[0], best[1], bound
