"""Noise on the integers that runs many times, under one budget (ε, δ) for all runs.

`models.repeated_noise` finds the losses in floats; rounded to rational masses they are a mechanism, whose T-fold
composition is then bounded by convolution in integers (`workbench.privacy.composition`). Until that bound is at most δ
the losses shrink. Certified are the pure ε of one run, and that all runs are within the budget. The bound on the loss
is that of symmetric noise (`models.repeated_noise_bound`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from models.oracles.line_noise import POWERS
from models.repeated_noise import ComposedDelta, best_losses, masses
from models.repeated_noise_bound import RepeatedNoiseBound
from solvers.backend import backend
from solvers.canonical import compile
from solvers.rational_lp import exact_bound
from workbench.errors import NotCertified
from workbench.exact.numbers import round_down, round_up
from workbench.families.design import Design, OracleVerdict
from workbench.families.noise.request import NoiseRequest
from workbench.families.noise.wide_runs import Proven, lowered, tailed, widened, within_budget
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.privacy.audit import audit
from workbench.privacy.certificate import Certificate, ExpectedLoss
from workbench.privacy.claim import Claim
from workbench.privacy.composition import ComposedClaim

__all__ = ["solve_runs"]

Vector = NDArray[np.float64]


def solve_runs(
    request: NoiseRequest,
    loss_of: Callable[[AdditiveIntegerNoise], Fraction],
    stated: Callable[[AdditiveIntegerNoise, Fraction], ExpectedLoss | None],
) -> Design:
    """The design. loss_of: the exact loss of a mechanism; stated: the objective of its certificate.

    Raises NotCertified, SolverError.
    """
    begin = time.perf_counter()
    epsilon, delta, power = float(request.epsilon), float(request.delta), POWERS[request.loss_name]
    limit, stopped = request.options.time_limit, False

    def loss(distance: Vector) -> Vector:
        return distance**power

    def stop(share: float = 1.0) -> bool:
        nonlocal stopped
        late = limit is not None and time.perf_counter() > begin + share * limit
        stopped = stopped or late
        return late

    reach = request.question.sensitivity
    share = 1.0 if reach == 1 else 0.5  # the rest is for noise for D
    losses = best_losses(request.runs, epsilon, delta, loss, stop=lambda: stop(share))
    if reach == 1:
        mechanism, reached = _within(request, losses)
        objective = loss_of(mechanism)
        bound, solver = _bound(request, loss, float(objective))
    else:
        candidates = widened(request, losses, stop)
        mechanism, reached = min(candidates, key=lambda pair: loss_of(pair[0]))
        objective = loss_of(mechanism)
        bound, solver = _bound(request, loss, float(objective) / reach**power)
        bound = None if bound is None else lowered(bound, reach, power)
    pure = Fraction(audit(mechanism, 0).pure_epsilon)
    composed = {"runs": request.runs, "epsilon": epsilon, "delta": round_up(reached)}
    certificate = None
    if request.certified:
        claimed = ComposedClaim.of(mechanism, request.runs, request.epsilon, request.delta)
        costing, record = stated(mechanism, objective), {"bound": bound}
        certificate = Certificate(mechanism, "pure", pure, 0, costing, record=record, composed=claimed)
    reason = "no closed form is known for many runs; the bound is a linear program's, for symmetric noise"
    words = [
        f"Certified are the pure epsilon of one run, and that {request.runs} runs are ({epsilon:g}, {delta:g})-private "
        "together, by convolution in integers."
    ]
    if stopped:
        words.append(f"The search stopped at its time limit of {limit:g} s; this is the best it had.")
    return Design(
        request,
        mechanism,
        float(objective),
        bound,
        Claim("pure", pure),
        OracleVerdict.none(reason),
        words=tuple(words),
        privacy=audit(mechanism, pure) if certificate is None else certificate.privacy,
        certificate=certificate,
        details={"composed": composed, "solver": solver, "seconds": time.perf_counter() - begin},
    )


def _within(request: NoiseRequest, losses: Vector) -> Proven:
    """A mechanism of these losses, shrunk until δ_T is proven to be at most δ, and its bound. Raises NotCertified."""
    floats = ComposedDelta(request.runs, float(request.epsilon), float(request.epsilon) + 12)
    slope = math.log(max(floats(losses * 1.0005), 1e-300) / max(floats(losses * 0.9995), 1e-300)) / 1e-3

    def law(share: float) -> AdditiveIntegerNoise:
        shrunk = losses * share
        return tailed(request, masses(shrunk)[0][: losses.size], float(shrunk[-1]))

    proven = within_budget(request, law, slope, lambda: False)
    if proven is None:
        raise NotCertified("The losses could not be shrunk until the composition is within delta.")
    return proven


def _bound(request: NoiseRequest, loss: Callable[[Vector], Vector], value: float) -> tuple[float | None, str]:
    """A loss that no symmetric noise goes below, from multipliers in exact arithmetic; the solver that found them."""
    spread = value ** (1 / POWERS[request.loss_name])
    program = compile(
        RepeatedNoiseBound(
            request.runs, round_up(request.epsilon), round_up(request.delta), loss, min(150, math.ceil(6 * spread) + 10)
        ).problem(),
        f"bound for {request.runs} runs",
        scale=2.0**20,
    )
    with backend(request.solver).open(program, request.options) as session:
        solution = session.solve({})
    bound = None if solution.row_dual is None else exact_bound(solution.data, solution.row_dual)
    return (None if bound is None else max(0.0, round_down(bound))), f"{solution.solver} {solution.version}"
